"""AgentData's table `kb_documents(key text, data jsonb)`: what a row says, as a document of ours.

`data` holds document_id, parent_id, content (a text, or an object with body and mime_type),
metadata (title, tags and whatever else), revision, created_at, updated_at and deleted_at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from zibaldone.errors import InvalidArgument
from zibaldone.limits import REVISION_MAX
from zibaldone.model.document import MIME_DEFAULT, Document, parent_of
from zibaldone.model.instant import from_iso
from zibaldone.text import normalize

_MIME = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,63}")
_WHOLE_NUMBER = re.compile(r"\d{1,16}", re.ASCII)

_KNOWN_FIELDS = frozenset(
    [
        "document_id",
        "parent_id",
        "content",
        "body",
        "mime_type",
        "metadata",
        "revision",
        "created_at",
        "updated_at",
        "deleted_at",
        "vector_status",
        "vector_error",
    ]
)


@dataclass(frozen=True, slots=True)
class KbRow:
    """A row as it was read."""

    number: int
    """Its place in the source, from 1; the same on every reading."""
    key: str
    data: Mapping[str, Any]
    problem: str = ""
    """Why the row could not be read; `data` is empty then."""

    @property
    def document_id(self) -> str:
        """Empty where the row has none: it is not a document then."""
        value = self.data.get("document_id")
        return value if isinstance(value, str) else ""

    @property
    def is_live(self) -> bool:
        return self.data.get("deleted_at") is None

    @property
    def revision(self) -> int | None:
        """0 where it is missing or empty; None where it is not a number."""
        value = self.data.get("revision")
        if value is None or value == "":
            return 0
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        number = str(value).strip()
        if isinstance(value, bool) or not _WHOLE_NUMBER.fullmatch(number):
            return None
        return int(number) if int(number) <= REVISION_MAX else None

    @property
    def body(self) -> str:
        content = self.data.get("content")
        if isinstance(content, dict):
            content = content.get("body")
        if content is None:
            content = self.data.get("body")
        if content is None:
            return ""
        return content if isinstance(content, str) else orjson.dumps(content).decode()


class KbRows(Protocol):
    """Where rows come from: a file or a database. Each call reads the same rows in one order."""

    def __call__(self) -> Iterator[KbRow]: ...


def key_of(document_id: str) -> str:
    """The key AgentData gives to an id."""
    return document_id.replace("/", "__")


def as_document(row: KbRow, at_us: int) -> Document:
    """The row as a document; `at_us` stands in for missing times."""
    if row.problem:
        raise InvalidArgument(row.problem)
    document_id = normalize.document_id(row.document_id, "document_id")
    created_at_us = _instant(row.data.get("created_at"))
    updated_at_us = _instant(row.data.get("updated_at")) or created_at_us or at_us
    deleted_at_us = None
    if not row.is_live:
        deleted_at_us = _instant(row.data.get("deleted_at")) or updated_at_us
    metadata = _object(row.data.get("metadata"))
    title = metadata.pop("title", None)
    return Document(
        document_id=document_id,
        body=row.body,
        title=title if isinstance(title, str) else "",
        tags=_tags(metadata.pop("tags", None)),
        parent_id=_parent(row.data.get("parent_id"), document_id),
        mime=_mime(row.data),
        metadata=_others(row.data) | metadata,
        revision=row.revision or 0,
        created_at_us=created_at_us or updated_at_us,
        updated_at_us=updated_at_us,
        updated_by="",
        operation="import",
        deleted_at_us=deleted_at_us,
    )


def _object(value: Any) -> dict[str, Any]:
    """An object without nulls, which mean an absent key here."""
    if not isinstance(value, dict):
        return {}
    return {key: part for key, part in value.items() if part is not None}


def _others(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a document does not have: kept as metadata."""
    return _object({key: part for key, part in data.items() if key not in _KNOWN_FIELDS})


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(","))
    if isinstance(value, list):
        return tuple(tag if isinstance(tag, str) else orjson.dumps(tag).decode() for tag in value)
    return ()


def _parent(value: Any, document_id: str) -> str | None:
    if isinstance(value, str) and value:
        try:
            return normalize.prefix(value)
        except InvalidArgument:
            pass
    return parent_of(document_id)


def _mime(data: Mapping[str, Any]) -> str:
    content = data.get("content")
    declared = content.get("mime_type") if isinstance(content, dict) else data.get("mime_type")
    if isinstance(declared, str):
        kind = declared.partition(";")[0].strip().lower()
        if _MIME.fullmatch(kind):
            return kind
    body = content.get("body") if isinstance(content, dict) else content
    return MIME_DEFAULT if body is None or isinstance(body, str) else "application/json"


def _instant(value: Any) -> int | None:
    """From ISO text or seconds since 1970; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        instant_us = from_iso(value) if isinstance(value, str) else int(value * 1_000_000)
    except (ValueError, OverflowError):
        return None
    return instant_us if instant_us >= 0 else None
