"""Which columns of a table are probably its title, its text, its tags and its times.

A proposal is made from names, types and a few rows, for a person to look at before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

ColumnKind = Literal["integer", "number", "boolean", "text", "time", "binary", "json", "other"]

_TITLES = ("title", "subject", "headline", "heading", "name", "label", "summary", "caption")
_BODIES = (
    *("body", "content", "contents", "text", "description", "message", "comment", "note", "notes"),
    *("details", "abstract", "article", "document", "html", "markdown", "summary", "answer"),
    *("question", "bio", "review", "remarks", "payload"),
)
_TAGS = ("tags", "tag", "labels", "keywords", "topics", "categories")
_CREATED = (
    *("created", "createdat", "creationdate", "createdon", "datecreated", "createdate"),
    *("createtime", "insertedat", "addedat", "publishedat", "posted", "postedat", "published"),
)
_UPDATED = (
    *("updated", "updatedat", "updatedon", "modified", "modifiedat", "modifiedon", "lastmodified"),
    *("lastupdated", "lastupdate", "dateupdated", "datemodified", "updatetime", "changedat"),
    *("modifieddate", "updateddate", "lastmodifiedat", "lastupdatedat", "rowversion"),
)
_LONG_CHARS = 60
"""Text that is longer than this on average is taken for prose."""

_SHORT_CHARS_MAX = 300
"""A title is not longer."""

_TIME_LIKE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column as reflection sees it."""

    name: str
    kind: ColumnKind
    length: int | None = None
    """Of a text type that has a limit."""


@dataclass(frozen=True, slots=True)
class Proposal:
    key: tuple[str, ...]
    title: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    tags: str | None = None
    created: str | None = None
    updated: str | None = None
    watermark: str | None = None
    left_out: tuple[str, ...] = ()
    """Columns that cannot be part of a document: their type is binary."""


def propose(
    columns: Sequence[ColumnFacts], key: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Proposal:
    """What the columns probably are; `rows` are the first few rows of the table."""
    taken = {*key}
    texts = [column for column in columns if column.kind == "text" and column.name not in taken]
    times = [column for column in columns if _is_time(column, rows)]
    time_names = {column.name for column in times}
    prose = [column for column in texts if column.name not in time_names]
    tags = _named(_TAGS, [c for c in columns if c.kind in ("text", "json")], taken)
    if tags is not None:
        taken.add(tags.name)
    body = _body(prose, rows, taken)
    taken |= {column.name for column in body}
    title = _title(prose, rows, taken)
    if not body:
        # Nothing reads like prose: whatever text there is can be searched.
        free = [column for column in prose if column.name not in taken and column is not title]
        body = free or ([] if title is None else [title])
    created = _named(_CREATED, times, set())
    updated = _named(_UPDATED, times, set())
    return Proposal(
        key=tuple(key),
        title=() if title is None else (title.name,),
        body=tuple(column.name for column in body),
        tags=None if tags is None else tags.name,
        created=None if created is None else created.name,
        updated=None if updated is None else updated.name,
        watermark=None if updated is None else updated.name,
        left_out=tuple(column.name for column in columns if column.kind == "binary"),
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _named(
    names: Sequence[str], columns: Sequence[ColumnFacts], taken: set[str]
) -> ColumnFacts | None:
    """The first column with one of the names, or one that ends so (`post_title`)."""
    free = [column for column in columns if column.name not in taken]
    for name in names:
        for column in free:
            if _plain(column.name) == name:
                return column
    for name in names:
        for column in free:
            if re.search(rf"(?:[_\s-]{name}|[a-z]{name.capitalize()})$", column.name):
                return column
    return None


def _body(
    texts: Sequence[ColumnFacts], rows: Sequence[Mapping[str, Any]], taken: set[str]
) -> list[ColumnFacts]:
    free = [column for column in texts if column.name not in taken]
    long = [column for column in free if _mean_chars(column.name, rows) > _LONG_CHARS]
    named = _named(_BODIES, long, set()) or _named(_BODIES[:-1], free, set())
    if named is None:
        # A column that is named as a title is one, unless it is far longer than a title.
        long = [
            column
            for column in long
            if _plain(column.name) not in _TITLES
            or _mean_chars(column.name, rows) > _SHORT_CHARS_MAX
        ]
        return long[:3]
    more = [c for c in long if c is not named and _mean_chars(c.name, rows) > _SHORT_CHARS_MAX]
    return [named, *more[:2]]


def _title(
    texts: Sequence[ColumnFacts], rows: Sequence[Mapping[str, Any]], taken: set[str]
) -> ColumnFacts | None:
    short = [
        column
        for column in texts
        if column.name not in taken and _mean_chars(column.name, rows) <= _SHORT_CHARS_MAX
    ]
    return _named(_TITLES, short, set())


def _mean_chars(name: str, rows: Sequence[Mapping[str, Any]]) -> float:
    lengths = [len(row[name]) for row in rows if isinstance(row.get(name), str)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def _is_time(column: ColumnFacts, rows: Sequence[Mapping[str, Any]]) -> bool:
    if column.kind == "time":
        return True
    if column.kind != "text":
        return False
    values = [row[column.name] for row in rows if isinstance(row.get(column.name), str)]
    return bool(values) and all(_TIME_LIKE.fullmatch(value) for value in values)
