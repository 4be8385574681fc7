"""A connection to the file: how it is set up, and how long its queries may take."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from zibaldone.store.sqlite.faults import (
    STORE_PROBLEMS,
    as_storage_error,
    errno_of,
    translated,
)

T = TypeVar("T")

_PROGRESS_STEPS = 2_000
"""Virtual-machine steps between two looks at the clock: some tens of microseconds."""

_RETRY_SECONDS = (0.0005, 0.002)
"""Between two tries for a lock. SQLite's own waiting soon sleeps 0.1 s at a time, in which a busy
writer in another process commits dozens of times: trying so rarely can fail for many seconds."""

_PRAGMAS = """
PRAGMA synchronous = FULL;          -- a commit is on disk before it is acknowledged
PRAGMA fullfsync = ON;              -- macOS: fsync alone stops in the drive's cache
PRAGMA checkpoint_fullfsync = ON;
PRAGMA foreign_keys = ON;
PRAGMA cache_size = -32768;         -- 32 MiB for each connection
PRAGMA temp_store = MEMORY;         -- undoing a write must not need room on a full disk
PRAGMA journal_size_limit = 67108864;
PRAGMA trusted_schema = OFF;
"""
"""All of them are of the connection; what is of the file (WAL) is set where the file is made."""


class Connection:
    """An apsw connection with a deadline that interrupts whatever statement is running."""

    def __init__(self, path: Path, *, wait_seconds_max: float, create: bool = False) -> None:
        self._path = path
        self.wait_seconds_max = wait_seconds_max
        self._waiting_since_s = 0.0
        self._deadline_s: float | None = None
        self._is_expired = False
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        with translated(path):
            self.raw = apsw.Connection(str(path), flags=flags)
        with self.translated():
            self.raw.set_busy_handler(self._wait_for_lock)
            # Plans do not depend on the values bound: otherwise SQLite prepares a join or a range
            # again for each execution, which costs several times as much as running it.
            self.raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            # To the end: apsw stops at a statement that has a row to give, until it is fetched.
            self.raw.execute(_PRAGMAS).fetchall()
            self.raw.set_progress_handler(self._is_over, _PROGRESS_STEPS)

    def _wait_for_lock(self, tries: int) -> bool:
        now_s = time.monotonic()
        if tries == 0:
            self._waiting_since_s = now_s
        if now_s - self._waiting_since_s >= self.wait_seconds_max:
            return False
        time.sleep(random.uniform(*_RETRY_SECONDS))
        return True

    def expire(self) -> None:
        """Interrupt the read that runs, from another thread: nobody waits for it any more."""
        if self._deadline_s is not None:
            self._is_expired = True

    def _is_over(self) -> bool:
        if self._deadline_s is None:
            return False
        return self._is_expired or time.monotonic() > self._deadline_s

    @contextmanager
    def within(self, share: float) -> Iterator[None]:
        """Give a part of a read that share of the time it has left."""
        outer_s = self._deadline_s
        if outer_s is None or share >= 1.0:
            yield
            return
        now_s = time.monotonic()
        self._deadline_s = now_s + share * max(outer_s - now_s, 0.0)
        try:
            with self.translated():
                yield
        finally:
            self._deadline_s = outer_s

    @contextmanager
    def translated(self) -> Iterator[None]:
        with translated(self._path, self.raw):
            yield

    def read(self, work: Callable[[apsw.Connection], T], seconds_max: float) -> T:
        """All reads of `work` see one state of the file; together they may take `seconds_max`."""
        raw = self.raw
        self._is_expired = False
        self._deadline_s = time.monotonic() + seconds_max
        try:
            try:
                raw.execute("BEGIN")  # may be interrupted when it has begun the transaction
                return work(raw)
            finally:
                self._deadline_s = None
                # Not COMMIT: only ROLLBACK ends the snapshot even if a statement was left halfway,
                # and a snapshot that stays open keeps the WAL from ever being emptied.
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
        except STORE_PROBLEMS as problem:  # written out: `translated` costs as much as BEGIN
            raise as_storage_error(problem, self._path, errno_of(raw)) from problem

    def close(self) -> None:
        self.raw.close()
