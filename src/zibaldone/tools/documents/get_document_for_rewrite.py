"""get_document_for_rewrite: the whole body."""

from __future__ import annotations

from zibaldone.keep.commit import live_document
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, shown
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec


class GetDocumentForRewrite(Arguments):
    path: DocumentPath


def handle(call: Call, given: GetDocumentForRewrite) -> Answer:
    document_id = normalize.document_id(given.path)
    document = call.runtime.store.read_now(
        call.principal.tenant, lambda reader: live_document(reader, document_id)
    )
    answer = shown(document)
    answer["content"] = document.body
    answer["content_length"] = len(document.body)
    answer["truncated"] = False
    return answer


TOOL = ToolSpec(
    name="get_document_for_rewrite",
    title="Read a whole document",
    description="Read a document's whole body and its revision, before rewriting it.",
    arguments=GetDocumentForRewrite,
    effect="read",
    handler=handle,
)
