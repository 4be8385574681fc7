"""A document, what is listed of it, and its earlier revisions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from zibaldone.model.value import value

VectorStatus = Literal["pending", "ready", "error", "skipped"]
Operation = Literal["create", "update", "patch", "delete", "restore", "import", "rename"]

KB_SOURCE_ID = 1
"""The built-in source: documents that agents write, as opposed to rows pulled from a database."""

MIME_DEFAULT = "text/markdown"


@value
class DocumentFields:
    """Everything of a document but its body."""

    document_id: str
    title: str
    tags: tuple[str, ...]
    parent_id: str | None
    mime: str
    metadata: Mapping[str, Any]
    revision: int
    created_at_us: int
    updated_at_us: int
    updated_by: str
    operation: Operation
    """What made this revision."""
    deleted_at_us: int | None = None
    source_id: int = KB_SOURCE_ID
    pk: Mapping[str, Any] | None = None
    vector_status: VectorStatus = "pending"
    vector_error: str | None = None
    storage_key: int | None = field(default=None, compare=False)
    """The engine's own handle; None until it is stored."""

    @property
    def is_live(self) -> bool:
        return self.deleted_at_us is None


_FIELD_NAMES = tuple(declared.name for declared in fields(DocumentFields))


@value
class Document(DocumentFields):
    body: str = field(kw_only=True)

    @property
    def content_hash(self) -> bytes:
        return content_hash(self.body)

    def fields(self) -> DocumentFields:
        """Without the body, which then need not stay in memory."""
        return DocumentFields(**{name: getattr(self, name) for name in _FIELD_NAMES})


@value
class DocumentPart(DocumentFields):
    """A document with the beginning of its body."""

    beginning: str = field(kw_only=True)
    content_chars: int = field(kw_only=True)
    """How long the whole body is."""

    @property
    def is_whole(self) -> bool:
        return len(self.beginning) == self.content_chars

    def as_document(self) -> Document:
        """The document, if the beginning of its body is all of it."""
        if not self.is_whole:
            raise ValueError(f"only a part of {self.document_id!r} was read")
        values = {name: getattr(self, name) for name in _FIELD_NAMES}
        return Document(**values, body=self.beginning)


@dataclass(frozen=True, slots=True)
class DocumentHead:
    """What a list shows."""

    document_id: str
    parent_id: str | None
    title: str
    tags: tuple[str, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class RecentHead(DocumentHead):
    """What a list by time shows."""

    updated_at_us: int


@dataclass(frozen=True, slots=True)
class FolderCount:
    """A folder, and how many documents are in it and below."""

    prefix: str
    """It ends in a slash."""
    count: int


@dataclass(frozen=True, slots=True)
class Revision:
    """One state a document had, or has; `body` is empty where only the history was asked for."""

    document_id: str
    revision: int
    title: str
    tags: tuple[str, ...]
    mime: str
    metadata: Mapping[str, Any]
    written_at_us: int
    written_by: str
    operation: Operation
    content_chars: int
    body: str = ""


def content_hash(body: str) -> bytes:
    return hashlib.blake2b(body.encode(), digest_size=16).digest()


def parent_of(document_id: str) -> str | None:
    """The folder an id stands in, or None at the top."""
    folder, slash, _ = document_id.rpartition("/")
    return folder if slash else None
