"""A definition for a table as it is: which columns are probably its title, text, tags and times.

A proposal is made from names, types and a few rows, for a person to look at before it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zibaldone import extras
from zibaldone.access.principal import NAMESPACE_DEFAULT
from zibaldone.errors import InvalidArgument
from zibaldone.limits import SOURCE_SAMPLE_ROWS, SOURCE_STATEMENT_SECONDS_DEFAULT
from zibaldone.model.source import DocumentMap, Part, SourceDefinition
from zibaldone.pull.connect import open_source
from zibaldone.pull.reflect import ColumnInfo, TableInfo, reflect

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
class Roles:
    """What columns are taken for; empty where none seems to be that."""

    title: str = ""
    body: tuple[str, ...] = ()
    tags: str = ""
    created: str = ""
    updated: str = ""


def proposal(
    url: str,
    table: str,
    name: str,
    *,
    namespace: str = NAMESPACE_DEFAULT,
    environment: Mapping[str, str] | None = None,
) -> SourceDefinition:
    """A definition to be shown and changed before it is kept. Blocks: it asks the database.

    InvalidArgument: there is no such table, or no key or text in it.
    """
    draft = SourceDefinition(name, namespace, url, ("?",), DocumentMap(), table=table)
    given = os.environ if environment is None else environment
    with open_source(
        draft, given, seconds_max=SOURCE_STATEMENT_SECONDS_DEFAULT, is_tolerant=True
    ) as source:
        reflected = reflect(source, draft)
        info = reflected.info
        readable = [column.name for column in info.columns if column.kind != "binary"]
        statement = _select_some(reflected.selectable, readable)
        rows = [dict(zip(readable, row, strict=True)) for row in source.rows(statement)]
    key = info.primary_key or next(iter(info.unique_keys), ()) or _first_key(info)
    roles = propose(info.columns, key, rows)
    if not roles.body:
        raise InvalidArgument(
            f"{table!r} has no column of text, so there is nothing to search. Choose another "
            "table or view, or name the columns of the text.",
            field="table",
            columns=list(info.names),
        )
    document = DocumentMap(
        title=(Part(column=roles.title),) if roles.title else (),
        body=joined(roles.body),
        tags=roles.tags,
        created=roles.created,
        updated=roles.updated,
    )
    # Without an index on the key a watermark would not help.
    watermark = roles.updated if not info.is_view and info.is_unique(key) else ""
    made = SourceDefinition(name, namespace, url, key, document, table=table, watermark=watermark)
    return SourceDefinition.from_table(name, made.as_dict(), namespace)


def joined(columns: Sequence[str]) -> tuple[Part, ...]:
    """Columns of a body, with an empty line between them."""
    parts: list[Part] = []
    for column in columns:
        parts += [Part(text="\n\n"), Part(column=column)] if parts else [Part(column=column)]
    return tuple(parts)


def _select_some(selectable: Any, columns: Sequence[str]) -> Any:
    sqlalchemy = extras.require("pull", "sqlalchemy")
    chosen = [selectable.c[name] for name in columns]
    return sqlalchemy.select(*chosen).limit(SOURCE_SAMPLE_ROWS)


def _first_key(info: TableInfo) -> tuple[str, ...]:
    """Of a table or view without a unique index: a column that is named like a key."""
    names = ("id", f"{info.name}id", "key", "uuid", "guid")
    for name in names:
        for column in info.columns:
            if _plain(column.name) == _plain(name):
                return (column.name,)
    return (info.columns[0].name,)


def propose(
    columns: Sequence[ColumnInfo], key: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Roles:
    """What the columns probably are; `rows` are some rows of the table."""
    taken = {*key}
    texts = [column for column in columns if _is_text(column) and column.name not in taken]
    times = [column for column in columns if _is_time(column, rows)]
    time_names = {column.name for column in times}
    prose = [column for column in texts if column.name not in time_names]
    tags = _named(_TAGS, [c for c in columns if _is_text(c) or c.kind == "other"], taken)
    if tags is not None:
        taken.add(tags.name)
    body = _body(prose, rows, taken)
    taken |= {column.name for column in body}
    title = _title(prose, rows, taken)
    if not body:
        # Nothing reads like prose: whatever text there is can be searched.
        free = [column for column in prose if column.name not in taken and column is not title]
        body = free or ([] if title is None else [title])
    return Roles(
        title=_name_of(title),
        body=tuple(column.name for column in body),
        tags=_name_of(tags),
        created=_name_of(_named(_CREATED, times, set())),
        updated=_name_of(_named(_UPDATED, times, set())),
    )


def _name_of(column: ColumnInfo | None) -> str:
    return "" if column is None else column.name


def _is_text(column: ColumnInfo) -> bool:
    return column.kind in ("text", "long")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _named(
    names: Sequence[str], columns: Sequence[ColumnInfo], taken: set[str]
) -> ColumnInfo | None:
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
    texts: Sequence[ColumnInfo], rows: Sequence[Mapping[str, Any]], taken: set[str]
) -> list[ColumnInfo]:
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
    texts: Sequence[ColumnInfo], rows: Sequence[Mapping[str, Any]], taken: set[str]
) -> ColumnInfo | None:
    short = [
        column
        for column in texts
        if column.name not in taken and _mean_chars(column.name, rows) <= _SHORT_CHARS_MAX
    ]
    return _named(_TITLES, short, set())


def _mean_chars(name: str, rows: Sequence[Mapping[str, Any]]) -> float:
    lengths = [len(row[name]) for row in rows if isinstance(row.get(name), str)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def _is_time(column: ColumnInfo, rows: Sequence[Mapping[str, Any]]) -> bool:
    if column.kind in ("time", "date"):
        return True
    if not _is_text(column):
        return False
    values = [row[column.name] for row in rows if isinstance(row.get(column.name), str)]
    return bool(values) and all(_TIME_LIKE.fullmatch(value) for value in values)
