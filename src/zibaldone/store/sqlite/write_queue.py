"""The writes that wait for the writer thread, in the order in which their turns come."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Container, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
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

_REST_FACTOR = 12.0
"""A caller whose write took long rests twelve times as long while others write. A write cannot be
interrupted for others, but it can be rare: nineteen of twenty short ones do not meet it."""

_COMMON_REST_FACTOR = 2.0
"""After a long write, others than those who write long have the writer for twice as long: several
callers with long ones leave two thirds of the time to the others."""

_STEP_REST_FACTOR = 1.0
"""After a step of a long write its caller rests for as long. Half of the short writes of others
find the writer free, and the other half wait for one step."""

_LOOK_SECONDS = 0.1
"""How often somebody who rests looks whether the others have gone."""


@dataclass(eq=False, frozen=True, slots=True, weakref_slot=True)
class Write(Generic[T]):
    share: str
    work: Callable[[apsw.Connection], T]
    future: Future[T]
    is_step: bool = False
    """One of the steps that long work was divided into."""

    def fail(self, error: BaseException) -> None:
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class WriteQueue:
    """For one thread that takes the writes, and any that put them."""

    def __init__(self) -> None:
        self._turns: Turns[Write[Any]] = Turns(
            1,
            rest_factor=_REST_FACTOR,
            common_rest_factor=_COMMON_REST_FACTOR,
            step_rest_factor=_STEP_REST_FACTOR,
        )
        self._lock = threading.Lock()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._waits = False
        self._closed = False

    def put(self, write: Write[Any]) -> None:
        with self._lock:
            if self._closed:
                write.future.set_exception(StorageUnavailable("The store is closed."))
                return
            self._turns.add(write.share, write, is_step=write.is_step)
            self._wake()
        # A future keeps its callbacks when it is done: what a write holds would live on with it, a
        # hundred megabytes and more, until the collector comes.
        left = weakref.ref(write)
        write.future.add_done_callback(lambda _: self._leave(left()))

    def close(self) -> None:
        """Refuse further writes; those that wait are still taken."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        if self._waits:
            self._waits = False
            self._wakes.put(None)

    def groups(self) -> Iterator[Iterator[Write[Any]]]:
        """The writes of each commit. Waits for more, and ends when the queue is closed and empty.

        The time until the next group is asked for is that of the commit.
        """
        while (first := self._wait()) is not None:
            group = _Group(first.share)
            with closing(self._group(group, first)) as writes:
                yield writes
            if group.long_from is not None:
                # A long write is also the reason for a long commit and for a checkpoint.
                with self._lock:
                    now_s = time.monotonic()
                    self._turns.charge(group.long_from, now_s - group.ended_s, now_s)
            del first, writes  # what waits for the next one keeps nothing of this one alive

    def _wait(self) -> Write[Any] | None:
        while True:
            with self._lock:
                write = self._take()
                if write is not None or self._closed:
                    return write
                rest_ends_s = self._turns.rest_ends_s
                self._waits = True
            with suppress(Empty):
                self._wakes.get(timeout=_look_seconds(rest_ends_s))

    def _take(self, long_from: Container[str] | None = None) -> Write[Any] | None:
        now_s = float("inf") if self._closed else time.monotonic()  # nobody rests at the end
        taken = self._turns.take(now_s, long_from=long_from)
        return None if taken is None else taken[1]

    def _group(self, group: _Group, first: Write[Any]) -> Generator[Write[Any]]:
        """Each write is taken from the queue only when its turn comes."""
        started_s = time.monotonic()
        write: Write[Any] | None = first
        del first
        while write is not None:
            # CPU time tells a long write from a short one on a busy machine.
            begun_s, begun_cpu_s = time.monotonic(), time.thread_time()
            try:
                yield write
            finally:
                group.ended_s, worked_s = time.monotonic(), time.thread_time() - begun_cpu_s
                group.size += 1
                if worked_s >= LONG_SECONDS and not write.is_step:
                    group.long_from = write.share
                with self._lock:
                    self._turns.give_back(
                        write.share,
                        group.ended_s - begun_s,
                        group.ended_s,
                        worked_s=worked_s,
                        is_step=write.is_step,
                    )
            with self._lock:  # not in `finally`: whoever ends the group early takes nothing more
                write = self._next(group, group.ended_s - started_s)

    def _next(self, group: _Group, seconds: float) -> Write[Any] | None:
        """A write that may share the commit: no long one with somebody else's."""
        shares = group.shares
        is_mixed = len(shares) > 1 or self._turns.waits_beside(next(iter(shares)))
        seconds_max = _MIXED_GROUP_SECONDS_MAX if is_mixed else _GROUP_SECONDS_MAX
        if group.size >= _WRITES_PER_COMMIT_MAX or seconds > seconds_max:
            return None
        write = self._take(long_from=shares if len(shares) == 1 else ())
        if write is not None:
            shares.add(write.share)
        return write

    def _leave(self, write: Write[Any] | None) -> None:
        """A write that was cancelled leaves the queue at once."""
        if write is not None and write.future.cancelled():
            with self._lock:
                self._turns.discard(write.share, write)


def _look_seconds(rest_ends_s: float | None) -> float | None:
    if rest_ends_s is None:
        return None
    return min(max(rest_ends_s - time.monotonic(), 0.0), _LOOK_SECONDS)


class _Group:
    """What is known of the writes of one commit."""

    __slots__ = ("ended_s", "long_from", "shares", "size")

    def __init__(self, share: str) -> None:
        self.shares = {share}
        self.size = 0
        self.ended_s = 0.0
        self.long_from: str | None = None
        """Whose write took long."""
