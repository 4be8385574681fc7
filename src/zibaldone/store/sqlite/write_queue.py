"""The writes that wait for the writer thread, in the order in which their turns come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import apsw

from zibaldone.access.turns import LONG_SECONDS, Turns
from zibaldone.errors import StorageUnavailable

T = TypeVar("T")

_WRITES_PER_COMMIT_MAX = 128
"""Bounds the work that a failed commit undoes."""

_GROUP_SECONDS_MAX = 0.05
"""Once a group has worked this long it commits: the first must not wait for ever longer writes."""

_MIXED_GROUP_SECONDS_MAX = 0.01
"""The same where several callers write: none of them is to wait for many writes of another."""

_REST_FACTOR = 4.0
"""A caller whose write took long rests four times as long while others write. A write cannot be
interrupted for others, but it can be rare: nineteen of twenty short ones do not meet it."""

_LOOK_SECONDS = 0.1
"""How often somebody who rests looks whether the others have gone."""


@dataclass(eq=False, frozen=True, slots=True)
class Write(Generic[T]):
    share: str
    work: Callable[[apsw.Connection], T]
    future: Future[T]

    def fail(self, error: BaseException) -> None:
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class WriteQueue:
    def __init__(self) -> None:
        self._turns: Turns[Write[Any]] = Turns(1, rest_factor=_REST_FACTOR)
        self._changed = threading.Condition()
        self._closed = False

    def put(self, write: Write[Any]) -> None:
        with self._changed:
            if self._closed:
                write.future.set_exception(StorageUnavailable("The store is closed."))
                return
            self._turns.add(write.share, write)
            self._changed.notify()
        write.future.add_done_callback(lambda _: self._leave(write))

    def close(self) -> None:
        """Refuse further writes; those that wait are still taken."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def groups(self) -> Iterator[Iterator[Write[Any]]]:
        """The writes of each commit. Waits for more, and ends when the queue is closed and empty.

        The time until the next group is asked for is that of the commit.
        """
        while (first := self._wait()) is not None:
            group = _Group(self, first)
            with closing(group.writes()) as writes:
                yield writes
            group.charge_commit()
            del first, group, writes  # what waits for the next one keeps nothing of this one alive

    def _wait(self) -> Write[Any] | None:
        with self._changed:
            while (write := self._take()) is None:
                if self._closed:
                    return None
                self._changed.wait(self._turns.rest_seconds(time.monotonic()) and _LOOK_SECONDS)
            return write

    def _take(self, **options: Any) -> Write[Any] | None:
        now_s = float("inf") if self._closed else time.monotonic()  # nobody rests at the end
        taken = self._turns.take(now_s, **options)
        return None if taken is None else taken[1]

    def take_beside(self, shares: set[str]) -> Write[Any] | None:
        """A write that may share a commit with those of `shares`: no long one with another's."""
        with self._changed:
            return self._take(long_from=shares if len(shares) == 1 else set())

    def has_others(self, share: str) -> bool:
        with self._changed:
            return self._turns.waits_beside(share)

    def give_back(self, write: Write[Any], seconds: float, worked_s: float) -> None:
        with self._changed:
            self._turns.give_back(write.share, seconds, time.monotonic(), worked_s=worked_s)

    def charge(self, share: str, seconds: float) -> None:
        with self._changed:
            self._turns.charge(share, seconds, time.monotonic())

    def _leave(self, write: Write[Any]) -> None:
        """A write that was cancelled leaves the queue at once."""
        if write.future.cancelled():
            with self._changed:
                self._turns.discard(write.share, write)


class _Group:
    """The writes of one commit, each taken from the queue only when its turn comes."""

    def __init__(self, queue: WriteQueue, first: Write[Any]) -> None:
        self._queue = queue
        self._first = first
        self._shares = {first.share}
        self._long: str | None = None
        """Whose write took long."""
        self._ended_s = 0.0

    def writes(self) -> Generator[Write[Any]]:
        started_s = time.monotonic()
        write: Write[Any] | None = self._first
        left = _WRITES_PER_COMMIT_MAX
        while write is not None:
            # CPU time tells a long write from a short one on a busy machine.
            begun_s, begun_cpu_s = time.monotonic(), time.thread_time()
            try:
                yield write
            finally:
                self._ended_s, worked_s = time.monotonic(), time.thread_time() - begun_cpu_s
                self._queue.give_back(write, self._ended_s - begun_s, worked_s)
                if worked_s >= LONG_SECONDS:
                    self._long = write.share
            left -= 1
            if not left or self._ended_s - started_s > self._seconds_max():
                return
            write = self._queue.take_beside(self._shares)
            if write is not None:
                self._shares.add(write.share)

    def _seconds_max(self) -> float:
        if len(self._shares) > 1 or self._queue.has_others(self._first.share):
            return _MIXED_GROUP_SECONDS_MAX
        return _GROUP_SECONDS_MAX

    def charge_commit(self) -> None:
        """A long write is also the reason for a long commit and for a checkpoint."""
        if self._long is not None:
            self._queue.charge(self._long, time.monotonic() - self._ended_s)
