"""The storage engines, as the contract tests open them. A new engine joins by a line at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apsw
import orjson
import psycopg

from tests.drivers.postgres import databases
from tests.store.invariants import IN_POSTGRES
from tests.store.sqlite.invariants import broken_invariants
from zibaldone.limits import Limits
from zibaldone.model.vector import Vectors, np
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Store
from zibaldone.store.sqlite.vector_index import pack

_NOTE = ".postgres.json"

_CHUNK = "document_key, chunk_index, start_char, end_char, heading, body, content_hash"

_VECTORS = """
SELECT chunk_key, vector FROM vectors JOIN models USING (model_id) WHERE identity = ?
"""


class Backend(Protocol):
    @property
    def url(self) -> str:
        """As the setting `store` takes it."""
        ...

    def open(self, limits: Limits, *, for_transfer: bool = False) -> Store: ...

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Look behind the port, at the tables that all engines have in common."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Change something behind the port that the port has no way to change."""
        ...

    def connection(self) -> AbstractContextManager[Any]:
        """The tables as another program sees them; `?` stands for a value in `query` only."""
        ...

    def vectors(self, identity: str) -> dict[int, bytes]:
        """The vectors of a model by chunk, as they are stored."""
        ...

    def stored_vector(self, vector: Vectors) -> bytes:
        """How this vector is stored."""
        ...

    def broken_invariants(self) -> dict[str, Any]:
        """What is wrong in the tables, with examples."""
        ...

    def everything(self) -> bytes:
        """All that is stored, to look for what must not be."""
        ...

    def note_changes(self, table: str, columns: str, *, on: str, when: str = "true") -> None:
        """Keep `columns` of the new and old rows of every change in another table, by a trigger."""
        ...

    def add_orphans(self, chunk_key: int, count: int = 1) -> None:
        """Vectors of each model for chunks that do not exist, from this key on."""
        ...

    def add_chunk(self, chunk_index: int) -> None:
        """A chunk in every document that does not belong there."""
        ...

    def add_documents(self, count: int, folder: str = "d") -> None:
        """Documents `d/000000` and so on of one chunk, said to have vectors. Quicker than writing;
        the store was opened before."""
        ...

    def indexed_chunks(self) -> int:
        """How many chunks the keyword index holds."""
        ...

    def forget_vector_changes(self, kept: int) -> None:
        """Cut the log by which processes follow each other's vectors to its newest entries."""
        ...

    def close(self) -> None:
        """Remove what the folder does not hold."""
        ...


