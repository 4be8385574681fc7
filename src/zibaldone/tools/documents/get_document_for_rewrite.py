"""get_document_for_rewrite: the whole body."""

from __future__ import annotations

from zibaldone.keep.reads import live_part, whole
from zibaldone.limits import READ_INLINE_CHARS_MAX
from zibaldone.model.document import DocumentFields
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, WholeDocument, document_info
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class GetDocumentForRewrite(Arguments):
    path: DocumentPath


async def handle(call: Call, given: GetDocumentForRewrite) -> WholeDocument:
    document_id = normalize.document_id(given.path)
    tenant, store = call.principal.tenant, call.runtime.store
    part = await store.read(
        tenant, lambda reader: live_part(reader, document_id, READ_INLINE_CHARS_MAX), is_small=True
    )
    if part.is_whole:
        return _answer(part, part.beginning)
    await call.begin_long_answer()
    view = await store.read(tenant, lambda reader: whole(reader, document_id))
    return _answer(view.document, view.excerpt.text)


def _answer(document: DocumentFields, body: str) -> WholeDocument:
    return {
        **document_info(document),
        "content": body,
        "content_length": len(body),
        "truncated": False,
    }


TOOL = ToolSpec(
    name="get_document_for_rewrite",
    title="Read a whole document",
    description="Read a document's whole body and its revision, before rewriting it.",
    arguments=GetDocumentForRewrite,
    result=WholeDocument,
    effect="read",
    handler=handle,
    is_long=True,
)
