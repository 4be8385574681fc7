"""The index pipeline runs as many statements for a batch, however many documents it has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from tests.drivers.drained import drain, paragraphs, status
from tests.drivers.embedders import Counting
from tests.store.backends import Sqlite
from tests.store.kept import Kept
from zibaldone.index.reindex import fill
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import INDEX_BATCH_DOCUMENTS, Limits
from zibaldone.store.sqlite import store as sqlite_store
from zibaldone.store.sqlite.upkeep import Upkeep as SqliteUpkeep


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    store = Sqlite(tmp_path).open(Limits())
    yield Kept(store, Limits())
    store.close()


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
        lambda raw, later=None: SqliteUpkeep(
            cast("apsw.Connection", CountingConnection(raw, statements)), later
        ),
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
