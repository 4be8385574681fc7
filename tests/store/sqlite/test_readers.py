"""The reader threads: what nobody waits for any more is interrupted."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from zibaldone.errors import DeadlineExceeded, StorageUnavailable
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.readers import Readers
from zibaldone.store.sqlite.schema import prepare

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"


@pytest.fixture
def readers(tmp_path: Path) -> Iterator[Readers]:
    prepare(tmp_path / "x.db", 5)
    made = Readers(tmp_path / "x.db", 5)
    yield made
    made.close()


HANG_SECONDS = 60
"""The reads would take 100 s."""


def test_a_read_whose_caller_is_gone_ends(readers: Readers) -> None:
    def endless(connection: Connection) -> None:
        connection.read(lambda raw: raw.execute(ENDLESS).fetchall(), 100)

    async def run() -> float:
        tasks = [asyncio.create_task(readers.run(endless)) for _ in range(3)]
        await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        started_s = time.monotonic()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(readers.run(lambda connection: None) for _ in range(8)))
        return time.monotonic() - started_s

    assert asyncio.run(run()) < HANG_SECONDS
    readers.close()  # waits for what still runs


def test_a_read_that_is_late_before_it_begins_leaves_nothing_behind(readers: Readers) -> None:
    """SQLite looks at the clock every some thousand steps, of all runs of a statement together. The
    third time is after `BEGIN` has begun a transaction; what stays open would refuse all others."""

    def read(connection: Connection, seconds_max: float) -> None:
        with suppress(DeadlineExceeded):
            connection.read(lambda raw: None, seconds_max)

    def in_one_turn(connection: Connection) -> bool:
        for number in range(2_100):
            read(connection, 100.0 if number < 1_990 else 0.0)
        return connection.raw.in_transaction

    assert not asyncio.run(readers.run(in_one_turn))


def test_reads_that_come_together_run_together(readers: Readers) -> None:
    """Each goes on only when all are there."""
    together = threading.Barrier(3)

    async def run() -> None:
        await asyncio.gather(*(readers.run(lambda _: together.wait(20)) for _ in range(3)))

    asyncio.run(run())


def test_after_the_end_nothing_is_read(readers: Readers) -> None:
    async def run() -> None:
        begun = asyncio.create_task(readers.run(lambda _: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(readers.close)
        await begun
        with pytest.raises(StorageUnavailable):
            await readers.run(lambda _: None)

    asyncio.run(run())
    readers.close()


def test_a_thread_that_cannot_be_started_costs_no_place(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start_no_more)
            for _ in range(10):
                with pytest.raises(StorageUnavailable):
                    await readers.run(lambda _: None)
        async with asyncio.timeout(20):
            await readers.run(lambda _: None)

    asyncio.run(run())
