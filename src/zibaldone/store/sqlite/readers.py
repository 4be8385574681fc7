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
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from zibaldone.access.share import current_share
from zibaldone.access.turns import Turns
from zibaldone.errors import DeadlineExceeded, StorageUnavailable
from zibaldone.store.outcome import start_thread
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


_Inbox = SimpleQueue[_Read[Any] | None]


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
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle: list[_Inbox] = []
        """Of threads that wait, each for the next read or for None, which ends it."""
        # Opened now, while there are files to be had; the extra ones when they are needed.
        self._unused = [self._connect() for _ in range(_READERS)]
        self._closed = False

    async def run(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` in a reader's turn, for the share of the running task.

        Cancelled, it leaves the queue at once; what already runs is interrupted.
        """
        read = _Read(current_share(), work, Future())
        with self._lock:
            if self._closed:
                raise StorageUnavailable("The store is closed.")
            self._turns.add(read.share, read)
            self._hand_out()
        try:
            return await asyncio.wrap_future(read.future)
        except asyncio.CancelledError:
            self._abandon(read)
            raise

    def close(self) -> None:
        """Finish the reads that were begun or wait; later ones are refused."""
        with self._lock:
            self._closed = True
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()
        for thread in self._threads:
            thread.join()
        for connection in self._unused:
            connection.close()

    def _hand_out(self) -> None:
        """Give a thread to everybody whose turn it is; there are as many threads as places."""
        while (read := self._take()) is not None:
            if self._idle:
                self._idle.pop().put(read)
            else:
                self._start(read)

    def _start(self, read: _Read[Any]) -> None:
        thread = threading.Thread(
            target=self._run, args=(read,), name="zibaldone-reader", daemon=True
        )
        give_back = partial(self._turns.give_back, read.share, 0.0, time.monotonic())
        if start_thread(thread, read.future, give_back):
            self._threads.append(thread)

    def _take(self) -> _Read[Any] | None:
        taken = self._turns.take(time.monotonic())
        return None if taken is None else taken[1]

    def _abandon(self, read: _Read[Any]) -> None:
        with self._lock:
            read.is_abandoned = True
            self._turns.discard(read.share, read)
            if read.connection is not None:
                read.connection.expire()

    def _run(self, first: _Read[Any]) -> None:
        inbox: _Inbox = SimpleQueue()
        connection: Connection | None = None
        read: _Read[Any] | None = first
        del first
        try:
            while read is not None:
                read, connection = self._serve(read, connection, inbox)
                if read is None:  # nothing of the last one stays alive while the thread waits
                    read = inbox.get()
        finally:
            if connection is not None:
                connection.close()

    def _serve(
        self, read: _Read[Any], connection: Connection | None, inbox: _Inbox
    ) -> tuple[_Read[Any] | None, Connection | None]:
        """Run one read, on a connection that is opened for the first; give the next."""
        started_s = time.monotonic()
        tell: Callable[[], None] | None = None
        if read.future.set_running_or_notify_cancel():
            try:
                connection = read.connection = connection or self._taken_or_opened()
                if read.is_abandoned:
                    raise DeadlineExceeded("Nobody waits for this read any more.")
                tell = partial(read.future.set_result, read.work(connection))
            except BaseException as problem:
                tell = partial(read.future.set_exception, problem)
        following = self._finish(read, time.monotonic() - started_s, inbox)
        if tell is not None:
            tell()
        return following, connection

    def _finish(self, read: _Read[Any], seconds: float, inbox: _Inbox) -> _Read[Any] | None:
        """Give the place back, and take the next turn. None: the inbox gets it."""
        with self._lock:
            read.connection = None
            self._turns.give_back(read.share, seconds, time.monotonic())
            following = self._take()
            if following is not None:
                self._hand_out()  # others may have waited for this one to end, too
            elif self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)
            return following

    def _taken_or_opened(self) -> Connection:
        with self._lock:
            if self._unused:
                return self._unused.pop()
        return self._connect()

    def _connect(self) -> Connection:
        return Connection(self._path, wait_seconds_max=self._wait_seconds_max)
