"""What a database says of its tables.

Identifiers in statements come from here only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from zibaldone import extras
from zibaldone.errors import InvalidArgument
from zibaldone.limits import SOURCE_STATEMENT_SECONDS_DEFAULT
from zibaldone.model.source import DocumentMap, SourceDefinition, nearest
from zibaldone.pull.connect import Connection

ColumnKind = Literal["whole", "number", "text", "long", "date", "time", "flag", "binary", "other"]
"""long: a text that may be long; date: days only; time: a moment."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    name: str
    kind: ColumnKind
    is_nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table, view or SELECT, as far as it concerns us."""

    name: str
    columns: tuple[ColumnInfo, ...]
    is_view: bool = False
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> ColumnInfo | None:
        return next((column for column in self.columns if column.name == name), None)

    def is_unique(self, key: tuple[str, ...]) -> bool:
        """Whether the database itself keeps rows apart by these columns."""
        keys = (self.primary_key, *self.unique_keys)
        return any(unique and set(unique) <= set(key) for unique in keys)


@dataclass(frozen=True, slots=True)
class Reflected:
    info: TableInfo
    selectable: Any
    """SQLAlchemy's, with its columns under `.c`."""


def tables(url: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Tables and views of a database, those of the default schema first.

    `url` may hold `${NAME}`.
    """
    with _connected(url, environment) as connection, connection.errors():
        inspector = connection.inspector
        names = [*inspector.get_table_names(), *inspector.get_view_names()]
        default = inspector.default_schema_name
        for schema in inspector.get_schema_names():
            if schema == default or schema in _system_schemas(connection):
                continue
            found = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
            names += [f"{schema}.{name}" for name in found]
        return list(dict.fromkeys(names))


def reflect(connection: Connection, definition: SourceDefinition) -> Reflected:
    """The table, view or SELECT of a definition. InvalidArgument: there is no such table."""
    if definition.select:
        return _reflect_select(connection, definition)
    with connection.timed():
        inspector = connection.inspector
        schema, table = _place(inspector, definition.table)
        if table is None:
            known = [*inspector.get_table_names(), *inspector.get_view_names()]
            hint = nearest(definition.table, known)
            suggestion = f" Did you mean {hint!r}?" if hint else ""
            raise InvalidArgument(
                f"The source {definition.name!r}: the database has no table or view "
                f"{definition.table!r}.{suggestion}",
                field="table",
                reason="missing",
            )
        return _reflect_table(inspector, schema, table)


def _reflect_table(inspector: Any, schema: str | None, table: str) -> Reflected:
    sqlalchemy = extras.require("pull", "sqlalchemy")
    described = inspector.get_columns(table, schema=schema)
    columns = tuple(
        ColumnInfo(column["name"], _kind(column["type"]), bool(column.get("nullable", True)))
        for column in described
    )
    is_view = table in inspector.get_view_names(schema)
    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    if not is_view:
        primary = tuple(inspector.get_pk_constraint(table, schema=schema)["constrained_columns"])
        unique = _unique_keys(inspector, table, schema)
    # No types: values go to the driver and come from it as they are.
    listed = [sqlalchemy.column(column.name) for column in columns]
    selectable = sqlalchemy.table(table, *listed, schema=schema)
    return Reflected(TableInfo(table, columns, is_view, primary, unique), selectable)


def _unique_keys(inspector: Any, table: str, schema: str | None) -> tuple[tuple[str, ...], ...]:
    found = [
        tuple(item["column_names"]) for item in inspector.get_unique_constraints(table, schema)
    ]
    found += [
        tuple(item["column_names"])
        for item in inspector.get_indexes(table, schema)
        if item.get("unique")
    ]
    return tuple(dict.fromkeys(key for key in found if key and all(key)))


def _reflect_select(connection: Connection, definition: SourceDefinition) -> Reflected:
    sqlalchemy = extras.require("pull", "sqlalchemy")
    query = sqlalchemy.text(_literal(definition.select))
    with connection.timed():
        nothing = sqlalchemy.select(sqlalchemy.text("*")).where(sqlalchemy.text("1 = 0"))
        result = connection.raw.execute(nothing.select_from(query.columns().subquery("q")))
        names = [description[0] for description in result.cursor.description]
        result.close()
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InvalidArgument(
            f"The source {definition.name!r}: its SELECT gives two columns the name "
            f"{doubled[0]!r}; rename one of them with AS.",
            field="select",
        )
    columns = tuple(ColumnInfo(name, "other") for name in names)
    selectable = query.columns(*(sqlalchemy.column(name) for name in names)).subquery("q")
    return Reflected(TableInfo("(select)", columns, is_view=True), selectable)


def literal_sql(text: str) -> Any:
    """The operator's own SQL, in which a colon means nothing to us."""
    return extras.require("pull", "sqlalchemy").text(_literal(text))


def _literal(text: str) -> str:
    return (
        text.replace("\\", "\\\\").replace(":", "\\:") if "\\" in text else text.replace(":", "\\:")
    )


def _place(inspector: Any, written: str) -> tuple[str | None, str | None]:
    """Schema and table of what is written in a definition, `schema.table` or a name with a dot."""
    if inspector.has_table(written):
        return None, written
    schema, dot, table = written.partition(".")
    if dot and schema in inspector.get_schema_names() and inspector.has_table(table, schema):
        return schema, table
    return None, None


def _kind(type_: Any) -> ColumnKind:
    types = extras.require("pull", "sqlalchemy.types")
    match type_:
        case types.LargeBinary() | types._Binary():  # noqa: SLF001 - the base of all binary types
            return "binary"
        case types.Boolean():
            return "flag"
        case types.Integer():
            return "whole"
        case types.Numeric():
            return "number"
        case types.DateTime():
            return "time"
        case types.Date():
            return "date"
        case types.Text():
            return "long"
        case types.String():
            length = getattr(type_, "length", None)
            return "text" if length is not None and length <= 1_000 else "long"
        case types.NullType():
            return "other"
    return "binary" if type(type_).__name__.upper() in ("BIT", "GEOMETRY", "BYTEA") else "other"


def _connected(
    url: str, environment: Mapping[str, str] | None, name: str = "new source"
) -> Connection:
    draft = SourceDefinition("new", "default", url, ("?",), DocumentMap())
    resolved = draft.resolved_url(os.environ if environment is None else environment)
    return Connection(name, resolved, seconds_max=SOURCE_STATEMENT_SECONDS_DEFAULT)


def _system_schemas(connection: Connection) -> set[str]:
    if connection.dialect_name == "mysql":
        return {"information_schema", "performance_schema", "mysql", "sys"}
    return {"information_schema"}
