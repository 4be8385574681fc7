"""get_document_for_rewrite: the whole body."""

from __future__ import annotations

from zibaldone.keep.commit import live_document
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, WholeDocument, document_info
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class GetDocumentForRewrite(Arguments):
    path: DocumentPath


async def handle(call: Call, given: GetDocumentForRewrite) -> WholeDocument:
    document_id = normalize.document_id(given.path)
    document = await call.runtime.store.read(
        call.principal.tenant, lambda reader: live_document(reader, document_id), is_small=True
    )
    return {
        **document_info(document),
        "content": document.body,
        "content_length": len(document.body),
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
)
