"""A clock that was ahead and was set right: what it wrote must not hold anything up."""

from __future__ import annotations

import asyncio

import pytest

from tests.drivers.drained import drain, status
from tests.drivers.embedders import Clock, Counting
from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.index.reindex import catch_up
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import INDEX_LEASE_SECONDS
from zibaldone.model.instant import now_us
from zibaldone.model.job import VECTORS
from zibaldone.store.upkeep import Upkeep

AHEAD_SECONDS = [60, 3_600, 86_400 * 365]
ENDS_SECONDS_MAX = 30


def lease_and_die(kept: Kept, at_us: int) -> None:
    def lease(work: Upkeep) -> None:
        until_us = at_us + int(INDEX_LEASE_SECONDS * 1e6)
        assert work.queue.lease(
            VECTORS, limit=9, now_us=at_us, until_us=until_us, owner="dead", by_subject=True
        )

    kept.upkeep(lease)


def reindex(kept: Kept) -> int:
    async def run() -> int:
        worker = IndexWorker(kept.store, Counting())
        return await asyncio.wait_for(
            catch_up(kept.store, worker, lambda _: None), ENDS_SECONDS_MAX
        )

    return asyncio.run(run())


@pytest.fixture(params=AHEAD_SECONDS, ids=lambda seconds: f"{seconds} s")
def ahead_us(request: pytest.FixtureRequest) -> int:
    return now_us() + int(request.param) * 1_000_000


def test_a_lease_from_the_future_does_not_hold_a_document(kept: Kept, ahead_us: int) -> None:
    kept.create("a", "zebra")
    lease_and_die(kept, ahead_us)
    assert drain(kept, Counting()).documents == 1
    assert status(kept, "a") == "ready"


def test_nor_does_it_hold_up_reindex(kept: Kept, ahead_us: int) -> None:
    kept.create("a", "zebra")
    lease_and_die(kept, ahead_us)
    assert reindex(kept) == 1
    assert status(kept, "a") == "ready"


def test_reindex_works_on_what_was_written_in_the_future(
    kept: Kept, tables: Backend, ahead_us: int
) -> None:
    kept.create("a", "zebra")
    tables.execute(f"UPDATE jobs SET created_at_us = {ahead_us}")
    tables.execute(f"UPDATE documents SET updated_at_us = {ahead_us}")
    assert reindex(kept) == 1
    assert status(kept, "a") == "ready"


def test_a_pause_from_the_future_ends(kept: Kept, tables: Backend, ahead_us: int) -> None:
    """A back-off is never longer than an hour; one that is was set by a wrong clock."""
    kept.create("a", "zebra")
    tables.execute(f"UPDATE jobs SET not_before_us = {ahead_us + 3_601_000_000}, error = 'why'")
    assert drain(kept, Counting()).documents == 1


def test_the_clock_goes_back_while_a_worker_lives(kept: Kept) -> None:
    clock = Clock(now_us() + 3_600_000_000)
    worker = IndexWorker(kept.store, Counting(), clock=clock)
    kept.create("a", "zebra")
    asyncio.run(worker.drain())
    clock.pass_seconds(-3_600)
    kept.create("b", "gnu")
    assert asyncio.run(worker.drain()).documents == 1
    assert status(kept, "b") == "ready"


def test_many_kills_while_leased_do_not_mark_an_innocent_document(kept: Kept) -> None:
    kept.create("a", "zebra")
    at_us = now_us()
    for _ in range(10):
        lease_and_die(kept, at_us)
        at_us += int(INDEX_LEASE_SECONDS * 1e6) + 1
    clock = Clock(at_us)
    assert drain(kept, Counting(), clock=clock).documents == 1
    assert status(kept, "a") == "ready"
