"""Whole tables of the database, for moving them from or to another store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from zibaldone.model.chunk import ChunkTerms
from zibaldone.model.vector import np
from zibaldone.store import rows as stored
from zibaldone.store.postgres.connection import Raw, Transaction
from zibaldone.store.postgres.postings import has_more, post
from zibaldone.store.postgres.terms import add_terms
from zibaldone.store.postgres.vectors import as_array
from zibaldone.store.tables import CHUNKS, TABLES, Column, Key, Row, Table

NOTES = "zibaldone.transfer"
"""The table that is there as long as the store is being filled."""

_TYPES = {
    "int": "bigint",
    "text": "text",
    "bytes": "bytea",
    "float": "double precision",
    "vector": "text",
}

_OWNED_BY = {
    "bodies": "document_key",
    "revisions": "document_key",
    "facets": "document_key",
    "document_tags": "document_key",
    "chunks": "document_key",
}
"""Tables that say the namespace of their document."""

_DERIVED = (
    "index_workers",
    "usage_changes",
    "chunk_terms",
    "unposted",
    "removed_terms",
    "segments",
    "postings",
    "posting_waste",
    "term_statistics",
    "new_terms",
    "vector_mirrors",
    "vector_mirror_changes",
)

_USAGE = """(
    SELECT namespace, sum(documents)::bigint AS documents, sum(revisions)::bigint AS revisions,
           sum(bytes)::bigint AS bytes
    FROM (SELECT namespace, documents, revisions, bytes FROM zibaldone.usage
          UNION ALL
          SELECT namespace, documents, revisions, bytes FROM zibaldone.usage_changes) counted
    GROUP BY namespace)"""
"""What each namespace holds is in two tables."""

_OF_CHUNKS = "EXISTS (SELECT 1 FROM zibaldone.chunks c WHERE c.chunk_key = t.chunk_key)"


def is_being_filled(raw: Raw) -> bool:
    row = raw.execute("SELECT to_regclass(%s) IS NOT NULL", (NOTES,)).fetchone()
    return row == (True,)


class TransferUpkeep:
    """Statements are made from the description of the tables."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def read(self, table: Table, after: Key | None, *, rows_max: int, bytes_max: int) -> list[Row]:
        key = ", ".join(table.key)
        conditions = [_OF_CHUNKS] if table.name == "vectors" else []
        values: dict[str, Any] = {"rows_max": rows_max, "bytes_max": bytes_max}
        if after is not None:
            places = ", ".join(f"%(after{number})s" for number in range(len(after)))
            conditions.append(f"({key}) > ({places})")
            values |= {f"after{number}": part for number, part in enumerate(after)}
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        # Only lengths are read of what does not fit.
        sql = (
            f"SELECT {', '.join(map(_read_as, table.columns))} FROM ("
            f"SELECT *, sum(bytes_held) OVER (ORDER BY {key}) - bytes_held AS bytes_before FROM ("
            f"SELECT t.*, {_size(table)} AS bytes_held FROM {_from(table)} t {where} "
            f"ORDER BY {key} LIMIT %(rows_max)s) page) counted "
            f"WHERE bytes_before < %(bytes_max)s ORDER BY {key}"
        )
        return [_neutral(table, row) for row in self._transaction.execute(sql, values)]

    def count(self, table: Table) -> int:
        where = f"WHERE {_OF_CHUNKS}" if table.name == "vectors" else ""
        return int(self._transaction.value(f"SELECT count(*) FROM {_from(table)} t {where}"))

    def titles(self, document_keys: Iterable[int]) -> dict[int, str]:
        selected = self._transaction.execute(
            "SELECT document_key, title FROM zibaldone.documents "
            "WHERE document_key = ANY(%(document_keys)s::bigint[])",
            {"document_keys": list(document_keys)},
        )
        return dict(selected)

    def sequences(self) -> dict[str, int]:
        parts = [
            f"SELECT '{table.name}', coalesce(pg_sequence_last_value({_sequence(table)}), 0)"
            for table in TABLES
            if table.sequence is not None
        ]
        return dict(self._transaction.execute(" UNION ALL ".join(parts)))

    def notes(self) -> dict[str, Any] | None:
        if not self._transaction.value("SELECT to_regclass(%(name)s) IS NOT NULL", {"name": NOTES}):
            return None
        lock = "FOR UPDATE" if self._transaction.is_write else ""
        selected = self._transaction.execute(f"SELECT name, value FROM {NOTES} {lock}")
        return {name: orjson.loads(value) for name, value in selected}

    def begin(self) -> None:
        names = (*_DERIVED, *(table.name for table in TABLES))
        listed = ", ".join(f"zibaldone.{name}" for name in names)
        self._transaction.execute(f"TRUNCATE {listed}")
        self._transaction.execute(f"DROP TABLE IF EXISTS {NOTES}")
        self._transaction.execute(
            f"CREATE TABLE {NOTES} (name text PRIMARY KEY, value text NOT NULL)"
        )

    def note(self, name: str, value: Any) -> None:
        self._transaction.defer(
            f"INSERT INTO {NOTES} (name, value) VALUES (%(name)s, %(value)s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"name": name, "value": stored.dumps(value)},
        )

    def write(
        self, table: Table, rows: Sequence[Row], terms: Mapping[int, ChunkTerms] | None = None
    ) -> None:
        arrays = ", ".join(f"%({name})s::{_array(column)}" for name, column in _columns(table))
        names = ", ".join(table.names)
        owner, more, joined = "", "", ""
        if table.name in _OWNED_BY:
            owner, more = ", namespace", ", d.namespace"
            joined = f"JOIN zibaldone.documents d USING ({_OWNED_BY[table.name]})"
        elif table.name == "vectors":
            owner, more = ", namespace, document_key", ", c.namespace, c.document_key"
            joined = "JOIN zibaldone.chunks c USING (chunk_key)"
        selected = ", ".join(_write_as(column) for column in table.columns)
        self._transaction.execute(
            f"INSERT INTO zibaldone.{table.name} ({names}{owner}) OVERRIDING SYSTEM VALUE "
            f"SELECT {selected}{more} FROM unnest({arrays}) n ({names}) {joined}",
            _native(table, rows),
        )
        if table is CHUNKS and terms:
            add_terms(self._transaction, terms)

    def settle(self) -> bool:
        """Name what was written in postings; else a search would read the terms of all of it."""
        post(self._transaction)
        return has_more(self._transaction)

    def finish(self, sequences: Mapping[str, int]) -> None:
        for table in TABLES:
            last = sequences.get(table.name, 0)
            if table.sequence is not None and last:
                self._transaction.execute(
                    f"SELECT setval({_sequence(table)}, "
                    f"greatest(%(last)s, (SELECT max({table.sequence}) "
                    f"FROM zibaldone.{table.name})))",
                    {"last": last},
                )
        self._transaction.execute(f"DROP TABLE {NOTES}")
        for name in ("chunk_terms", "postings", *(table.name for table in TABLES)):
            self._transaction.execute(f"ANALYZE zibaldone.{name}")


