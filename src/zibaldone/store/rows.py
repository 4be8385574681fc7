"""Rows of the tables to values of the model, and back; the same for every engine."""

from __future__ import annotations

import zlib
from types import NoneType
from typing import Any, TypeVar

import orjson

from zibaldone.errors import Conflict, Forbidden, InvalidArgument, NotFound
from zibaldone.model.chunk import ChunkView
from zibaldone.model.document import (
    KB_SOURCE_ID,
    Document,
    DocumentHead,
    DocumentPart,
    RecentHead,
    Revision,
)
from zibaldone.model.job import Schedule
from zibaldone.model.pulled import PulledBlock, PulledRow, PulledRun
from zibaldone.store.definition import parse_chunking
from zibaldone.store.port import SourceRecord
from zibaldone.store.upkeep import Source

T = TypeVar("T")


class UnreadableRowError(Exception):
    """A row that cannot be what was written."""


Row = tuple[Any, ...]
Kinds = tuple[type | tuple[type, ...], ...]

TEXT_OR_NONE = (str, NoneType)
INT_OR_NONE = (int, NoneType)
_HEAD: Kinds = (str, TEXT_OR_NONE, str, str, int)
_VIEW: Kinds = (int, str, int, str, str, str, int, int, str, str, str, int)
_SOURCE: Kinds = (int, str, str, str, int, str, int, int, int, INT_OR_NONE)
_SOURCE_RECORD: Kinds = (int, str, str, str, int, str, INT_OR_NONE)
_PULLED_RUN: Kinds = (int, int)
_PULLED_BLOCK: Kinds = (int, int, bytes, str, int)
_PULLED_ROW: Kinds = (str, int, int, bytes)
_SCHEDULE: Kinds = (str, str, str, str, str, int, INT_OR_NONE)
_REVISION: Kinds = (int, str, str, str, str, int, int, str, str)
_FIELDS: Kinds = (
    *(int, str, TEXT_OR_NONE, str, str, str, str, int, int, int),
    *(str, str, INT_OR_NONE, int, TEXT_OR_NONE, str, TEXT_OR_NONE),
)
_DOCUMENT: Kinds = (*_FIELDS, str)
_DOCUMENT_PART: Kinds = (*_FIELDS, int, str)


def dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


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


def recent_head(row: Row) -> RecentHead:
    require(row, (*_HEAD, int))
    return RecentHead(row[0], row[1], row[2], tags(row[3]), row[4], row[5])


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


def chunk_view(row: Row) -> ChunkView:
    require(row, _VIEW)
    key, document_id, index, title, heading, text, start, *of_document = row
    source_id, source, metadata, listed, updated_at_us = of_document
    return ChunkView(
        chunk_key=key,
        document_id=document_id,
        chunk_index=index,
        title=title,
        heading=heading,
        text=text,
        start=start,
        source_id=source_id,
        source_name=source,
        metadata=orjson.loads(metadata),
        tags=tags(listed),
        updated_at_us=updated_at_us,
    )


def source(row: Row) -> Source:
    require(row, _SOURCE)
    source_id, namespace, name, kind, enabled, definition, documents, chunks, is_cut, synced = row
    chunking, problem = None, ""
    try:
        chunking = parse_chunking(definition)
    except InvalidArgument as error:
        problem = error.message
    return Source(
        source_id=source_id,
        namespace=namespace,
        name=name,
        kind=kind,
        enabled=bool(enabled),
        documents=documents,
        chunks=chunks,
        chunking=chunking,
        problem=problem,
        is_cut=bool(is_cut),
        definition=source_definition(definition),
        last_sync_at_us=synced,
    )


def source_record(row: Row) -> SourceRecord:
    source_id, namespace, name, kind, enabled, definition, synced = require(row, _SOURCE_RECORD)
    return SourceRecord(
        source_id, namespace, name, kind, bool(enabled), source_definition(definition), synced
    )


def source_definition(stored: str) -> dict[str, Any]:
    """A definition that is no object has nothing in it."""
    definition = orjson.loads(stored)
    return definition if isinstance(definition, dict) else {}


def require_removable(source_id: int) -> None:
    if source_id == KB_SOURCE_ID:
        raise Forbidden("The built-in source cannot be changed or removed.")


def no_such_source(source_id: int) -> NotFound:
    return NotFound(f"There is no source {source_id}.", source_id=source_id)


def name_is_taken(name: str) -> Conflict:
    return Conflict(f"A source {name!r} exists already.", source=name)


def documents_are_left(source_id: int) -> Conflict:
    return Conflict(
        "The source still has documents; it can be removed when they are deleted.",
        source_id=source_id,
    )


def pulled_run(row: Row) -> PulledRun:
    run, is_complete = require(row, _PULLED_RUN)
    return PulledRun(run, bool(is_complete))


def pulled_block(row: Row) -> PulledBlock:
    block, rows, digest, first_key, is_settled = require(row, _PULLED_BLOCK)
    return PulledBlock(block, rows, digest, first_key, bool(is_settled))


def pulled_block_values(block: PulledBlock) -> dict[str, Any]:
    return {
        "block": block.block,
        "rows": block.rows,
        "digest": block.digest,
        "first_key": block.first_key,
        "is_settled": int(block.is_settled),
    }


def pulled_row(row: Row) -> PulledRow:
    return PulledRow(*require(row, _PULLED_ROW))


def require_same_run(last: int | None, run: int) -> None:
    if last != run:
        raise Conflict(
            "Another sync of the source has begun, or the source was removed; this one stops.",
            run=run,
        )


def schedule(row: Row) -> Schedule:
    name, cron, kind, namespace, payload, next_us, last_us = require(row, _SCHEDULE)
    return Schedule(name, cron, kind, namespace, loads(payload, dict), next_us, last_us)


def schedule_values(schedule: Schedule) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "kind": schedule.kind,
        "namespace": schedule.namespace,
        "payload": dumps(schedule.payload),
        "next_run_at_us": schedule.next_run_at_us,
        "last_run_at_us": schedule.last_run_at_us,
    }


def revision_values(document: Document) -> dict[str, Any]:
    """What is kept of a state that is about to be replaced."""
    return {
        "document_key": document.storage_key,
        "revision": document.revision,
        "title": document.title,
        "tags": dumps(document.tags),
        "mime": document.mime,
        "metadata": dumps(document.metadata),
        "content_chars": len(document.body),
        "written_at_us": document.updated_at_us,
        "written_by": document.updated_by,
        "operation": document.operation,
        "body": pack(document.body),
    }
