"""A definition held against the database that it is about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zibaldone import extras
from zibaldone.errors import InvalidArgument
from zibaldone.jobs.schedule import next_run_us
from zibaldone.model.source import SourceDefinition, nearest
from zibaldone.pull.connect import Connection, open_source
from zibaldone.pull.mapping import Mapper
from zibaldone.pull.reflect import Reflected, TableInfo, literal_sql, reflect


@dataclass(frozen=True, slots=True)
class Plan:
    """What a definition asks of its database, as statements."""

    definition: SourceDefinition
    info: TableInfo
    mapper: Mapper
    light_columns: tuple[str, ...]
    """The key, and what shows that a row has changed."""
    has_light: bool
    """Rows are read twice: all of them lightly, those that changed whole and by their keys."""
    selectable: Any

    def select(self, columns: tuple[str, ...], *, in_order: bool = True) -> Any:
        """All rows, in the order of their keys."""
        chosen = [self.selectable.c[name] for name in columns]
        statement = extras.require("pull", "sqlalchemy").select(*chosen)
        if self.definition.where:
            statement = statement.where(literal_sql(f"({self.definition.where})"))
        if in_order:
            statement = statement.order_by(
                *(self.selectable.c[name] for name in self.definition.key)
            )
        return statement

    def select_keys(self, columns: tuple[str, ...], keys: list[tuple[Any, ...]]) -> Any:
        """Rows by their keys, which are bound."""
        sqlalchemy = extras.require("pull", "sqlalchemy")
        key = [self.selectable.c[name] for name in self.definition.key]
        statement = self.select(columns, in_order=False)
        if len(key) == 1:
            # Untyped: else all are cast to what the first one would be, such as a small integer.
            values = sqlalchemy.bindparam(
                "keys", [value for (value,) in keys], sqlalchemy.types.NULLTYPE, expanding=True
            )
            return statement.where(key[0].in_(values))
        return statement.where(sqlalchemy.tuple_(*key).in_(keys))

    def count(self) -> Any:
        sqlalchemy = extras.require("pull", "sqlalchemy")
        return self.select((self.definition.key[0],), in_order=False).with_only_columns(
            sqlalchemy.func.count(), maintain_column_froms=True
        )


def check(definition: SourceDefinition, environment: Mapping[str, str] | None = None) -> list[str]:
    """All that is wrong with a definition, held against its real table; empty: nothing.

    SourceUnavailable: the database cannot be asked.
    """
    problems = []
    if definition.schedule:
        try:
            next_run_us(definition.schedule, 0)
        except InvalidArgument as error:
            problems.append(f"schedule: {error.message}")
    try:
        with open_source(definition, os.environ if environment is None else environment) as source:
            reflected = reflect(source, definition)
            found = _problems(definition, reflected.info)
            problems += found
            if not found:
                problems += _trial(source, definition, reflected)
    except InvalidArgument as error:
        problems.append(error.message)
    return problems


def plan(connection: Connection, definition: SourceDefinition) -> Plan:
    """How to read a source. InvalidArgument: the definition does not fit, with all problems."""
    reflected = reflect(connection, definition)
    problems = _problems(definition, reflected.info)
    if problems:
        raise InvalidArgument(
            f"The source {definition.name!r} does not fit its table: " + " ".join(problems),
            field="source",
            problems=problems,
            reason="missing",
        )
    return _plan(definition, reflected)


def _plan(definition: SourceDefinition, reflected: Reflected) -> Plan:
    info = reflected.info
    mapper = Mapper(definition, info)
    # Without an index on the key each look by key would read the whole table or view.
    has_light = bool(definition.watermark) and not info.is_view and info.is_unique(definition.key)
    light = tuple(dict.fromkeys((*definition.key, definition.watermark)))
    return Plan(
        definition,
        info,
        mapper,
        light if has_light else mapper.columns,
        has_light,
        reflected.selectable,
    )


def _problems(definition: SourceDefinition, info: TableInfo) -> list[str]:
    document = definition.document
    named = {
        "key": definition.key,
        "watermark": (definition.watermark,) if definition.watermark else (),
        "refetch": definition.refetch or (),
        "document.title": tuple(part.column for part in document.title if part.column),
        "document.body": tuple(part.column for part in document.body if part.column),
        "document.metadata": tuple((document.metadata or {}).values()),
        "document.tags": (document.tags,) if document.tags else (),
        "document.created": (document.created,) if document.created else (),
        "document.updated": (document.updated,) if document.updated else (),
    }
    problems = []
    for field, columns in named.items():
        for name in columns:
            column = info.column(name)
            if column is None:
                hint = nearest(name, info.names)
                suggestion = f" Did you mean {hint!r}?" if hint else ""
                problems.append(f"{field}: {info.name} has no column {name!r}.{suggestion}")
            elif column.kind == "binary" and field in ("document.title", "document.body"):
                problems.append(f"{field}: {name!r} is a binary column and has no text.")
    return problems


def _trial(source: Connection, definition: SourceDefinition, reflected: Reflected) -> list[str]:
    """Read one row: a condition or a view may still be wrong."""
    made = _plan(definition, reflected)
    try:
        source.rows(made.select(made.mapper.columns, in_order=False).limit(1))
    except InvalidArgument as error:
        field = "where" if definition.where else "table"
        return [f"{field}: {error.message}"]
    return []


def warnings(definition: SourceDefinition, info: TableInfo) -> list[str]:
    """What works, and could be better."""
    notes = []
    if not info.is_unique(definition.key) and not info.is_view:
        notes.append(
            f"No unique index covers the key ({', '.join(definition.key)}): rows that share a key "
            "fail, and each sync sorts the table."
        )
    if not definition.watermark:
        notes.append("There is no watermark: each sync reads every row whole.")
    elif info.is_view or not info.is_unique(definition.key):
        notes.append("The watermark is not used: rows cannot be read by key with an index.")
    binary = Mapper(definition, info).left_out
    if binary:
        notes.append(f"Binary columns are left out: {', '.join(binary)}.")
    return notes