def _columns(table: Table) -> list[tuple[str, Column]]:
    return [(column.name, column) for column in table.columns]


def _array(column: Column) -> str:
    return f"{_TYPES[column.kind]}[]"


def _from(table: Table) -> str:
    return _USAGE if table.name == "usage" else f"zibaldone.{table.name}"


def _size(table: Table) -> str:
    sizes = [
        f"coalesce(octet_length({column.name}), 0)"
        for column in table.columns
        if column.kind in ("text", "bytes")
    ]
    fixed = "2048" if table.name == "vectors" else "64"
    return " + ".join([*sizes, fixed])


def _read_as(column: Column) -> str:
    return f"{column.name}::text" if column.kind == "vector" else column.name


def _write_as(column: Column) -> str:
    return f"n.{column.name}::real[]" if column.kind == "vector" else f"n.{column.name}"


def _sequence(table: Table) -> str:
    return f"pg_get_serial_sequence('zibaldone.{table.name}', '{table.sequence}')::regclass"


def _neutral(table: Table, row: Row) -> Row:
    if table.name != "vectors":
        return row
    *key, text = row
    return (*key, np.asarray(orjson.loads(text), np.dtype("<f4")).tobytes())


def _native(table: Table, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """An array for each column."""
    values: dict[str, list[Any]] = {}
    for number, column in enumerate(table.columns):
        given = [row[number] for row in rows]
        if column.kind == "vector":
            given = [as_array(np.frombuffer(value, np.dtype("<f4"))) for value in given]
        values[column.name] = given
    return values
