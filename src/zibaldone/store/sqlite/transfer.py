"""Whole tables of the file, for moving them from or to another store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
import orjson

from zibaldone.model.chunk import ChunkTerms
from zibaldone.model.vector import np
from zibaldone.store import rows as stored
from zibaldone.store.sqlite.terms import add_terms
from zibaldone.store.sqlite.vector_index import pack, unpack
from zibaldone.store.tables import CHUNKS, TABLES, Key, Row, Table, size_bytes

NOTES = "transfer"
"""The table that is there as long as the store is being filled."""

_OF_CHUNKS = "EXISTS (SELECT 1 FROM chunks c WHERE c.chunk_key = vectors.chunk_key)"

_DERIVED = (
    "vector_changes",
    "index_workers",
    "vector_mirrors",
    "vector_mirror_changes",
    "unsettled_terms",
)


def is_being_filled(raw: apsw.Connection) -> bool:
    return bool(raw.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (NOTES,)).fetchall())


class TransferUpkeep:
    """Statements are made from the description of the tables."""

    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def read(self, table: Table, after: Key | None, *, rows_max: int, bytes_max: int) -> list[Row]:
        names, key = ", ".join(table.names), ", ".join(table.key)
        conditions = [_OF_CHUNKS] if table.name == "vectors" else []
        if after is not None:
            conditions.append(f"({key}) > ({', '.join('?' * len(after))})")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        selected = self._raw.execute(
            f"SELECT {names} FROM {table.name} {where} ORDER BY {key} LIMIT {rows_max}",
            after or (),
        )
        page: list[Row] = []
        left_bytes = bytes_max
        for row in selected:
            left_bytes -= size_bytes(row)
            if page and left_bytes < 0:
                break
            page.append(_neutral(table, row))
        selected.close()
        return page

    def count(self, table: Table) -> int:
        where = f"WHERE {_OF_CHUNKS}" if table.name == "vectors" else ""
        return int(self._raw.execute(f"SELECT count(*) FROM {table.name} {where}").get)

    def titles(self, document_keys: Iterable[int]) -> dict[int, str]:
        selected = self._raw.execute(
            "SELECT document_key, title FROM documents "
            "WHERE document_key IN (SELECT value FROM json_each(?))",
            (stored.dumps(list(document_keys)),),
        )
        titles: dict[int, str] = dict(selected)
        return titles

    def sequences(self) -> dict[str, int]:
        selected = self._raw.execute("SELECT name, seq FROM sqlite_sequence")
        counted: dict[str, int] = dict(selected)
        highest = {}
        for table in TABLES:
            if table.sequence is not None:
                last = self._raw.execute(
                    f"SELECT coalesce(max({table.sequence}), 0) FROM {table.name}"
                ).get
                highest[table.name] = max(int(last), int(counted.get(table.name, 0)))
        return highest

    def notes(self) -> dict[str, Any] | None:
        if not is_being_filled(self._raw):
            return None
        selected = self._raw.execute(f"SELECT name, value FROM {NOTES}")
        return {name: orjson.loads(value) for name, value in selected}

    def begin(self) -> None:
        for name in (*_DERIVED, *(table.name for table in reversed(TABLES))):
            self._raw.execute(f"DELETE FROM {name}")
        self._raw.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")
        self._raw.execute("DELETE FROM sqlite_sequence")
        self._raw.execute(f"DROP TABLE IF EXISTS {NOTES}")
        self._raw.execute(
            f"CREATE TABLE {NOTES} (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"
        )

    def note(self, name: str, value: Any) -> None:
        self._raw.execute(
            f"INSERT OR REPLACE INTO {NOTES} (name, value) VALUES (?, ?)",
            (name, stored.dumps(value)),
        )

    def write(
        self, table: Table, rows: Sequence[Row], terms: Mapping[int, ChunkTerms] | None = None
    ) -> None:
        places = ", ".join("?" * len(table.columns))
        self._raw.executemany(
            f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES ({places})",
            [_native(table, row) for row in rows],
        )
        if table is CHUNKS and terms:
            add_terms(self._raw, terms)

    def settle(self) -> bool:
        return False

    def finish(self, sequences: Mapping[str, int]) -> None:
        for name in ("chunks", "audit"):  # the tables that never use a key again
            self._raw.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            self._raw.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)",
                (name, sequences.get(name, 0)),
            )
        self._raw.execute(f"DROP TABLE {NOTES}")


def _neutral(table: Table, row: Row) -> Row:
    if table.name != "vectors":
        return row
    *key, packed = row
    return (*key, unpack(packed).astype(np.dtype("<f4")).tobytes())


def _native(table: Table, row: Row) -> Row:
    if table.name != "vectors":
        return row
    *key, vector = row
    return (*key, pack(np.frombuffer(vector, np.dtype("<f4"))))
