"""What the pipeline logs and counts comes after the commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from prometheus_client import REGISTRY

from tests.drivers.drained import status
from tests.drivers.embedders import Counting
from tests.drivers.index_state import assert_in_step
from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.errors import StorageFull
from zibaldone.index.worker import IndexWorker
from zibaldone.store.upkeep import Upkeep

T = TypeVar("T")


class Rolled(Exception):
    """Thrown by a test to undo a transaction."""


class Repeating:
    """A store that runs every transaction twice: the first run is rolled back."""

    def __init__(self, kept: Kept) -> None:
        self._store = kept.store
        self.runs = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def upkeep(
        self, work: Callable[[Upkeep], T], *, write: bool = True, seconds_max: float | None = None
    ) -> T:
        assert seconds_max is None

        def run_and_undo(upkeep: Upkeep) -> None:
            work(upkeep)
            raise Rolled

        with pytest.raises(Rolled):
            await self._store.upkeep(run_and_undo, write=write)
        self.runs += 1
        return await self._store.upkeep(work, write=write)


class FailingCommit:
    """A store whose commits fail, from the given one on, after the work was done."""

    def __init__(self, kept: Kept, first_failing: int) -> None:
        self._store = kept.store
        self._left = first_failing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def upkeep(
        self, work: Callable[[Upkeep], T], *, write: bool = True, seconds_max: float | None = None
    ) -> T:
        assert seconds_max is None

        def run_and_fail(upkeep: Upkeep) -> T:
            work(upkeep)
            raise StorageFull("There is no room for the commit.")

        if write:
            self._left -= 1
        failing = write and self._left < 0
        return await self._store.upkeep(run_and_fail if failing else work, write=write)


def counted(outcome: str) -> float:
    value = REGISTRY.get_sample_value("zibaldone_index_changes_total", {"outcome": outcome})
    return value or 0.0


OUTCOMES = ("ready", "removed", "skipped", "error", "begun", "retry")


@pytest.mark.parametrize("first_failing", [1, 2])
def test_a_commit_that_fails_is_neither_logged_nor_counted(
    kept: Kept, caplog: pytest.LogCaptureFixture, first_failing: int
) -> None:
    """The first write of a round is the model's number, then the lease, then what was embedded."""
    caplog.set_level(logging.DEBUG, "zibaldone.index")
    kept.create("a", "zebra")
    kept.create("gone", "zebra")
    kept.delete("gone")
    before = {name: counted(name) for name in OUTCOMES}
    worker = IndexWorker(FailingCommit(kept, first_failing), Counting())
    with pytest.raises(StorageFull):
        asyncio.run(worker.drain_once())
    assert status(kept, "a") == "pending"
    told = {record.getMessage().split(",")[0] for record in caplog.records}
    if first_failing == 1:
        assert told == set()
        assert {name: counted(name) for name in OUTCOMES} == before
    else:
        assert told == {"gone: removed"}  # by the first transaction, which did commit
        assert counted("ready") == before["ready"]


def test_a_transaction_that_runs_twice_is_told_once(
    kept: Kept, tables: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "zibaldone.index")
    for name in ("a", "b", "gone"):
        kept.create(name, f"text of {name}")
    kept.delete("gone")
    kept.create("registries/x", "text")
    before = {name: counted(name) for name in OUTCOMES}
    store, embedder = Repeating(kept), Counting()
    done = asyncio.run(IndexWorker(store, embedder).drain())
    assert store.runs > 3
    assert (done.documents, done.chunks) == (4, 2)
    assert_in_step(tables, embedder)
    lines = sorted(record.getMessage().split(",")[0] for record in caplog.records)
    each = ["a: ready", "b: ready", "gone: removed", "registries/x: skipped"]
    assert lines == [*each[:3], "indexed 4 documents: 2 ready", each[3]]
    increase = {name: counted(name) - before[name] for name in OUTCOMES}
    assert {name: count for name, count in increase.items() if count} == {
        "ready": 2, "removed": 1, "skipped": 1,
    }  # fmt: skip
