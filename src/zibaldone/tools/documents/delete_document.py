"""delete_document: delete softly."""

from __future__ import annotations

from zibaldone.keep.delete import delete
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class DeleteDocument(Arguments):
    path: DocumentPath
    last_known_revision: LastKnownRevision = None


async def handle(call: Call, given: DeleteDocument) -> Written:
    document_id = normalize.document_id(given.path)
    document = await call.runtime.store.write(
        call.principal.tenant,
        lambda writer: delete(
            writer, document_id, call.actor, last_known_revision=given.last_known_revision
        ),
    )
    return {"id": document_id, "status": "deleted", "revision": document.revision}


TOOL = ToolSpec(
    name="delete_document",
    title="Delete a document",
    description="Delete a document. Its history is kept and an operator can restore it.",
    arguments=DeleteDocument,
    result=Written,
    effect="delete",
    handler=handle,
    document=lambda given: given.path,
)
