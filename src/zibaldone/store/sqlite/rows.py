"""Rows of the tables to values of the model, and back."""

from __future__ import annotations

import zlib
from types import NoneType
from typing import Any, TypeVar

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.document import Document, DocumentHead, DocumentPart, Revision
from zibaldone.store.port import Listing
from zibaldone.store.sqlite.faults import UnreadableRowError
from zibaldone.text.normalize import prefix_end

T = TypeVar("T")
Row = tuple[Any, ...]
Kinds = tuple[type | tuple[type, ...], ...]

TEXT_OR_NONE = (str, NoneType)
INT_OR_NONE = (int, NoneType)
_HEAD: Kinds = (str, TEXT_OR_NONE, str, str, int)
_LISTING: Kinds = (str, int, TEXT_OR_NONE, int)
_REVISION: Kinds = (int, str, str, str, str, int, int, str, str)
_FIELDS: Kinds = (
    *(int, str, TEXT_OR_NONE, str, str, str, str, int, int, int),
    *(str, str, INT_OR_NONE, int, TEXT_OR_NONE, str, TEXT_OR_NONE),
)
_DOCUMENT: Kinds = (*_FIELDS, str)
_DOCUMENT_PART: Kinds = (*_FIELDS, int, str)


def dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def tenant_values(tenant: Tenant) -> dict[str, Any]:
    """The tenant filter, as every statement about given ids takes it."""
    return {
        "namespace": tenant.namespace,
        "tenant_start": tenant.prefix,
        "tenant_end": prefix_end(tenant.prefix),
    }


def require(row: Row, kinds: Kinds) -> Row:
    """A damaged page can hold a value of any type, also where the table allows one only."""
    if not all(map(isinstance, row, kinds)):
        raise UnreadableRowError("a stored row holds values of the wrong type")
    return row


def loads(stored: str, kind: type[T]) -> T:
    value = orjson.loads(stored)
    if not isinstance(value, kind):
        raise UnreadableRowError("a stored value is not what was written")
    return value


def document(row: Row) -> Document:
    require(row, _DOCUMENT)
    return Document(*_fields(row), body=row[17])


def document_part(row: Row, chars_max: int) -> DocumentPart:
    require(row, _DOCUMENT_PART)
    return DocumentPart(*_fields(row), content_chars=row[17], beginning=row[18][:chars_max])


def _fields(row: Row) -> tuple[Any, ...]:
    """The values of `DocumentFields`, in its order: names would cost a fifth of a read."""
    stored_tags, metadata, pk = row[4], row[6], row[14]
    return (
        *(row[1], row[3], tags(stored_tags), row[2], row[5]),
        {} if metadata == "{}" else loads(metadata, dict),
        *row[7:14],
        None if pk is None else loads(pk, dict),
        *(row[15], row[16], row[0]),
    )


def storage_key(document: Document) -> int:
    if document.storage_key is None:
        raise ValueError(f"{document.document_id!r} is not stored yet")
    return document.storage_key


def document_values(document: Document) -> dict[str, Any]:
    return {
        "document_id": document.document_id,
        "source_id": document.source_id,
        "parent_id": document.parent_id,
        "title": document.title,
        "tags": dumps(document.tags),
        "mime": document.mime,
        "metadata": dumps(document.metadata),
        "pk": None if document.pk is None else dumps(document.pk),
        "revision": document.revision,
        "content_hash": document.content_hash,
        "content_chars": len(document.body),
        "created_at_us": document.created_at_us,
        "updated_at_us": document.updated_at_us,
        "deleted_at_us": document.deleted_at_us,
        "updated_by": document.updated_by,
        "operation": document.operation,
        "vector_status": document.vector_status,
        "vector_error": document.vector_error,
    }


def head(row: Row) -> DocumentHead:
    require(row, _HEAD)
    return DocumentHead(row[0], row[1], row[2], tags(row[3]), row[4])


class JsonListing(Listing):
    """A page that the database wrote as JSON."""

    __slots__ = ("_count", "_items_json", "_last_id")

    def __init__(self, items_json: str, count: int, last_id: str | None, has_more: bool) -> None:
        super().__init__((), has_more)
        self._items_json = items_json
        self._count = count
        self._last_id = last_id

    @property
    def heads(self) -> list[DocumentHead]:
        return [
            DocumentHead(**{**item, "tags": tuple(item["tags"])})
            for item in orjson.loads(self._items_json)
        ]

    @property
    def count(self) -> int:
        return self._count

    @property
    def last_id(self) -> str | None:
        return self._last_id

    def to_json(self) -> str:
        return self._items_json


def listing(row: Row) -> Listing:
    items_json, count, last_id, has_more = require(row, _LISTING)
    return JsonListing(items_json, count, last_id, bool(has_more))


def tags(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(loads(stored, list))


def revision(document_id: str, row: Row) -> Revision:
    require(row, (*_REVISION, bytes))  # the body is not always among them
    return Revision(
        document_id=document_id,
        revision=row[0],
        title=row[1],
        tags=tags(row[2]),
        mime=row[3],
        metadata=loads(row[4], dict),
        content_chars=row[5],
        written_at_us=row[6],
        written_by=row[7],
        operation=row[8],
        body=unpack(row[9]) if len(row) > 9 else "",
    )


def pack(body: str) -> bytes:
    """Compressed, at the fastest level: old bodies are kept forever and rarely read."""
    return zlib.compress(body.encode(), 1)


def unpack(stored: bytes) -> str:
    return zlib.decompress(stored).decode()
