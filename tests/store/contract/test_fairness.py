"""Nobody waits for what another caller has queued."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.store.backends import Backend
from zibaldone.access.principal import Tenant
from zibaldone.access.share import SHARE
from zibaldone.limits import Limits
from zibaldone.store.port import Store

TENANT = Tenant()
SERVED_SECONDS_MAX = 10.0
"""Whoever is blocked is so until the test ends: a machine that is busy takes far less."""

SHARES_ENOUGH = 32
"""That many callers hold every writer an engine has."""


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    opened = backend.open(Limits(query_seconds_max=60))
    yield opened
    opened.close()


async def as_share(share: str, ask: Callable[[], Awaitable[Any]]) -> Any:
    SHARE.set(share)
    return await ask()


def queued(
    share: str, ask: Callable[[], Awaitable[Any]], count: int = 1
) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(as_share(share, ask)) for _ in range(count)]


@contextmanager
def blocked() -> Iterator[Callable[[object], None]]:
    """Work that takes as long as the test does."""
    over = threading.Event()

    def work(_: object) -> None:
        over.wait(60)

    try:
        yield work
    finally:
        over.set()


def test_a_read_does_not_wait_for_those_of_another_caller(store: Store) -> None:
    async def run() -> None:
        with blocked() as block:
            tasks = queued("a", lambda: store.read(TENANT, block), 16)
            await asyncio.sleep(0.1)
            (mine,) = queued("b", lambda: store.read(TENANT, lambda reader: "served"))
            assert await asyncio.wait_for(mine, SERVED_SECONDS_MAX) == "served"
            assert not any(task.done() for task in tasks)
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_nor_for_those_of_several(store: Store) -> None:
    async def run() -> None:
        with blocked() as block:
            tasks = [
                task
                for share in ("a", "c", "d")
                for task in queued(share, lambda: store.read(TENANT, block), 8)
            ]
            await asyncio.sleep(0.1)
            (mine,) = queued("b", lambda: store.read(TENANT, lambda reader: "served"))
            assert await asyncio.wait_for(mine, SERVED_SECONDS_MAX) == "served"
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_read_that_is_cancelled_leaves_the_queue(store: Store) -> None:
    ran: list[str] = []

    async def run() -> None:
        with blocked() as block:
            tasks = queued("a", lambda: store.read(TENANT, block), 8)
            late = queued("a", lambda: store.read(TENANT, lambda reader: ran.append("late")), 4)
            await asyncio.sleep(0.1)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.gather(*tasks)
        await store.read(TENANT, lambda reader: None)

    asyncio.run(run())
    assert ran == []


def test_writes_take_turns(store: Store) -> None:
    order: list[str] = []

    def write(name: str) -> Callable[[object], None]:
        def work(_: object) -> None:
            order.append(name)
            time.sleep(0.01)  # a thread that was woken for another gets to its work meanwhile

        return work

    async def run() -> None:
        with blocked() as block:
            tasks = [
                task
                for number in range(SHARES_ENOUGH)
                for task in queued(f"x{number}", lambda: store.write(TENANT, block))
            ]
            await asyncio.sleep(0.2)
            tasks += queued("a", lambda: store.write(TENANT, write("a")), 50)
            await asyncio.sleep(0.1)
            assert order == []
            tasks += queued("b", lambda: store.write(TENANT, write("b")), 2)
            await asyncio.sleep(0.1)
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert order.count("a") == 50
    assert max(number for number, name in enumerate(order) if name == "b") < 25


def test_a_write_is_not_acknowledged_with_a_long_one_of_another_caller(store: Store) -> None:
    """Both wait at the same time; the short one has its answer before the long one begins."""
    events: list[str] = []

    def long(_: object) -> None:
        events.append("long begins")
        end_s = time.thread_time() + 0.1
        while time.thread_time() < end_s:
            pass

    async def short() -> None:
        await store.write(TENANT, lambda writer: None)
        events.append("short is acknowledged")
        await asyncio.sleep(0)

    async def run() -> None:
        await as_share("a", lambda: store.write(TENANT, long))  # now it is known to be long
        events.clear()
        with blocked() as block:
            first = queued("x", lambda: store.write(TENANT, block))
            await asyncio.sleep(0.1)
            tasks = queued("b", short)
            await asyncio.sleep(0.1)
            tasks += queued("a", lambda: store.write(TENANT, long))
            await asyncio.sleep(0.1)
        await asyncio.gather(*first, *tasks)

    asyncio.run(run())
    assert events == ["short is acknowledged", "long begins"]


def test_short_writes_find_a_writer_free_most_of_the_time(store: Store) -> None:
    """However many long writes another caller has, few short ones have to wait for one to end."""
    long: list[tuple[float, float]] = []
    short: list[tuple[float, float]] = []
    over = threading.Event()

    def compute(_: object) -> None:
        started_s = time.monotonic()
        end_s = time.thread_time() + 0.1
        while time.thread_time() < end_s and not over.is_set():
            time.sleep(0.001)
            sum(range(20_000))
        long.append((started_s, time.monotonic()))

    async def flood() -> None:
        while not over.is_set():
            await store.write(TENANT, compute)

    async def run() -> None:
        tasks = queued("a", flood, 6)
        SHARE.set("b")
        for _ in range(100):
            asked_s = time.monotonic()
            await store.write(TENANT, lambda writer: None)
            short.append((asked_s, time.monotonic()))
            await asyncio.sleep(0.02)
        over.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert len(long) > 3, "they were tried"
    waited = sum(
        any(started_s < asked_s < ended_s <= answered_s for started_s, ended_s in long)
        for asked_s, answered_s in short
    )
    assert waited < len(short) / 2
