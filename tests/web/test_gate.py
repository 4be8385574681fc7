"""The bytes that requests may hold: what is granted comes back, whoever gives up when."""

from __future__ import annotations

import asyncio

import pytest

from zibaldone.errors import TooManyRequests
from zibaldone.web.gate import Memory


def test_who_gives_up_at_the_last_moment_keeps_nothing() -> None:
    """Cancelled, and before its task runs there is room: the bytes were lost for good."""

    async def run() -> None:
        memory = Memory(10, 10)
        await memory.reserve("a", 10)
        waiting = asyncio.create_task(memory.reserve("a", 10))
        following = asyncio.create_task(memory.reserve("b", 10))
        await asyncio.sleep(0)
        waiting.cancel()  # its future is cancelled now, its task runs later
        memory.release("a", 10)
        await following
        with pytest.raises(asyncio.CancelledError):
            await waiting
        memory.release("b", 10)
        await asyncio.wait_for(memory.reserve("a", 10), 5)

    asyncio.run(run())


def test_several_that_give_up_at_once_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zibaldone.web.gate.BODY_WAIT_SECONDS_MAX", 0.05)

    async def run() -> None:
        memory = Memory(10, 10)
        await memory.reserve("a", 10)
        tasks = [asyncio.create_task(memory.reserve(key, 10)) for key in "aabbc" * 5]
        asyncio.get_running_loop().call_later(0.05, memory.release, "a", 10)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        granted = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert len(granted) <= 1
        assert all(isinstance(one, TooManyRequests) for one in outcomes if one is not None)
        for number in granted:
            memory.release("aabbc"[number % 5], 10)
        await asyncio.wait_for(memory.reserve("d", 10), 5)

    for _ in range(20):
        asyncio.run(run())
