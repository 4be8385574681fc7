"""The bytes that requests may hold: what is granted comes back, whoever gives up when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from zibaldone.access.principal import Principal
from zibaldone.errors import PayloadTooLarge, TooManyRequests
from zibaldone.limits import BODY_EXTRA_BYTES_MAX, UNCOUNTED_BYTES_MAX, Limits
from zibaldone.web.gate import Admission, Gate, Memory

_LARGE = BODY_EXTRA_BYTES_MAX + 1


def test_who_gives_up_at_the_last_moment_keeps_nothing() -> None:
    """Cancelled, and before its task runs there is room: the bytes were lost for good."""

    async def run() -> None:
        memory = Memory(_LARGE, _LARGE)
        await memory.reserve("a", _LARGE)
        waiting = asyncio.create_task(memory.reserve("a", _LARGE))
        following = asyncio.create_task(memory.reserve("b", _LARGE))
        await asyncio.sleep(0)
        waiting.cancel()  # its future is cancelled now, its task runs later
        memory.release("a", _LARGE)
        await following
        with pytest.raises(asyncio.CancelledError):
            await waiting
        memory.release("b", _LARGE)
        await asyncio.wait_for(memory.reserve("a", _LARGE), 5)

    asyncio.run(run())


def test_several_that_give_up_at_once_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zibaldone.web.gate.BODY_WAIT_SECONDS_MAX", 0.05)

    async def run() -> None:
        memory = Memory(_LARGE, _LARGE)
        await memory.reserve("a", _LARGE)
        tasks = [asyncio.create_task(memory.reserve(key, _LARGE)) for key in "aabbc" * 5]
        asyncio.get_running_loop().call_later(0.05, memory.release, "a", _LARGE)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        granted = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert len(granted) <= 1
        assert all(isinstance(one, TooManyRequests) for one in outcomes if one is not None)
        for number in granted:
            memory.release("aabbc"[number % 5], _LARGE)
        await asyncio.wait_for(memory.reserve("d", _LARGE), 5)

    for _ in range(20):
        asyncio.run(run())


def test_a_key_that_holds_nothing_finds_room_for_a_body_that_is_not_large() -> None:
    """A few keys that send slowly hold all there is; one such body of each other key is taken."""

    async def run() -> None:
        memory = Memory(_LARGE, _LARGE)
        await memory.reserve("a", _LARGE)
        large = asyncio.create_task(memory.reserve("c", _LARGE))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await memory.reserve("b", BODY_EXTRA_BYTES_MAX)
        second = asyncio.create_task(memory.reserve("b", 1))
        await asyncio.sleep(0)
        assert not second.done()
        assert not large.done()
        memory.release("b", BODY_EXTRA_BYTES_MAX)
        await second
        memory.release("b", 1)
        memory.release("a", _LARGE)
        await large

    asyncio.run(run())


def test_small_ones_do_not_pass_a_large_one_by_for_ever() -> None:
    """There is room for each of them when it comes, and for the large one when one has left."""

    async def run() -> None:
        memory = Memory(10 * _LARGE, 10 * _LARGE)
        await memory.reserve("small", 3 * _LARGE)
        large = asyncio.create_task(memory.reserve("large", 8 * _LARGE))
        await asyncio.sleep(0)
        following = asyncio.create_task(memory.reserve("another", 3 * _LARGE))
        await asyncio.sleep(0)
        memory.release("small", 3 * _LARGE)
        async with asyncio.timeout(5):
            await large
            assert not following.done()
            memory.release("large", 8 * _LARGE)
            await following

    asyncio.run(run())


def test_who_waits_for_others_of_its_key_holds_up_no_other_key() -> None:
    async def run() -> None:
        memory = Memory(10, 5)
        await memory.reserve("a", 5)
        waiting = asyncio.create_task(memory.reserve("a", 5))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await memory.reserve("b", 5)
            assert not waiting.done()
            memory.release("a", 5)
            await waiting

    asyncio.run(run())


def test_a_body_that_becomes_too_long_keeps_nothing() -> None:
    """Its bytes were reserved on the way."""
    size = UNCOUNTED_BYTES_MAX * 2
    gate = Gate(Limits(bytes_in_flight_max=size, request_body_bytes_max=size))

    async def admit(parts: int) -> Admission:
        left = parts

        async def receive() -> dict[str, Any]:
            nonlocal left
            left -= 1
            body = b"x" * (UNCOUNTED_BYTES_MAX // 2 + 1)
            return {"type": "http.request", "body": body, "more_body": left > 0}

        scope = {"type": "http", "method": "POST", "headers": []}
        return await asyncio.wait_for(gate.admit(Principal("key"), scope, receive), 5)

    async def run() -> None:
        for _ in range(3):
            with pytest.raises(PayloadTooLarge):
                await admit(9)
        gate.leave(await admit(3))

    asyncio.run(run())


def test_a_long_body_that_is_not_let_in_keeps_nothing() -> None:
    """Its bytes were reserved when it was read; then there was no place for it."""
    size = UNCOUNTED_BYTES_MAX * 2
    limits = Limits(requests_per_key_max=1, bytes_in_flight_max=size, request_body_bytes_max=size)
    key = Principal("key")

    async def admit(gate: Gate, body_bytes: int) -> Admission:
        parts = [b"x" * (body_bytes // 4)] * 4

        async def receive() -> dict[str, Any]:
            part = parts.pop()
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        length = (b"content-length", b"%d" % body_bytes)
        scope = {"type": "http", "method": "POST", "headers": [length]}
        return await asyncio.wait_for(gate.admit(key, scope, receive), 5)

    async def run() -> None:
        gate = Gate(limits)
        running = await admit(gate, 4)
        for _ in range(3):
            with pytest.raises(TooManyRequests):
                await admit(gate, size)
        gate.leave(running)
        gate.leave(await admit(gate, size))

    asyncio.run(run())
