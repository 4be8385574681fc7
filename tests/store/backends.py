"""The storage engines, as the contract tests open them. A new engine joins by a line at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apsw
import orjson
import psycopg

from tests.drivers.postgres import databases
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Store


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
    """A database for each folder. A note in the folder says which one, to other processes too."""

    folder: Path

    def _places(self) -> dict[str, str]:
        note = self.folder / "postgres.json"
        if not note.exists():
            name = databases().create()
            urls = {"url": databases().url(name), "admin_url": databases().admin_url(name)}
            note.write_bytes(orjson.dumps({"name": name, **urls}))
        places: dict[str, str] = orjson.loads(note.read_bytes())
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

    def indexed_chunks(self) -> int:
        ((count,),) = self.query("SELECT count(*) FROM chunk_terms")
        return int(count)

    def forget_vector_changes(self, kept: int) -> None:
        """There is no such log: vectors are searched where they are stored."""

    def close(self) -> None:
        databases().drop(self._places()["name"])


BACKENDS: dict[str, Callable[[Path], Backend]] = {"sqlite": Sqlite, "postgres": Postgres}
