"""update_document: replace fields of a document."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from zibaldone.errors import InvalidArgument
from zibaldone.keep.update import Changes, updating
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, Mime, Tags, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class UpdateDocument(Arguments):
    path: DocumentPath
    content: str | None = Field(None, description="New body; omit to keep")
    title: str | None = None
    tags: Tags | None = None
    metadata: dict[str, Any] | None = Field(None, description="Merged by key; null removes a key")
    mime: Mime = None
    parent_id: str | None = None
    last_known_revision: LastKnownRevision = None


async def handle(call: Call, given: UpdateDocument) -> Written:
    document_id = normalize.document_id(given.path)
    changes = Changes(
        body=given.content,
        title=given.title,
        tags=None if given.tags is None else tuple(given.tags),
        mime=given.mime,
        parent_id=None
        if given.parent_id is None
        else normalize.prefix(given.parent_id, "parent_id"),
        metadata=given.metadata,
    )
    if changes == Changes():
        raise InvalidArgument("Nothing to change was given.", field="content")
    edit = updating(
        document_id,
        changes,
        call.actor,
        call.runtime.limits,
        last_known_revision=given.last_known_revision,
    )
    document, _ = await call.write(edit)
    return {"id": document_id, "status": "updated", "revision": document.revision}


TOOL = ToolSpec(
    name="update_document",
    title="Update a document",
    description=(
        "Replace a document's body, title, tags or metadata; what is not given stays. "
        "For small edits use patch_document."
    ),
    arguments=UpdateDocument,
    result=Written,
    effect="write",
    handler=handle,
    document=lambda given: given.path,
    request_bytes_max=None,
)
