"""Arguments that several document tools share, and how a document is shown."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, Field

from zibaldone.limits import REVISION_MAX, TAGS_MAX
from zibaldone.model.document import Document
from zibaldone.model.instant import to_iso

DocumentPath = Annotated[
    str,
    Field(
        validation_alias=AliasChoices("path", "document_id"),
        description="Document path, e.g. 'notes/deploy.md'",
    ),
]
Mime = Annotated[str | None, Field(max_length=128, pattern=r"^[\w.+-]+/[\w.+-]+$")]
Tags = Annotated[list[str], Field(max_length=TAGS_MAX)]
LastKnownRevision = Annotated[
    int | None,
    Field(
        ge=0,
        le=REVISION_MAX,
        description="Refuse with CONFLICT unless the document is at this revision",
    ),
]


def shown(document: Document) -> dict[str, Any]:
    """Everything of a document but its body."""
    answer = {
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
        answer["vector_error"] = document.vector_error
    return answer


def written(document: Document, status: str, **more: Any) -> dict[str, Any]:
    """The answer to a write."""
    return {"id": document.document_id, "status": status, "revision": document.revision, **more}
