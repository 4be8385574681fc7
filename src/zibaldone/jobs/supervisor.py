"""The supervisor: keeps background tasks running for as long as a server does.

A task that raises, or returns though it should not, is logged and started again after a pause that
doubles each time, up to a bound. `/health` tells which tasks are down and what ended them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from zibaldone.errors import ZibaldoneError
from zibaldone.limits import (
    TASK_PAUSE_SECONDS_MAX,
    TASK_PAUSE_SECONDS_MIN,
    TASK_STABLE_SECONDS,
    TASK_STOP_SECONDS_MAX,
)

_log = logging.getLogger("zibaldone.background")

TaskState = Literal["stopped", "running", "waiting", "ended"]


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    ends: bool = False
    """It has an end: returning is success. Otherwise returning counts as a failure."""


@dataclass(slots=True)
class _Watch:
    task: BackgroundTask
    state: TaskState = "stopped"
    restarts: int = 0
    error: str | None = None
    """What ended it last."""
    pause_s: float = 0.0
    started_at_s: float = field(default_factory=time.monotonic)

    @property
    def is_well(self) -> bool:
        if self.state == "running":
            return self.restarts == 0 or self._has_run_long()
        return self.state == "ended"

    def _has_run_long(self) -> bool:
        return time.monotonic() - self.started_at_s >= TASK_STABLE_SECONDS

    def next_pause(self) -> float:
        """Twice the last pause, or the shortest again after a long run."""
        longer_s = 0.0 if self._has_run_long() else 2 * self.pause_s
        self.pause_s = min(max(longer_s, TASK_PAUSE_SECONDS_MIN), TASK_PAUSE_SECONDS_MAX)
        return self.pause_s


class Supervisor:
    def __init__(self, tasks: Sequence[BackgroundTask] = ()) -> None:
        self._watches = [_Watch(task) for task in tasks]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the tasks until the block is left, then cancel them and wait for their end."""
        running = [
            asyncio.create_task(_keep_running(watch), name=watch.task.name)
            for watch in self._watches
        ]
        try:
            yield
        finally:
            await _stop(running)
            for watch in self._watches:
                watch.state = "stopped"

    def status(self) -> dict[str, Any]:
        """For `/health`: a task is degraded until it has run for a while after a restart."""
        return {
            "status": self._status(),
            "tasks": {
                watch.task.name: {
                    "state": watch.state,
                    "restarts": watch.restarts,
                    "last_error": watch.error,
                }
                for watch in self._watches
            },
        }

    def _status(self) -> Literal["off", "ok", "degraded"]:
        if all(watch.state == "stopped" for watch in self._watches):
            return "off"
        return "ok" if all(watch.is_well for watch in self._watches) else "degraded"


async def _keep_running(watch: _Watch) -> None:
    while True:
        watch.state, watch.started_at_s = "running", time.monotonic()
        if await _run_once(watch):
            watch.state = "ended"
            return
        pause_s = watch.next_pause()
        watch.state = "waiting"
        _log.warning("%s is started again in %g s", watch.task.name, pause_s)
        await asyncio.sleep(pause_s)
        watch.restarts += 1


async def _run_once(watch: _Watch) -> bool:
    """Whether the task came to its end as it should."""
    # As a task of its own: otherwise a task that cancels itself would look like our own stop.
    inner = asyncio.create_task(watch.task.run(), name=watch.task.name)
    try:
        await asyncio.wait([inner])
    except asyncio.CancelledError:
        inner.cancel()
        await asyncio.wait([inner])
        _retrieve(inner)
        raise
    if inner.cancelled():
        watch.error = "It was cancelled."
        _log.error("%s was cancelled from within", watch.task.name)
        return False
    problem = inner.exception()
    if problem is not None:
        watch.error = describe(problem)
        _log.error("%s failed", watch.task.name, exc_info=problem)
        return False
    if not watch.task.ends:
        watch.error = "It returned, which it should not."
        _log.error("%s returned, which it should not", watch.task.name)
    return watch.task.ends


def _retrieve(task: asyncio.Task[None]) -> None:
    """Look at the outcome of a task that was told to stop, so that a failure is not lost."""
    if not task.cancelled() and (problem := task.exception()) is not None:
        _log.error("%s failed while it stopped", task.get_name(), exc_info=problem)


async def _stop(running: Sequence[asyncio.Task[None]]) -> None:
    for task in running:
        task.cancel()
    if not running:
        return
    _, late = await asyncio.wait(running, timeout=TASK_STOP_SECONDS_MAX)
    for task in late:
        _log.warning("%s did not stop within %g s", task.get_name(), TASK_STOP_SECONDS_MAX)


def describe(problem: BaseException) -> str:
    """What may be told of a failure to whoever asks: our own errors, or else only the kind."""
    if isinstance(problem, ZibaldoneError):
        return f"{problem.message} [{problem.code}]"
    return f"{type(problem).__name__}; the server's log has more."
