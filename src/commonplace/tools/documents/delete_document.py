"""delete_document: delete softly."""

from __future__ import annotations

from commonplace.access.decide import require_document
from commonplace.keep.delete import delete
from commonplace.text import normalize
from commonplace.tools.documents.fields import DocumentPath, LastKnownRevision, written
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec


class DeleteDocument(Arguments):
    path: DocumentPath
    last_known_revision: LastKnownRevision = None


async def handle(call: Call, given: DeleteDocument) -> Answer:
    document_id = normalize.document_id(given.path)
    require_document(call.principal, document_id)
    document = await call.runtime.store.write(
        call.principal.scope,
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
