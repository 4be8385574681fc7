"""The reader threads: each has a connection, and their time is shared fairly (`access.turns`).

SQLite releases the interpreter while it searches, so a few readers use the other cores. One share
holds three of the four at most, and half of the cores while others read. Whoever holds none gets
one of four more: a short read waits for long ones only where eight callers have one each.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from zibaldone.access.share import current_share
from zibaldone.access.turns import Turns
from zibaldone.errors import DeadlineExceeded, StorageUnavailable
from zibaldone.store.sqlite.connection import Connection

T = TypeVar("T")

_READERS = 4
_READERS_EXTRA = 4


@dataclass(eq=False, slots=True)
class _Read(Generic[T]):
    share: str
    work: Callable[[Connection], T]
    future: Future[T]
    connection: Connection | None = None
    """Where it runs."""
    is_abandoned: bool = False


class Readers:
    def __init__(self, path: Path, wait_seconds_max: float) -> None:
        self._path = path
        self._wait_seconds_max = wait_seconds_max
        self._turns: Turns[_Read[Any]] = Turns(
            _READERS,
            per_share=_READERS - 1,
            beside_others=max(1, min(_READERS - 1, (os.cpu_count() or 1) // 2)),
            extra=_READERS_EXTRA,
        )
        self._changed = threading.Condition()
        self._threads: set[threading.Thread] = set()
        # Opened now, while there are files to be had; the extra ones when they are needed.
        self._unused = [self._connect() for _ in range(_READERS)]
        self._idle = 0
        """Threads that wait and were not woken."""
        self._coming = 0
        """Threads that were woken or started and have not taken a turn yet."""
        self._closed = False

    async def run(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` in a reader's turn, for the share of the running task.

        Cancelled, it leaves the queue at once; what already runs is interrupted.
        """
        read = _Read(current_share(), work, Future())
        self._submit(read)
        try:
            return await asyncio.wrap_future(read.future)
        except asyncio.CancelledError:
            self._abandon(read)
            raise

    def _submit(self, read: _Read[Any]) -> None:
        with self._changed:
            if self._closed:
                raise StorageUnavailable("The store is closed.")
            self._turns.add(read.share, read)
            self._rouse()

    def _rouse(self) -> None:
        """Wake or start a thread, if there is a place for one of those who wait."""
        if self._turns.takeable <= self._coming:
            return
        if self._idle:
            self._idle -= 1
            self._changed.notify()
        elif len(self._threads) < _READERS + _READERS_EXTRA:
            thread = threading.Thread(target=self._run, name="zibaldone-reader", daemon=True)
            self._threads.add(thread)
            thread.start()
        else:
            return
        self._coming += 1

    def _abandon(self, read: _Read[Any]) -> None:
        with self._changed:
            read.is_abandoned = True
            self._turns.discard(read.share, read)
            if read.connection is not None:
                read.connection.expire()

    def _run(self) -> None:
        connection: Connection | None = None
        with self._changed:
            self._coming -= 1
        try:
            while True:
                read = self._next()
                if read is None:
                    return
                started_s = time.monotonic()
                try:
                    connection = connection or self._taken_or_opened()
                    self._attempt(read, connection)
                except BaseException as problem:
                    read.future.set_exception(problem)
                now_s = time.monotonic()
                with self._changed:
                    self._turns.give_back(read.share, now_s - started_s, now_s)
                    self._rouse()
                del read  # an idle thread keeps no result alive
        finally:
            if connection is not None:
                connection.close()

    def _taken_or_opened(self) -> Connection:
        with self._changed:
            if self._unused:
                return self._unused.pop()
        return self._connect()

    def _connect(self) -> Connection:
        return Connection(self._path, wait_seconds_max=self._wait_seconds_max)

    def _attempt(self, read: _Read[T], connection: Connection) -> None:
        with self._changed:
            if read.is_abandoned:
                raise DeadlineExceeded("Nobody waits for this read any more.")
            read.connection = connection
        try:
            result = read.work(connection)
        finally:
            with self._changed:
                read.connection = None
        read.future.set_result(result)

    def _next(self) -> _Read[Any] | None:
        """Wait for a turn. None: the thread is to end."""
        with self._changed:
            while True:
                while (taken := self._turns.take(time.monotonic())) is not None:
                    share, read = taken
                    if read.future.set_running_or_notify_cancel():
                        return read
                    self._turns.give_back(share, 0.0, time.monotonic())
                if self._closed:
                    return None
                self._idle += 1
                self._changed.wait()
                if not self._closed:
                    self._coming -= 1

    def close(self) -> None:
        """Finish the reads that were begun or wait; later ones are refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join()
        for connection in self._unused:
            connection.close()
