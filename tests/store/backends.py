"""The storage engines, as the contract tests open them. A new engine joins by a line at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apsw

from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Store


class Backend(Protocol):
    def open(self, limits: Limits) -> Store: ...

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


@dataclass(frozen=True, slots=True)
class Sqlite:
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / DATABASE_NAME

    def open(self, limits: Limits) -> Store:
        return open_store(store_url(self.folder), limits)

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


BACKENDS: dict[str, Callable[[Path], Backend]] = {"sqlite": Sqlite}
