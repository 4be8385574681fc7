"""rename_document: another path for a document."""

from __future__ import annotations

from pydantic import Field

from zibaldone.keep.rename import renaming
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class RenameDocument(Arguments):
    path: DocumentPath
    new_path: str = Field(description="The path that it gets; nothing may be there")
    last_known_revision: LastKnownRevision = None


class Renamed(Written):
    renamed_from: str


async def handle(call: Call, given: RenameDocument) -> Renamed:
    document_id = normalize.document_id(given.path)
    new_id = normalize.document_id(given.new_path, "new_path")
    call.require_document(new_id)
    edit = renaming(document_id, new_id, call.actor, last_known_revision=given.last_known_revision)
    document, _ = await call.write(edit)
    return {
        "id": new_id,
        "status": "renamed",
        "revision": document.revision,
        "renamed_from": document_id,
    }


TOOL = ToolSpec(
    name="rename_document",
    title="Rename a document",
    description=(
        "Give a document another path. Its history goes with it. Fails with CONFLICT if there is "
        "a document at the new path, or a deleted one."
    ),
    arguments=RenameDocument,
    result=Renamed,
    effect="write",
    handler=handle,
    document=lambda given: given.path,
)
