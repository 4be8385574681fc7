"""Threads whose time is shared fairly by those who ask for it (`access.turns`)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from zibaldone.access.share import current_share
from zibaldone.access.turns import Turns
from zibaldone.errors import StorageUnavailable
from zibaldone.store.outcome import outcome_of, over, start_thread

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Task(Generic[T]):
    share: str
    work: Callable[[Task[T]], T]
    future: Future[T]
    interrupt: Callable[[], None] | None = None
    """Set by the work while it can be interrupted."""
    is_abandoned: bool = False
    """Nobody waits for it any more."""


class _Look:
    """Said to an idle thread: somebody who rests has come."""


_LOOK = _Look()
_Inbox = SimpleQueue[Task[Any] | _Look | None]

_LOOK_SECONDS = 0.1
"""How often an idle thread looks whether somebody who rests may go on."""


class FairThreads:
    """As many threads as there are places in `turns`, each started when it is first needed."""

    def __init__(self, name: str, turns: Turns[Task[Any]]) -> None:
        self._name = name
        self._turns = turns
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle: list[_Inbox] = []
        """Of threads that wait, each for the next task or for None, which ends it."""
        self._closed = False

    async def run(self, work: Callable[[Task[T]], T]) -> T:
        """The result of `work` in a thread, when the share of the running task has its turn.

        Cancelled, it leaves the queue at once; what already runs is interrupted if it can be.
        """
        task = self._queue(work)
        try:
            return await asyncio.wrap_future(task.future)
        except asyncio.CancelledError:
            self._abandon(task)
            raise

    async def run_through(self, work: Callable[[Task[T]], T]) -> T:
        """The same, but what has begun is awaited in spite of a cancellation."""
        task = self._queue(work)
        try:
            return await outcome_of(task.future)
        except asyncio.CancelledError:
            self._abandon(task)
            raise

    async def run_out(self, work: Callable[[Task[T]], T]) -> T:
        """The same, but cancelled it ends when what has begun is over: what its caller does next
        comes after it."""
        task = self._queue(work)
        try:
            return await asyncio.wrap_future(task.future)
        except asyncio.CancelledError:
            self._abandon(task)
            await over(task.future)
            raise

    def _queue(self, work: Callable[[Task[T]], T]) -> Task[T]:
        task = Task(current_share(), work, Future())
        with self._lock:
            if self._closed:
                raise StorageUnavailable("The store is closed.")
            self._turns.add(task.share, task)
            self._hand_out()
            if self._idle and self._turns.is_resting:
                self._idle[-1].put(_LOOK)
        return task

    def interruptible(self, task: Task[Any], interrupt: Callable[[], None] | None) -> None:
        """Say how the running task can be interrupted; None: not any more."""
        with self._lock:
            task.interrupt = interrupt
            is_abandoned = task.is_abandoned
        if is_abandoned and interrupt is not None:
            interrupt()

    def close(self) -> None:
        """Finish what was begun or waits; refuse what comes later."""
        with self._lock:
            self._closed = True
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()
        for thread in self._threads:
            thread.join()

    def _hand_out(self) -> None:
        """Give a thread to everybody whose turn it is; there are as many threads as places."""
        while (task := self._take()) is not None:
            if self._idle:
                self._idle.pop().put(task)
            else:
                self._start(task)

    def _start(self, task: Task[Any]) -> None:
        thread = threading.Thread(target=self._run, args=(task,), name=self._name, daemon=True)
        give_back = partial(self._turns.give_back, task.share, 0.0, time.monotonic())
        if start_thread(thread, task.future, give_back):
            self._threads.append(thread)

    def _take(self) -> Task[Any] | None:
        now_s = float("inf") if self._closed else time.monotonic()  # nobody rests at the end
        taken = self._turns.take(now_s)
        return None if taken is None else taken[1]

    def _abandon(self, task: Task[Any]) -> None:
        with self._lock:
            task.is_abandoned = True
            self._turns.discard(task.share, task)
            interrupt = task.interrupt
        if interrupt is not None:
            interrupt()

    def _run(self, first: Task[Any]) -> None:
        inbox: _Inbox = SimpleQueue()
        task: Task[Any] | None = first
        del first
        while task is not None:
            task = self._serve(task, inbox)
            if task is None:  # nothing of the last one stays alive while the thread waits
                task = self._wait(inbox)

    def _wait(self, inbox: _Inbox) -> Task[Any] | None:
        """The next task. Whoever rests is not handed out by anybody, so it is looked for."""
        while True:
            with self._lock:
                is_resting = self._turns.is_resting
            with suppress(Empty):
                item = inbox.get(timeout=_LOOK_SECONDS if is_resting else None)
                if not isinstance(item, _Look):
                    return item
            with self._lock:
                if inbox not in self._idle:
                    continue  # it is just being given something
                task = self._take()
                if task is not None:
                    self._idle.remove(inbox)
                    self._hand_out()
                    return task

    def _serve(self, task: Task[Any], inbox: _Inbox) -> Task[Any] | None:
        """Run one task; give the next."""
        started_s, started_cpu_s = time.monotonic(), time.thread_time()
        tell: Callable[[], None] | None = None
        if task.future.set_running_or_notify_cancel():
            try:
                tell = partial(task.future.set_result, task.work(task))
            except BaseException as problem:
                tell = partial(task.future.set_exception, problem)
        worked_s = time.thread_time() - started_cpu_s
        following = self._finish(task, time.monotonic() - started_s, worked_s, inbox)
        if tell is not None:
            tell()
        return following

    def _finish(
        self, task: Task[Any], seconds: float, worked_s: float, inbox: _Inbox
    ) -> Task[Any] | None:
        """Give the place back, and take the next turn. None: the inbox gets it."""
        with self._lock:
            task.interrupt = None
            self._turns.give_back(task.share, seconds, time.monotonic(), worked_s=worked_s)
            following = self._take()
            if following is not None:
                self._hand_out()  # others may have waited for this one to end, too
            elif self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)
            return following
