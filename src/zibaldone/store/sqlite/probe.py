"""A look at the file in a thread and on a connection that serve nothing else."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from zibaldone.errors import DeadlineExceeded, StorageFull, StorageUnavailable, ZibaldoneError
from zibaldone.limits import MIB, PROBE_SECONDS_MAX
from zibaldone.store.port import ProbeResult
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.faults import file_errors
from zibaldone.store.sqlite.writer import WriterThread

T = TypeVar("T")

_ROOM_BYTES = 1 * MIB
"""Less room than this is as good as none: a document and its index need about as much."""

_TRY_WRITING = "CREATE TABLE probe (room); INSERT INTO probe VALUES (zeroblob(?))"

_Waiting = tuple[Future[Any], Callable[[apsw.Connection], Any]]


class ProbeThread:
    """Runs one probe after the other. The first one starts the thread."""

    def __init__(self, path: Path, writer: WriterThread) -> None:
        self._path = path
        self._identity = _identity_of(path)
        self._writer = writer
        self._waiting: deque[_Waiting] = deque()
        self._added = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._closed = False

    async def probe(self, work: Callable[[apsw.Connection], T]) -> ProbeResult[T]:
        if self._closed:
            raise StorageUnavailable("The store is closed.")
        future: Future[ProbeResult[T]] = Future()
        waiting = (future, work)
        self._waiting.append(waiting)
        self._added.release()
        if self._thread is None:
            # A daemon: a disk that does not answer must not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name="zibaldone-health", daemon=True)
            self._thread.start()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), PROBE_SECONDS_MAX)
        except TimeoutError:
            message = f"The store could not be read within {PROBE_SECONDS_MAX:g} s."
            raise DeadlineExceeded(message) from None
        finally:
            with suppress(ValueError):  # raised if it has begun
                self._waiting.remove(waiting)

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._added.release()
            self._thread.join(PROBE_SECONDS_MAX)  # not for ever: it may be stuck

    def _run(self) -> None:
        try:
            while self._added.acquire() and not self._closed:
                with suppress(IndexError):  # raised if its caller has given up
                    self._answer(*self._waiting.popleft())
        finally:
            if self._connection is not None:
                self._connection.close()

    def _answer(self, future: Future[Any], work: Callable[[apsw.Connection], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = self._probe(work)
        except BaseException as problem:
            future.set_exception(problem)
        else:
            future.set_result(result)

    def _probe(self, work: Callable[[apsw.Connection], T]) -> ProbeResult[T]:
        if self._connection is None:
            self._connection = Connection(self._path, wait_seconds_max=PROBE_SECONDS_MAX / 2)
            self._connection.raw.execute("PRAGMA cache_size = 10").fetchall()
        if _identity_of(self._path) != self._identity:
            raise StorageUnavailable(
                f"{self._path.name} was replaced while it was in use. Restart the server."
            )
        # Without what it still has in memory: the file itself is tried.
        self._connection.raw.execute("PRAGMA shrink_memory").fetchall()
        result = self._connection.read(work, PROBE_SECONDS_MAX)
        return ProbeResult(result, self._refused_write(self._connection))

    def _refused_write(self, connection: Connection) -> ZibaldoneError | None:
        """Why writes are refused, or None. If the last one was refused, a write is tried."""
        refusal = self._writer.refusal
        if refusal is not None:
            try:
                _try_writing(connection)
            except StorageUnavailable:
                return refusal  # the file is busy: nothing new is known
            except ZibaldoneError as problem:
                return problem
            self._writer.refusal = None
        with file_errors(self._path):
            free_bytes = shutil.disk_usage(self._path.parent).free
        if free_bytes < _ROOM_BYTES:
            return StorageFull(f"The disk of {self._path.name} is full.")
        return None


def _identity_of(path: Path) -> tuple[int, int]:
    with file_errors(path):
        found = path.stat()
    return found.st_dev, found.st_ino


def _try_writing(connection: Connection) -> None:
    """With a small cache SQLite writes to the WAL before the commit, which never comes."""
    raw = connection.raw
    with connection.translated():
        raw.execute("BEGIN IMMEDIATE")
        try:
            raw.execute(_TRY_WRITING, (_ROOM_BYTES,)).fetchall()
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
