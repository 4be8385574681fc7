"""A key whose requests take long on the event loop leaves it to others in between."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from zibaldone.errors import Unauthenticated
from zibaldone.web.guard import Guard, GuardRules
from zibaldone.web.pace import LONG_SECONDS, Pace

LONG = 4 * LONG_SECONDS


def _compute(seconds: float) -> None:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


async def _stretch(seconds: float) -> str:
    _compute(seconds)
    return "done"


def test_many_long_stretches_of_one_key_let_others_in_between() -> None:
    """Without it all of them run in one step, and another's waits for the last."""

    async def run() -> int:
        pace, ended = Pace(), Counter[str]()

        async def asked(key: str, seconds: float) -> None:
            await pace.run(key, _stretch(seconds))
            ended[key] += 1

        many = [asyncio.create_task(asked("a", LONG)) for _ in range(20)]
        await asyncio.sleep(0)
        for _ in range(3):  # a request takes some steps: it is read, begun and answered
            await asyncio.create_task(asked("b", 0))
        before_b = ended["a"]
        await asyncio.gather(*many)
        assert ended == {"a": 20, "b": 3}
        return before_b

    assert asyncio.run(run()) <= 3


def test_short_stretches_of_one_key_leave_room_in_every_round() -> None:
    """Without it all of them run in the first round, and another's waits for the last."""

    async def run() -> int:
        pace, ended = Pace(), Counter[str]()

        async def asked(key: str) -> None:
            await pace.run(key, _stretch(0))
            ended[key] += 1

        await asked("b")
        many = [asyncio.create_task(asked("a")) for _ in range(100)]
        await asyncio.sleep(0)
        await asyncio.create_task(asked("b"))
        before_b = ended["a"]
        await asyncio.wait_for(asyncio.gather(*many), 10)
        assert ended == {"a": 100, "b": 2}
        return before_b

    assert asyncio.run(run()) <= 3


@pytest.mark.parametrize(
    ("other", "pauses"), [("waits", 9), ("is short", 0), ("has ended", 0), ("gave up", 0)]
)
def test_a_key_leaves_the_loop_idle_while_requests_of_others_go_on_in_threads(
    other: str, pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it those threads would hardly get the interpreter."""

    async def run() -> int:
        loop, pace, ended = asyncio.get_running_loop(), Pace(), asyncio.Event()
        work = _stretch(0) if other == "is short" else ended.wait()
        beside = asyncio.create_task(pace.run("b", work))
        await asyncio.sleep(0)
        if other == "has ended":
            ended.set()
            await beside
        elif other == "gave up":
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
        counted = 0
        call_later = loop.call_later

        def counting(*arguments: Any) -> asyncio.TimerHandle:
            nonlocal counted
            counted += 1
            return call_later(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(loop, "call_later", counting)
            await asyncio.gather(*(pace.run("a", _stretch(0)) for _ in range(20)))
        ended.set()
        await asyncio.gather(beside, return_exceptions=True)
        return counted

    assert asyncio.run(run()) == pauses


def test_who_gives_up_waiting_for_a_round_keeps_nobody_waiting() -> None:
    async def run() -> None:
        pace = Pace()
        await pace.turn("b")
        tasks = [asyncio.create_task(pace.run("a", _stretch(0))) for _ in range(15)]
        await asyncio.sleep(0)
        for task in tasks[1:-1]:
            task.cancel()
        assert await asyncio.wait_for(tasks[-1], 10) == "done"
        await asyncio.wait_for(pace.turn("a"), 10)

    asyncio.run(run())


def test_short_stretches_of_the_only_key_wait_for_nobody() -> None:
    async def run() -> None:
        pace = Pace()
        tasks = [asyncio.create_task(pace.run("a", _stretch(0))) for _ in range(100)]
        await asyncio.sleep(0)
        assert all(task.done() for task in tasks)

    asyncio.run(run())


def test_another_key_does_not_wait() -> None:
    async def run() -> None:
        pace = Pace()
        await pace.turn("b")
        await pace.run("a", _stretch(LONG))
        waiting = asyncio.create_task(pace.run("a", _stretch(0)))
        other = asyncio.create_task(pace.run("b", _stretch(0)))
        await asyncio.sleep(0)
        assert other.done()
        assert not waiting.done()
        assert await asyncio.wait_for(waiting, 10) == "done"

    asyncio.run(run())


def test_who_gives_up_keeps_nobody_waiting() -> None:
    async def run() -> None:
        pace = Pace()
        await pace.turn("b")
        await pace.run("a", _stretch(LONG))
        first, second, third = (
            asyncio.create_task(pace.run("a", _stretch(LONG))) for _ in range(3)
        )
        await asyncio.sleep(0)
        first.cancel()
        third.cancel()
        assert await asyncio.wait_for(second, 10) == "done"
        for gone in (first, third):
            with pytest.raises(asyncio.CancelledError):
                await gone
        assert await asyncio.wait_for(pace.run("a", _stretch(0)), 10) == "done"

    asyncio.run(run())


def test_what_waits_and_what_fails_goes_through() -> None:
    async def run() -> None:
        pace = Pace()

        async def slow() -> int:
            await asyncio.sleep(0.001)
            return 3

        async def failing() -> None:
            _compute(LONG)
            raise ValueError("no")

        assert await pace.run("a", slow()) == 3
        with pytest.raises(ValueError, match="no"):
            await pace.run("a", failing())
        assert await asyncio.wait_for(pace.run("a", slow()), 10) == 3

    asyncio.run(run())


def test_the_refused_take_turns_too() -> None:
    """They ask again at once, and each refusal takes time on the loop."""

    async def run() -> int:
        pace, refused = Pace(), 0

        async def refuse(*_: Any) -> None:
            raise Unauthenticated("No.")

        async def send(message: Any) -> None:
            nonlocal refused
            refused += message["type"] == "http.response.start"

        guard = Guard(refuse, GuardRules(body_bytes_max=1), pace)
        await pace.turn("b")
        scope = {"type": "http", "method": "GET", "headers": [], "query_string": b""}
        many = [asyncio.create_task(guard({**scope}, _nothing, send)) for _ in range(100)]
        await asyncio.sleep(0)
        at_first = refused
        await asyncio.wait_for(asyncio.gather(*many), 10)
        assert refused == 100
        return at_first

    assert asyncio.run(run()) <= 1


async def _nothing() -> dict[str, Any]:
    raise AssertionError
