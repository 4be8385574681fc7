"""Moving committed pages from the WAL into the database file, so that the WAL stays small.

SQLite would do it inside a commit; here it is done after the writes were acknowledged. And SQLite
would let the WAL grow for as long as there is always some reader on an old snapshot; here the
writer, once the WAL is large, waits a moment for the readers it has. It does so once for a reader
that stays, such as a backup.
"""

from __future__ import annotations

import logging

import apsw

from zibaldone.store.sqlite.connection import Connection

_DUE_PAGES = 1_000
"""4 MB: rare enough to spread the cost of its fsyncs, small enough to be quick."""

_LARGE_PAGES = 16_000
"""64 MB: from here on it is worth making writers wait for readers."""

_WAIT_SECONDS_FIRST = 1.0
"""Nearly every read is over by then. All writes wait meanwhile. When one was not, the next wait is
twice as long: where each reader begins before another ends, the WAL would grow for ever. And it
comes when the WAL has twice the length, so that writes do not wait more often than for shorter."""

_PASSING = apsw.SQLITE_CHECKPOINT_PASSIVE
_WAITING = apsw.SQLITE_CHECKPOINT_TRUNCATE

_log = logging.getLogger("zibaldone.store")


class Checkpoints:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._wait_seconds_max = connection.wait_seconds_max
        self._wal_pages = 0
        self._start_over()
        connection.raw.set_wal_hook(self._committed)  # takes the place of SQLite's own checkpoints

    def _start_over(self) -> None:
        self._due_pages = _DUE_PAGES
        self._large_pages = _LARGE_PAGES
        self._wait_seconds = min(_WAIT_SECONDS_FIRST, self._wait_seconds_max)
        self._moved_pages = 0
        self._awaited_at_pages: int | None = None
        """How far the oldest reader let pages be moved when it was waited for in vain."""

    def _committed(self, raw: apsw.Connection, database: str, pages: int) -> int:
        del raw, database
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def make_if_due(self) -> None:
        pages = self._wal_pages
        if pages < self._due_pages:
            return
        is_large = pages >= self._large_pages
        if self._make_large() if is_large else self._make(_PASSING):
            if pages >= _LARGE_PAGES and not is_large:
                self._make_waiting(0)  # it had grown while a reader was in the way
            self._wal_pages = 0
            self._start_over()
            return
        # A reader, maybe one that was suspended in another process, is in the way: trying again
        # at each commit would only make each of them slower.
        self._due_pages = pages + _DUE_PAGES
        if is_large:
            _log.warning("the WAL has %d pages and a long read keeps it from being emptied", pages)

    def _make_large(self) -> bool:
        """Wait for the readers, unless the oldest is the one that was waited for in vain."""
        self._make(_PASSING)
        if self._moved_pages == self._awaited_at_pages:
            self._large_pages = self._wal_pages + _LARGE_PAGES  # soon after the reader has gone
            return False
        self._large_pages = 2 * self._wal_pages
        self._awaited_at_pages = self._moved_pages
        wait_seconds = self._wait_seconds
        self._wait_seconds = min(2 * wait_seconds, self._wait_seconds_max)
        return self._make_waiting(wait_seconds)

    def make_room(self) -> None:
        """On a full disk the WAL's own room is the first that can be had back."""
        if self._make_waiting(0):
            self._wal_pages = 0
            self._start_over()

    def _make_waiting(self, wait_seconds: float) -> bool:
        self._connection.wait_seconds_max = wait_seconds
        try:
            return self._make(_WAITING)
        finally:
            self._connection.wait_seconds_max = self._wait_seconds_max

    def _make(self, mode: int) -> bool:
        """Whether everything was moved. What was not stays safe in the WAL."""
        try:
            in_wal, moved = self._connection.raw.wal_checkpoint("main", mode)
        except apsw.BusyError:
            return False
        except apsw.Error as problem:
            _log.warning("the WAL could not be moved into the database file: %s", problem)
            return False
        self._moved_pages = moved
        return moved == in_wal
