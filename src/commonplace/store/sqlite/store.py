"""The embedded store: one writer thread, a few reader threads, one connection for quick reads."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import apsw

from commonplace.access.principal import Scope
from commonplace.limits import Limits
from commonplace.store.port import Reader, StoreCheck, Writer
from commonplace.store.sqlite.api_keys import ApiKeys
from commonplace.store.sqlite.connection import Connection, prepare, translated
from commonplace.store.sqlite.documents import Documents, Revisions
from commonplace.store.sqlite.journal import Audit, Outbox
from commonplace.store.sqlite.lexical import Lexical
from commonplace.store.sqlite.writer import WriterThread

T = TypeVar("T")

_READERS = 4
"""SQLite releases the interpreter while it searches, so a few readers use the other cores."""


class Session:
    """The tables as one caller may see them, on one connection. It serves as Reader and Writer."""

    def __init__(self, raw: apsw.Connection, scope: Scope) -> None:
        self._raw = raw
        self._scope = scope

    @cached_property
    def documents(self) -> Documents:
        return Documents(self._raw, self._scope)

    @cached_property
    def revisions(self) -> Revisions:
        return Revisions(self._raw)

    @cached_property
    def lexical(self) -> Lexical:
        return Lexical(self._raw, self._scope)

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(self._raw)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self._raw, self._scope)

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(self._raw)


class SqliteStore:
    def __init__(self, path: Path, limits: Limits) -> None:
        self._path = path
        self._limits = limits
        wait = limits.write_wait_seconds_max
        prepare(path, wait)
        self._writer = WriterThread(path, wait)
        self._quick = Connection(path, busy_seconds_max=wait)
        self._readers: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._connections = [Connection(path, busy_seconds_max=wait) for _ in range(_READERS)]
        for connection in self._connections:
            self._readers.put(connection)
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="commonplace-reader")

    async def read(
        self, scope: Scope, work: Callable[[Reader], T], *, seconds_max: float | None = None
    ) -> T:
        seconds = self._limits.query_seconds_max if seconds_max is None else seconds_max
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, self._read_snapshot, scope, work, seconds
        )

    def _read_snapshot(self, scope: Scope, work: Callable[[Reader], T], seconds_max: float) -> T:
        connection = self._readers.get()
        try:
            with translated(self._path), connection.limited(seconds_max) as raw:
                raw.execute("BEGIN")
                try:
                    return work(Session(raw, scope))
                finally:
                    if raw.in_transaction:
                        raw.execute("ROLLBACK")
        finally:
            self._readers.put(connection)

    def read_now(self, scope: Scope, work: Callable[[Reader], T]) -> T:
        with translated(self._path), self._quick.limited(self._limits.query_seconds_max) as raw:
            return work(Session(raw, scope))

    async def write(self, scope: Scope, work: Callable[[Writer], T]) -> T:
        return await asyncio.wrap_future(self._writer.submit(lambda raw: work(Session(raw, scope))))

    async def check(self, *, thorough: bool = False) -> StoreCheck:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._check, thorough)

    def _check(self, thorough: bool) -> StoreCheck:
        pragma = "integrity_check" if thorough else "quick_check"
        connection = Connection(self._path, busy_seconds_max=self._limits.write_wait_seconds_max)
        try:
            with translated(self._path):
                raw = connection.raw
                found = [str(row[0]) for row in raw.execute(f"PRAGMA {pragma}(20)")]
                (version,) = raw.execute("PRAGMA user_version").fetchone()  # type: ignore[misc]
        finally:
            connection.close()
        problems = tuple(line for line in found if line != "ok")
        facts = {"schema": version, "bytes": self._path.stat().st_size, "file": self._path.name}
        return StoreCheck(not problems, f"sqlite {apsw.sqlite_lib_version()}", problems, facts)

    def close(self) -> None:
        self._writer.close()
        self._threads.shutdown()
        self._quick.close()
        for connection in self._connections:
            connection.close()
