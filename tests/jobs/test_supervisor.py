"""The supervisor: a task that dies is noticed, told and started again; the others go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from zibaldone.errors import StorageFull
from zibaldone.jobs import supervisor
from zibaldone.jobs.supervisor import BackgroundTask, Supervisor


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "TASK_PAUSE_SECONDS_MIN", 0.01)
    monkeypatch.setattr(supervisor, "TASK_PAUSE_SECONDS_MAX", 0.04)
    monkeypatch.setattr(supervisor, "TASK_STABLE_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "TASK_STOP_SECONDS_MAX", 0.1)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Task:
    """Counts its lives; `live` says how each of them goes."""

    def __init__(self, live: Callable[[int], Awaitable[None]]) -> None:
        self.lives = 0
        self.ended: list[str] = []
        self._live = live

    async def run(self) -> None:
        self.lives += 1
        try:
            await self._live(self.lives)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise


async def for_ever(_: int) -> None:
    await asyncio.Event().wait()


def told(watched: Supervisor, name: str = "task") -> dict[str, Any]:
    status: dict[str, Any] = watched.status()["tasks"][name]
    return status


def test_a_task_that_is_fine_is_left_alone_and_stopped_at_the_end() -> None:
    task = Task(for_ever)
    watched = Supervisor([BackgroundTask("task", task.run)])
    assert watched.status()["status"] == "off"

    async def main() -> None:
        async with watched.running():
            await until(lambda: task.lives == 1)
            await asyncio.sleep(0.05)
            assert watched.status() == {
                "status": "ok",
                "tasks": {"task": {"state": "running", "restarts": 0, "last_error": None}},
            }
        assert task.ended == ["cancelled"]
        assert watched.status()["status"] == "off"

    asyncio.run(main())
    assert task.lives == 1


def test_a_task_that_raises_is_started_again_until_it_is_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live(life: int) -> None:
        if life < 4:
            raise StorageFull("The disk is full.")
        await for_ever(life)

    task, other = Task(live), Task(for_ever)
    watched = Supervisor([BackgroundTask("task", task.run), BackgroundTask("other", other.run)])

    async def main() -> None:
        async with watched.running():
            await until(lambda: told(watched)["state"] == "waiting")
            assert watched.status()["status"] == "degraded"
            await until(lambda: task.lives == 4)
            assert watched.status()["status"] == "degraded", "not before it has run for a while"
            assert told(watched)["last_error"] == "The disk is full. [STORAGE_FULL]"
            assert told(watched)["restarts"] == 3
            await until(lambda: watched.status()["status"] == "ok")
            assert told(watched)["restarts"] == 3

    asyncio.run(main())
    assert other.lives == 1
    assert caplog.text.count("StorageFull") >= 3


def test_a_task_that_returns_early_is_started_again() -> None:
    async def live(life: int) -> None:
        if life > 1:
            await for_ever(life)

    task = Task(live)
    watched = Supervisor([BackgroundTask("task", task.run)])

    async def main() -> None:
        async with watched.running():
            await until(lambda: task.lives == 2)
            assert told(watched)["last_error"] == "It returned, which it should not."
            assert watched.status()["status"] == "degraded"

    asyncio.run(main())


def test_a_task_that_has_an_end_may_return_and_is_tried_again_if_it_fails() -> None:
    async def live(life: int) -> None:
        if life == 1:
            raise StorageFull("full")

    task = Task(live)
    watched = Supervisor([BackgroundTask("task", task.run, ends=True)])

    async def main() -> None:
        async with watched.running():
            await until(lambda: told(watched)["state"] == "ended")
            assert watched.status()["status"] == "ok"
            await asyncio.sleep(0.05)

    asyncio.run(main())
    assert task.lives == 2


def test_a_task_that_is_cancelled_from_within_is_started_again() -> None:
    async def live(life: int) -> None:
        if life == 1:
            raise asyncio.CancelledError
        await for_ever(life)

    task = Task(live)

    async def main() -> None:
        async with Supervisor([BackgroundTask("task", task.run)]).running():
            await until(lambda: task.lives == 2)

    asyncio.run(main())


def test_the_pause_doubles_up_to_a_bound_and_starts_over_after_a_long_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live(life: int) -> None:
        if life == 6:
            await asyncio.sleep(0.25)
        if life < 8:
            raise RuntimeError("no")
        await for_ever(life)

    task = Task(live)

    async def main() -> None:
        async with Supervisor([BackgroundTask("task", task.run)]).running():
            await until(lambda: task.lives == 8)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    pauses = [
        record.args[1]
        for record in caplog.records
        if "started again" in record.msg and isinstance(record.args, tuple)
    ]
    assert pauses == [0.01, 0.02, 0.04, 0.04, 0.04, 0.01, 0.02]


def test_what_an_unforeseen_failure_says_stays_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live(life: int) -> None:
        raise RuntimeError("password=hunter2")

    task = Task(live)
    watched = Supervisor([BackgroundTask("task", task.run)])

    async def main() -> None:
        async with watched.running():
            await until(lambda: task.lives == 2)
            assert told(watched)["last_error"] == "RuntimeError; the server's log has more."

    asyncio.run(main())
    assert "hunter2" in caplog.text


def test_a_task_that_does_not_stop_does_not_hold_up_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = asyncio.Event()

    async def live(life: int) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    task = Task(live)

    async def main() -> None:
        async with Supervisor([BackgroundTask("task", task.run)]).running():
            await until(lambda: task.lives == 1)
        assert "did not stop" in caplog.text
        release.set()

    asyncio.run(main())


def test_a_failure_while_stopping_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def live(life: int) -> None:
        try:
            await for_ever(life)
        finally:
            raise RuntimeError("on the way out")

    task = Task(live)

    async def main() -> None:
        async with Supervisor([BackgroundTask("task", task.run)]).running():
            await until(lambda: task.lives == 1)

    asyncio.run(main())
    assert "on the way out" in caplog.text
