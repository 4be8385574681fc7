"""delete_document: delete softly."""

from __future__ import annotations

from zibaldone.access.decide import require_document
from zibaldone.keep.delete import delete
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, written
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec


class DeleteDocument(Arguments):
    path: DocumentPath
    last_known_revision: LastKnownRevision = None


async def handle(call: Call, given: DeleteDocument) -> Answer:
    document_id = normalize.document_id(given.path)
    require_document(call.principal, document_id)
    document = await call.runtime.store.write(
        call.principal.tenant,
        lambda writer: delete(
            writer, document_id, call.actor, last_known_revision=given.last_known_revision
        ),
    )
    return written(document, "deleted")


TOOL = ToolSpec(
    name="delete_document",
    title="Delete a document",
    description="Delete a document. Its history is kept and an operator can restore it.",
    arguments=DeleteDocument,
    effect="delete",
    handler=handle,
)
