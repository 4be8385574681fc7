"""Arguments that several document tools share, and how a document is described in answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from zibaldone.limits import REVISION_MAX, TAGS_MAX
from zibaldone.model.document import DocumentFields, VectorStatus
from zibaldone.model.instant import to_iso

DocumentPath = Annotated[
    str,
    Field(
        validation_alias=AliasChoices("path", "document_id"),
        description="e.g. 'notes/deploy.md'",
    ),
]
Mime = Annotated[str | None, Field(max_length=128, pattern=r"^[\w.+-]+/[\w.+-]+$")]
Tags = Annotated[list[str], Field(max_length=TAGS_MAX)]
LastKnownRevision = Annotated[
    int | None,
    Field(
        ge=0,
        le=REVISION_MAX,
        description="CONFLICT unless the document is at this revision",
    ),
]


class DocumentInfo(TypedDict):
    """Everything of a document but its body."""

    document_id: str
    parent_id: str | None
    title: str
    tags: list[str]
    revision: int
    mime: str
    metadata: Mapping[str, Any]
    created_at: str
    updated_at: str
    updated_by: str
    vector_status: VectorStatus
    vector_error: NotRequired[str]


class WholeDocument(DocumentInfo):
    content: str
    content_length: int
    truncated: bool


class Written(TypedDict):
    """The answer to a write."""

    id: str
    status: Literal["created", "updated", "patched", "deleted", "restored", "renamed"]
    revision: int


def document_info(document: DocumentFields) -> DocumentInfo:
    info: DocumentInfo = {
        "document_id": document.document_id,
        "parent_id": document.parent_id,
        "title": document.title,
        "tags": list(document.tags),
        "revision": document.revision,
        "mime": document.mime,
        "metadata": document.metadata,
        "created_at": to_iso(document.created_at_us),
        "updated_at": to_iso(document.updated_at_us),
        "updated_by": document.updated_by,
        "vector_status": document.vector_status,
    }
    if document.vector_error is not None:
        info["vector_error"] = document.vector_error
    return info
