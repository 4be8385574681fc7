"""upload_document: create a document."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from zibaldone.access.decide import require_document
from zibaldone.keep.create import NewDocument, create
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, Mime, Tags, written
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec


class UploadDocument(Arguments):
    path: DocumentPath
    content: str
    title: str = ""
    tags: Tags = []
    metadata: dict[str, Any] = {}
    mime: Mime = None
    parent_id: str | None = Field(None, description="Default: the path's folder")
    upsert: bool = Field(False, description="Overwrite a document that exists")


async def handle(call: Call, given: UploadDocument) -> Answer:
    document_id = normalize.document_id(given.path)
    require_document(call.principal, document_id)
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
    limits = call.runtime.limits
    document, is_new = await call.runtime.store.write(
        call.principal.tenant,
        lambda writer: create(writer, new, call.actor, limits, upsert=given.upsert),
    )
    return written(document, "created" if is_new else "updated")


TOOL = ToolSpec(
    name="upload_document",
    title="Create a document",
    description=(
        "Create a document at a path. Fails with CONFLICT if one is there (use update_document or "
        "patch_document, or upsert). Readable and keyword-searchable at once."
    ),
    arguments=UploadDocument,
    effect="write",
    handler=handle,
)
