"""Threads whose time is shared: whose turn it is, is tested in tests/access/test_turns.py."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from zibaldone.access.share import SHARE
from zibaldone.access.turns import LONG_SECONDS, Turns
from zibaldone.errors import StorageUnavailable
from zibaldone.store.fair_threads import FairThreads, Task

HANG_SECONDS = 10


def compute(_: Task[str]) -> str:
    """Long enough that whoever asked for it has to rest."""
    end_s = time.thread_time() + 2 * LONG_SECONDS
    while time.thread_time() < end_s:
        pass
    return "computed"


def test_who_rests_is_served_though_every_thread_sleeps() -> None:
    turns: Turns[Task[str]] = Turns(1, rest_factor=4)
    threads = FairThreads("test", turns)

    async def run() -> str:
        SHARE.set("other")
        await threads.run(lambda _: "")
        SHARE.set("busy")
        await threads.run(compute)
        await asyncio.sleep(LONG_SECONDS)  # the thread waits, and for nobody
        async with asyncio.timeout(HANG_SECONDS):
            return await threads.run(compute)

    try:
        assert asyncio.run(run()) == "computed"
    finally:
        threads.close()


def test_a_rest_that_ends_before_the_thread_sleeps_is_noticed() -> None:
    """Between passing somebody over and going to sleep, a thread may be held up for long."""
    threads = FairThreads("test", Turns(1, rest_factor=4))

    async def run() -> str:
        SHARE.set("other")
        await threads.run(lambda _: "")
        SHARE.set("busy")
        began_s = time.monotonic()
        await threads.run(compute)
        rest_s = 4 * (time.monotonic() - began_s)
        resting = asyncio.create_task(threads.run(lambda _: "served"))
        await asyncio.sleep(0)  # it is queued
        SHARE.set("other")
        may_end = threading.Event()
        short = threads._queue(lambda _: may_end.wait(HANG_SECONDS))
        # Called in the thread, after it has looked for the next and before it sleeps.
        short.future.add_done_callback(lambda _: time.sleep(rest_s))
        may_end.set()
        async with asyncio.timeout(HANG_SECONDS):
            return await resting

    try:
        assert asyncio.run(run()) == "served"
    finally:
        threads.close()


def test_who_gives_up_what_has_begun_learns_it_when_that_is_over() -> None:
    """So that what they do next, on another thread, comes after it."""
    threads = FairThreads("test", Turns(2, per_share=2))
    begun, may_end = threading.Event(), threading.Event()
    done: list[str] = []

    def work(_: Task[None]) -> None:
        begun.set()
        assert may_end.wait(HANG_SECONDS)
        done.append("first")

    async def run() -> None:
        first = asyncio.create_task(threads.run_out(work))
        await asyncio.to_thread(begun.wait, HANG_SECONDS)
        first.cancel()
        asyncio.get_running_loop().call_later(0.1, may_end.set)
        with pytest.raises(asyncio.CancelledError):
            await first
        await threads.run_out(lambda _: done.append("second"))

    try:
        asyncio.run(run())
    finally:
        threads.close()
    assert done == ["first", "second"]


def test_a_thread_that_cannot_be_started_costs_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = FairThreads("test", Turns(1))

    async def run() -> str:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start_no_more)
            for _ in range(3):
                with pytest.raises(StorageUnavailable):
                    await threads.run(lambda _: "")
        async with asyncio.timeout(HANG_SECONDS):
            return await threads.run(lambda _: "served")

    try:
        assert asyncio.run(run()) == "served"
    finally:
        threads.close()


def start_no_more(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
