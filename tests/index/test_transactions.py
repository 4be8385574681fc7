"""What the pipeline tells happens after a commit, and a batch costs few statements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import apsw
import pytest
from prometheus_client import REGISTRY

from tests.index.drained import drain, paragraphs, status
from tests.index.embedders import Counting
from tests.index.index_state import assert_in_step
from tests.store.backends import Sqlite
from tests.store.kept import Kept
from zibaldone.errors import StorageFull
from zibaldone.index.reindex import fill
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import INDEX_BATCH_DOCUMENTS
from zibaldone.store.sqlite import store as sqlite_store
from zibaldone.store.sqlite.upkeep import Upkeep as SqliteUpkeep
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

    async def upkeep(self, work: Callable[[Upkeep], T], *, write: bool = True) -> T:
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

    async def upkeep(self, work: Callable[[Upkeep], T], *, write: bool = True) -> T:
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
    caplog.set_level(logging.INFO, "zibaldone.index")
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
    kept: Kept, tables: Sqlite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "zibaldone.index")
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
    assert lines == ["a: ready", "b: ready", "gone: removed", "registries/x: skipped"]
    increase = {name: counted(name) - before[name] for name in OUTCOMES}
    assert {name: count for name, count in increase.items() if count} == {
        "ready": 2, "removed": 1, "skipped": 1,
    }  # fmt: skip


class CountingConnection:
    def __init__(self, raw: apsw.Connection, executed: list[str]) -> None:
        self._raw = raw
        self._executed = executed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, *arguments: Any) -> Any:
        self._executed.append(sql)
        return self._raw.execute(sql, *arguments)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of upkeep."""
    statements: list[str] = []
    monkeypatch.setattr(
        sqlite_store,
        "Upkeep",
        lambda raw: SqliteUpkeep(cast("apsw.Connection", CountingConnection(raw, statements))),
    )
    return statements


def in_one_batch(kept: Kept, executed: list[str], documents: int) -> int:
    """How many statements it takes to index so many new documents of two chunks."""
    for number in range(documents):
        kept.create(f"{documents}/{number}", "\n\n".join(paragraphs(2)))
    worker = IndexWorker(kept.store, Counting())
    asyncio.run(worker.model_id())
    executed.clear()
    assert asyncio.run(worker.drain_once()).documents == documents
    assert {status(kept, f"{documents}/{number}") for number in range(documents)} == {"ready"}
    return len(executed)


def test_a_batch_takes_as_many_statements_however_many_documents_it_has(
    kept: Kept, executed: list[str]
) -> None:
    few = in_one_batch(kept, executed, 1)
    assert in_one_batch(kept, executed, INDEX_BATCH_DOCUMENTS) == few < 25


def test_filling_for_another_model_takes_as_many_statements_however_many_documents(
    kept: Kept, executed: list[str]
) -> None:
    def filled(documents: int) -> int:
        for number in range(documents):
            kept.create(f"{documents}/{number}", f"text {number}")
        drain(kept, Counting())
        other = Counting(32)
        model_id = asyncio.run(IndexWorker(kept.store, other).model_id())
        executed.clear()
        asyncio.run(fill(kept.store, other, model_id, lambda _: None))
        assert len(other.calls) == 1
        return len(executed)

    few = filled(1)
    assert filled(INDEX_BATCH_DOCUMENTS) == few
