"""upload_document: create a document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from zibaldone.keep.create import NewDocument, creation
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, Mime, Tags, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class UploadDocument(Arguments):
    path: DocumentPath
    content: str
    title: str = ""
    tags: Tags = []
    metadata: dict[str, Any] = {}
    mime: Mime = None
    parent_id: str | None = Field(None, description="Default: the path's folder")
    upsert: bool = Field(False, description="Overwrite a document that exists")


async def handle(call: Call, given: UploadDocument) -> Written:
    document_id = normalize.document_id(given.path)
    new = NewDocument(
        document_id=document_id,
        body=given.content,
        title=given.title,
        tags=tuple(given.tags),
        mime=given.mime,
        parent_id=None
        if given.parent_id is None
        else normalize.prefix(given.parent_id, "parent_id"),
        metadata=given.metadata,
    )
    edit = creation(new, call.actor, call.runtime.limits, upsert=given.upsert)
    document, change = await call.write(edit)
    status: Literal["created", "updated"] = "created" if change.is_new else "updated"
    return {"id": document_id, "status": status, "revision": document.revision}


TOOL = ToolSpec(
    name="upload_document",
    title="Create a document",
    description=(
        "Create a document at a path. Fails with CONFLICT if one is there (use update_document or "
        "patch_document, or upsert). Readable and keyword-searchable at once."
    ),
    arguments=UploadDocument,
    result=Written,
    effect="write",
    handler=handle,
    document=lambda given: given.path,
    request_bytes_max=None,
)
