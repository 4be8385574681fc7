"""The health check's look at a store: beside all other work, and never for long."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.errors import DeadlineExceeded, StorageUnavailable
from zibaldone.limits import PROBE_SECONDS_MAX, Limits
from zibaldone.store.port import ProbeResult, Store
from zibaldone.store.upkeep import PendingLag

MACHINE_SECONDS_MAX = 30.0
"""What a busy machine may add."""


async def probe(store: Store) -> ProbeResult[PendingLag]:
    return await store.probe(lambda work: work.consistency.lag())


def test_it_reads_and_tells_that_writes_are_taken(kept: Kept) -> None:
    kept.create("a")
    result = asyncio.run(probe(kept.store))
    assert result.result.pending == 1
    assert result.refused_write is None


def test_it_answers_while_readers_and_the_writer_are_stuck(kept: Kept) -> None:
    released = threading.Event()

    def hang(_: Any) -> bool:
        return released.wait(60)

    async def main() -> ProbeResult[PendingLag]:
        stuck = [asyncio.create_task(kept.store.read(EVERYTHING, hang)) for _ in range(16)]
        stuck.append(asyncio.create_task(kept.store.write(EVERYTHING, hang)))
        await asyncio.sleep(0.1)
        try:
            result = await probe(kept.store)
            assert not any(task.done() for task in stuck)
            return result
        finally:
            released.set()
            await asyncio.gather(*stuck)

    assert asyncio.run(main()).refused_write is None


def test_one_that_is_stuck_is_given_up_and_so_are_those_behind_it(kept: Kept) -> None:
    released = threading.Event()

    async def main() -> None:
        started_s = time.monotonic()
        stuck = [
            asyncio.create_task(kept.store.probe(lambda work: released.wait(60)))
            for _ in range(100)
        ]
        problems = await asyncio.gather(*stuck, return_exceptions=True)
        assert {type(problem) for problem in problems} == {DeadlineExceeded}
        assert time.monotonic() - started_s < PROBE_SECONDS_MAX + MACHINE_SECONDS_MAX
        released.set()
        assert (await probe(kept.store)).refused_write is None

    try:
        asyncio.run(main())
    finally:
        released.set()


def test_a_failure_of_the_work_reaches_the_caller(kept: Kept) -> None:
    def fail(_: Any) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(kept.store.probe(fail))
    assert asyncio.run(probe(kept.store)).refused_write is None


@pytest.mark.parametrize("is_used", [False, True])
def test_a_closed_store_refuses(backend: Backend, is_used: bool) -> None:
    store = backend.open(Limits())
    if is_used:
        asyncio.run(probe(store))
    store.close()
    store.close()
    with pytest.raises(StorageUnavailable, match="closed"):
        asyncio.run(probe(store))
