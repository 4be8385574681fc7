"""A look at the file on a connection that serves nothing else, whatever the others do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from zibaldone.errors import StorageFull, StorageUnavailable, ZibaldoneError
from zibaldone.limits import MIB, PROBE_SECONDS_MAX
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.writer import WriterThread

T = TypeVar("T")

_ROOM_BYTES = 1 * MIB
"""Less room than this is as good as none: a document and its index need about as much."""

_TRY_WRITING = "CREATE TABLE probe (room); INSERT INTO probe VALUES (zeroblob(?))"


class Probe:
    """For one thread at a time."""

    def __init__(self, path: Path, writer: WriterThread) -> None:
        self._path = path
        self._writer = writer
        self._opened: Connection | None = None
        self._closed = False

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        return self._connection().read(work, PROBE_SECONDS_MAX)

    def refused_write(self) -> ZibaldoneError | None:
        """Why writes are refused, or None. Where the last one was, a write is tried."""
        refusal = self._writer.refusal
        if refusal is not None:
            try:
                self._try_writing()
            except StorageUnavailable:
                return refusal  # the file is busy: nothing new is known
            except ZibaldoneError as problem:
                return problem
            self._writer.refusal = None
        if shutil.disk_usage(self._path.parent).free < _ROOM_BYTES:
            return StorageFull(f"The disk of {self._path.name} is full.")
        return None

    def _try_writing(self) -> None:
        """With a small cache SQLite writes to the WAL before the commit, which never comes."""
        connection = self._connection()
        raw = connection.raw
        with connection.translated():
            raw.execute("BEGIN IMMEDIATE")
            try:
                raw.execute(_TRY_WRITING, (_ROOM_BYTES,)).fetchall()
            finally:
                if raw.in_transaction:
                    raw.execute("ROLLBACK")

    def _connection(self) -> Connection:
        if self._closed:
            raise StorageUnavailable("The store is closed.")
        if self._opened is None:
            self._opened = Connection(self._path, wait_seconds_max=PROBE_SECONDS_MAX / 2)
            self._opened.raw.execute("PRAGMA cache_size = 10").fetchall()
        return self._opened

    def close(self) -> None:
        self._closed = True
        if self._opened is not None:
            self._opened.close()
