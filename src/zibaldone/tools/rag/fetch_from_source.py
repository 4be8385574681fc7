"""rag.fetch_from_source: the rows behind documents, read again from their databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import InvalidArgument, NotConfigured
from zibaldone.limits import ECHO_CHARS_MAX, RAG_IDS_MAX, RAG_RESPONSE_BYTES_MAX, RAG_SECONDS_MAX
from zibaldone.model.source import PULLED
from zibaldone.pull import registry
from zibaldone.pull.refetch import refetch
from zibaldone.store.port import Reader, SourceRecord
from zibaldone.tools.answer import size_bytes
from zibaldone.tools.rag.fields import CallStats, Clock, DocId, Words, bytes_left, stored_id
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class FetchLimits(Arguments):
    max_rows: int = Field(10, ge=1, le=RAG_IDS_MAX)
    max_bytes: int = Field(200_000, ge=1, le=RAG_RESPONSE_BYTES_MAX)


class FetchFromSource(Arguments):
    doc_ids: list[DocId] = Field(min_length=1, max_length=RAG_IDS_MAX)
    columns: Words = Field([], description="Default: all that may be fetched")
    limits: FetchLimits = FetchLimits()


class FetchedRow(TypedDict):
    doc_id: str
    source_name: str
    row: Mapping[str, Any]


class FetchedRows(TypedDict):
    rows: list[FetchedRow]
    missing: list[str]
    left_out: NotRequired[list[str]]
    truncated: bool
    stats: CallStats


@dataclass(slots=True)
class _Wanted:
    """The rows that are wanted of one source: keys by the ids of their documents."""

    record: SourceRecord
    keys: dict[str, Mapping[str, Any]] = field(default_factory=dict)


async def handle(call: Call, given: FetchFromSource) -> FetchedRows:
    clock = Clock()
    names: dict[str, str] = {}
    for name in given.doc_ids:
        names.setdefault(stored_id(name) or name, name)
    rows_max = given.limits.max_rows
    wanted = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: _wanted(reader, [i for i in list(names)[:rows_max] if stored_id(i)]),
        seconds_max=clock.left_s,
    )
    rows: dict[str, FetchedRow | None] = dict.fromkeys(list(names)[:rows_max])
    for source in wanted:
        async with call.runtime.refetches:
            fetched = await refetch(
                registry.definition_of(source.record),
                list(source.keys.values()),
                given.columns or None,
                rows_max=rows_max,
                bytes_max=given.limits.max_bytes,
                seconds_max=clock.left_s,
            )
        found = [refetched.row for refetched in fetched.rows]
        for doc_id, row in zip(source.keys, found, strict=False):
            if row is not None:
                name = source.record.name
                rows[doc_id] = {"doc_id": doc_id, "source_name": name, "row": row}
        for doc_id in list(source.keys)[len(found) :]:
            del rows[doc_id]
    return _answer(names, rows, given.limits, clock)


def _wanted(reader: Reader, doc_ids: Sequence[str]) -> list[_Wanted]:
    records = {record.source_id: record for record in reader.sources.all() if record.kind == PULLED}
    if not records:
        raise NotConfigured("No database is set up as a source, so there is no row to fetch.")
    wanted: dict[int, _Wanted] = {}
    for doc_id in doc_ids:
        document = reader.documents.peek(doc_id, 0)
        if document is None or not document.is_live:
            continue
        record = records.get(document.source_id)
        if record is None or document.pk is None:
            raise InvalidArgument(
                f"{doc_id[:ECHO_CHARS_MAX]!r} is not from a database; rag.get_docs has it.",
                field="doc_ids",
            )
        if record.enabled:
            place = wanted.setdefault(record.source_id, _Wanted(record))
            place.keys[doc_id] = document.pk
    return list(wanted.values())


def _answer(
    names: Mapping[str, str],
    rows: Mapping[str, FetchedRow | None],
    limits: FetchLimits,
    clock: Clock,
) -> FetchedRows:
    """In the order asked for, as many as fit; the rest is named. `rows`: None where there is none;
    those that are beyond a limit are not in it."""
    answer: FetchedRows = {"rows": [], "missing": [], "truncated": False, "stats": {"ms": 0.0}}
    left_bytes = min(limits.max_bytes, bytes_left({**answer, "left_out": list(names.values())}))
    left_out = []
    for doc_id, name in names.items():
        row = rows.get(doc_id)
        if row is not None and (taken_bytes := size_bytes(row)) <= left_bytes:
            answer["rows"].append(row)
            left_bytes -= taken_bytes
        elif doc_id in rows and row is None:
            answer["missing"].append(name)
        else:
            left_out.append(name)
    if left_out:
        answer["left_out"] = left_out
        answer["truncated"] = True
    answer["stats"] = {"ms": clock.ms}
    return answer


TOOL = ToolSpec(
    name="rag.fetch_from_source",
    title="Rows from the source",
    description=(
        "The authoritative row behind a document, read from its database by primary key. Names "
        "documents that are unknown or whose row is gone, and those beyond a limit."
    ),
    arguments=FetchFromSource,
    result=FetchedRows,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