@dataclass(frozen=True, slots=True)
class Sqlite:
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / DATABASE_NAME

    @property
    def url(self) -> str:
        return store_url(self.folder)

    def open(self, limits: Limits, *, for_transfer: bool = False) -> Store:
        return open_store(self.url, limits, for_transfer=for_transfer)

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self.file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(10_000)
            return list(connection.execute(sql, values))
        finally:
            connection.close()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        with self.connection() as raw:
            raw.execute(sql, values).fetchall()

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """The tables as another program sees them."""
        raw = apsw.Connection(str(self.file))
        try:
            raw.set_busy_timeout(10_000)
            yield raw
        finally:
            raw.close()

    def vectors(self, identity: str) -> dict[int, bytes]:
        return dict(self.query(_VECTORS, (identity,)))

    def stored_vector(self, vector: Vectors) -> bytes:
        return pack(vector)

    def broken_invariants(self) -> dict[str, Any]:
        return broken_invariants(self.file)

    def everything(self) -> bytes:
        return b"".join(file.read_bytes() for file in self.folder.iterdir())

    def note_changes(self, table: str, columns: str, *, on: str, when: str = "true") -> None:
        self.execute(
            f"CREATE TRIGGER noting AFTER {on} WHEN {when} BEGIN "
            f"INSERT INTO {table} VALUES ({columns}); END"
        )

    def add_orphans(self, chunk_key: int, count: int = 1) -> None:
        self.execute(
            "WITH RECURSIVE n (value) AS (VALUES (0) UNION ALL SELECT value + 1 FROM n LIMIT ?) "
            "INSERT INTO vectors SELECT model_id, ? + n.value, (SELECT vector FROM vectors) "
            "FROM models, n",
            (count, chunk_key),
        )

    def add_chunk(self, chunk_index: int) -> None:
        self.execute(
            f"INSERT INTO chunks ({_CHUNK}) "
            "SELECT document_key, ?, 0, 1, '', 'a', x'00' FROM documents",
            (chunk_index,),
        )

    def add_documents(self, count: int, folder: str = "d") -> None:
        with self.connection() as raw, raw:
            raw.executemany(
                "INSERT INTO documents VALUES (?1, 'default', printf('%s/%06d', ?2, ?1 - 1), 1, "
                "NULL, '', '[]', 'text/plain', '{}', NULL, 1, x'00', 4, 1, 1, NULL, 't', 'create', "
                "'ready', NULL, 0)",
                ((number, folder) for number in range(1, count + 1)),
            )
            raw.execute("INSERT INTO bodies SELECT document_key, 'text' FROM documents")
            raw.execute(
                f"INSERT INTO chunks ({_CHUNK}) "
                "SELECT document_key, 0, 0, 4, '', 'text', x'00' FROM documents"
            )

    def indexed_chunks(self) -> int:
        ((count,),) = self.query("SELECT count(*) FROM chunk_terms_docsize")
        return int(count)

    def forget_vector_changes(self, kept: int) -> None:
        self.execute(
            "DELETE FROM vector_changes WHERE change_key <= "
            f"(SELECT max(change_key) FROM vector_changes) - {kept}"
        )

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Postgres:
    """A database for each folder. A note beside it says which one, to other processes too."""

    folder: Path

    @classmethod
    def all_below(cls, folder: Path) -> list[Postgres]:
        """The databases of folders in this one, at whatever depth."""
        notes = folder.rglob(f"*{_NOTE}")
        return [cls(note.with_name(note.name.removesuffix(_NOTE))) for note in notes]

    @property
    def _note(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}{_NOTE}")

    def _places(self) -> dict[str, str]:
        if not self._note.exists():
            name = databases().create()
            urls = {"url": databases().url(name), "admin_url": databases().admin_url(name)}
            self._note.write_bytes(orjson.dumps({"name": name, **urls}))
        places: dict[str, str] = orjson.loads(self._note.read_bytes())
        return places

    @property
    def url(self) -> str:
        return self._places()["url"]

    def open(self, limits: Limits, *, for_transfer: bool = False) -> Store:
        return open_store(self.url, limits, for_transfer=for_transfer)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """The tables as a superuser sees them."""
        with psycopg.connect(self._places()["admin_url"], autocommit=True) as raw:
            raw.execute("SET search_path = zibaldone, public")
            yield raw

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.connection() as raw:
            return raw.execute(sql.replace("?", "%s").encode(), values or None).fetchall()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        with self.connection() as raw:
            raw.execute(sql.replace("?", "%s").encode(), values or None)

    def vectors(self, identity: str) -> dict[int, bytes]:
        rows = self.query(_VECTORS.replace("vector ", "vector::text "), (identity,))
        return {key: _half_precision(orjson.loads(text)) for key, text in rows}

    def stored_vector(self, vector: Vectors) -> bytes:
        return _half_precision(vector)

    def broken_invariants(self) -> dict[str, Any]:
        found = {what: rows for what, sql in IN_POSTGRES.items() if (rows := self.query(sql)[:3])}
        store = self.open(Limits())
        check = asyncio.run(store.check(thorough=True))
        store.close()
        return found if check.ok else {**found, "check": check.problems}

    def everything(self) -> bytes:
        tables = self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'zibaldone'")
        rows = [row for (table,) in tables for row in self.query(f"SELECT t::text FROM {table} t")]
        return "\n".join(text for (text,) in rows).encode()

    def note_changes(self, table: str, columns: str, *, on: str, when: str = "true") -> None:
        # As the superuser, to whom the table belongs.
        self.execute(
            "CREATE FUNCTION zibaldone.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"AS $$ BEGIN INSERT INTO zibaldone.{table} VALUES ({columns}); RETURN NULL; END $$"
        )
        self.execute(
            f"CREATE TRIGGER noting AFTER {on} FOR EACH ROW WHEN ({when}) "
            "EXECUTE FUNCTION zibaldone.note()"
        )

    def add_orphans(self, chunk_key: int, count: int = 1) -> None:
        self.execute(
            "INSERT INTO vectors (chunk_key, model_id, namespace, document_key, vector) "
            "SELECT ? + n, model_id, 'default', 1, (SELECT vector FROM vectors LIMIT 1) "
            "FROM models, generate_series(0, ?) n",
            (chunk_key, count - 1),
        )

    def add_chunk(self, chunk_index: int) -> None:
        self.execute(
            f"INSERT INTO chunks ({_CHUNK}, namespace) "
            "SELECT document_key, ?, 0, 1, '', 'a', '\\x00', namespace FROM documents",
            (chunk_index,),
        )

    def add_documents(self, count: int, folder: str = "d") -> None:
        self.execute(
            "INSERT INTO documents OVERRIDING SYSTEM VALUE SELECT n, 'default', "
            "? || '/' || lpad((n - 1)::text, 6, '0'), 1, NULL, '', '[]', 'text/plain', '{}', NULL, "
            "1, '\\x00', 4, 1, 1, NULL, 't', 'create', 'ready', NULL, 0 "
            "FROM generate_series(1, ?) n",
            (folder, count),
        )
        self.execute("INSERT INTO bodies SELECT document_key, namespace, 'text' FROM documents")
        self.execute(
            f"INSERT INTO chunks ({_CHUNK}, namespace) "
            "SELECT document_key, 0, 0, 4, '', 'text', '\\x00', namespace FROM documents"
        )
        self.execute("ANALYZE")  # as it does by itself a minute later

    def indexed_chunks(self) -> int:
        ((count,),) = self.query("SELECT count(*) FROM chunk_terms")
        return int(count)

    def forget_vector_changes(self, kept: int) -> None:
        """There is no such log: vectors are searched where they are stored."""

    def close(self) -> None:
        if self._note.exists():
            databases().drop(self._places()["name"])
            self._note.unlink()


def _half_precision(vector: Any) -> bytes:
    return np.asarray(vector, np.float32).astype("<f2").tobytes()


BACKENDS: dict[str, Callable[[Path], Backend]] = {"sqlite": Sqlite, "postgres": Postgres}
