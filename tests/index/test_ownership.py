"""Processes with different models on one file: one works on the queue, the others stand by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.drivers.drained import status, until
from tests.drivers.embedders import PATIENCE_SECONDS, Blocking, Clock, Counting
from tests.drivers.embedding_server import EmbeddingServer
from tests.drivers.engines import backend_of
from tests.drivers.index_state import assert_in_step, right_vectors, stored_vectors
from tests.drivers.server import Server
from tests.index.test_serving import HASHED, remote_model, wait_until, wait_until_ready
from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.embed.hashed import Hashed
from zibaldone.errors import Conflict
from zibaldone.index import ownership, sweep
from zibaldone.index.reindex_job import REINDEX, reindex_kind
from zibaldone.index.worker import IndexWorker
from zibaldone.jobs.runner import JobRunner
from zibaldone.limits import INDEX_WORKER_ALIVE_SECONDS
from zibaldone.model.instant import now_us
from zibaldone.model.job import NewJob

OURS, THEIRS = Hashed(), Hashed(32)


@asynccontextmanager
async def running(worker: IndexWorker) -> AsyncIterator[IndexWorker]:
    """Until it is stopped, in order."""
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def statuses(tables: Backend) -> set[str]:
    return {row[0] for row in tables.query("SELECT DISTINCT vector_status FROM documents")}


def create(kept: Kept, names: Sequence[str]) -> None:
    for name in names:
        kept.create(name, f"text of {name}")


class TestTwoModels:
    def test_only_the_first_works_and_what_it_calls_ready_stays_so(
        self, kept: Kept, tables: Backend
    ) -> None:
        ours, theirs = Counting(), Counting(32)

        async def both() -> None:
            async with running(IndexWorker(kept.store, ours)) as first:
                await until(lambda: tables.query("SELECT 1 FROM index_workers"))
                async with running(IndexWorker(kept.store, theirs)) as second:
                    await until(lambda: second.rival == ours.identity)
                    await asyncio.to_thread(create, kept, [f"d/{n}" for n in range(40)])
                    await until(lambda: statuses(tables) == {"ready"})
                    sweeps = [NewJob(REINDEX) for _ in range(10)]
                    await kept.store.write(EVERYTHING, lambda writer: writer.queue.add(sweeps))
                    kinds = {REINDEX: reindex_kind(kept.store, second)}
                    await JobRunner(kept.store, kinds).drain()  # of the one that stands by
                    assert statuses(tables) == {"ready"}
                    waiting = await kept.store.read(
                        EVERYTHING, lambda reader: reader.jobs.page(state="queued", limit=99)
                    )
                    assert len(waiting) == 10  # for the one that has the turn
                    assert "indexes with hashed/64" in (waiting[0].error or "")
                    assert first.rival is None

        asyncio.run(both())
        assert_in_step(tables, OURS)
        assert theirs.calls == []

    def test_the_next_takes_over_at_once_from_one_that_was_stopped(
        self, kept: Kept, tables: Backend
    ) -> None:
        """As when the settings are changed and the server is restarted."""
        create(kept, ["a", "b"])

        async def restart() -> None:
            async with running(IndexWorker(kept.store, Counting())):
                await until(lambda: statuses(tables) == {"ready"})
            assert tables.query("SELECT * FROM index_workers") == []
            async with running(IndexWorker(kept.store, Counting(32))) as second:
                await until(lambda: len(stored_vectors(tables, THEIRS.identity)) == 2)
                await until(lambda: statuses(tables) == {"ready"})
                assert second.rival is None

        asyncio.run(restart())
        assert_in_step(tables, THEIRS)

    def test_one_that_stood_by_takes_over_when_the_other_stays_away(
        self, kept: Kept, tables: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ownership, "INDEX_WORKER_ALIVE_SECONDS", 0.2)
        create(kept, ["a", "b"])

        async def leave() -> None:
            async with running(IndexWorker(kept.store, Counting())):
                await until(lambda: statuses(tables) == {"ready"})
                standing_by = IndexWorker(kept.store, Counting(32))
                task = asyncio.create_task(standing_by.run())
                await until(lambda: standing_by.rival == OURS.identity)
            await until(lambda: len(stored_vectors(tables, THEIRS.identity)) == 2)
            await until(lambda: statuses(tables) == {"ready"})
            assert standing_by.rival is None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(leave())
        assert_in_step(tables, THEIRS)

    def test_a_restart_does_not_hand_the_index_to_one_that_stands_by(
        self, kept: Kept, tables: Backend
    ) -> None:
        create(kept, ["a"])
        theirs = Counting(32)

        async def restart() -> None:
            standing_by = IndexWorker(kept.store, theirs)
            async with running(IndexWorker(kept.store, Counting())):
                await until(lambda: statuses(tables) == {"ready"})
                task = asyncio.create_task(standing_by.run())
                await until(lambda: standing_by.rival is not None)
            standing_by.wake()  # it looks, and sees that nobody is there
            await asyncio.sleep(0.1)
            async with running(IndexWorker(kept.store, Counting())) as again:
                await asyncio.to_thread(kept.create, "b", "text")
                await until(lambda: status(kept, "b") == "ready")
                assert (again.rival, standing_by.rival) == (None, OURS.identity)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        asyncio.run(restart())
        assert theirs.calls == []
        assert_in_step(tables, OURS)

    def test_one_of_two_with_the_same_model_may_stop(self, kept: Kept, tables: Backend) -> None:
        async def stop_one() -> None:
            async with running(IndexWorker(kept.store, Counting())):
                async with running(IndexWorker(kept.store, Counting())):
                    await until(lambda: len(tables.query("SELECT * FROM index_workers")) == 2)
                third = IndexWorker(kept.store, Counting(32))
                await asyncio.to_thread(kept.create, "a", "text")
                assert (await third.drain()).documents == 0
                assert third.rival == OURS.identity
                await until(lambda: status(kept, "a") == "ready")

        asyncio.run(stop_one())
        assert_in_step(tables, OURS)

    def test_nothing_is_queued_for_another_model_than_that_in_use(
        self, kept: Kept, tables: Backend
    ) -> None:
        create(kept, ["a"])

        async def sweep_for_another() -> None:
            async with running(IndexWorker(kept.store, Counting())):
                await until(lambda: statuses(tables) == {"ready"})
                other_id = await IndexWorker(kept.store, Counting(32)).model_id()
                with pytest.raises(Conflict, match="indexes with hashed/64"):
                    await sweep.enqueue_missing(kept.store, other_id)

        asyncio.run(sweep_for_another())
        assert_in_step(tables, OURS)

    @pytest.mark.parametrize("pause_s", [0.0, 0.001, 0.002, 0.004, 0.008, 0.016])
    def test_one_that_is_stopped_at_its_very_start_leaves_no_claim(
        self, kept: Kept, tables: Backend, pause_s: float
    ) -> None:
        """At whichever moment: a claim that was on its way when it was stopped is taken back."""

        async def start_and_stop() -> None:
            for _ in range(5):
                async with running(IndexWorker(kept.store, Counting())):
                    await asyncio.sleep(pause_s)
                assert tables.query("SELECT * FROM index_workers") == []

        asyncio.run(start_and_stop())


class TestDeadAndAsleep:
    def test_a_dead_worker_of_another_model_is_waited_for_only_so_long(
        self, kept: Kept, tables: Backend
    ) -> None:
        clock = Clock(now_us())
        create(kept, ["a"])
        asyncio.run(IndexWorker(kept.store, Counting(), clock=clock).drain_once())  # and it dies
        kept.create("b", "text")
        theirs = IndexWorker(kept.store, Counting(32), clock=clock)
        clock.pass_seconds(INDEX_WORKER_ALIVE_SECONDS)
        assert asyncio.run(theirs.drain()).documents == 0
        clock.pass_seconds(0.001)
        assert asyncio.run(theirs.drain()).documents == 1
        assert (theirs.rival, status(kept, "b")) == (None, "ready")

    def test_one_that_sweeps_for_minutes_lives(
        self, kept: Kept, tables: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock, swept = Clock(now_us()), asyncio.Event()

        async def sweep_for_minutes(*arguments: object) -> int:
            for _ in range(4):
                clock.pass_seconds(INDEX_WORKER_ALIVE_SECONDS * 0.9)
                await until(lambda: claimed_until_us() == clock() + alive_us)
                assert (await theirs.drain()).documents == 0
            swept.set()
            return 0

        def claimed_until_us() -> int:
            ((until_us,),) = tables.query("SELECT alive_until_us FROM index_workers")
            return int(until_us)

        alive_us = int(INDEX_WORKER_ALIVE_SECONDS * 1e6)
        monkeypatch.setattr("zibaldone.index.worker.INDEX_RENEW_SECONDS", 0.01)
        monkeypatch.setattr("zibaldone.index.worker.enqueue_missing", sweep_for_minutes)
        theirs = IndexWorker(kept.store, Counting(32), clock=clock)
        create(kept, ["a"])

        async def run() -> None:
            async with running(IndexWorker(kept.store, Counting(), clock=clock)):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await swept.wait()
                await until(lambda: status(kept, "a") == "ready")

        asyncio.run(run())
        assert_in_step(tables, OURS)

    def test_a_sign_of_life_from_a_wrong_clock_is_void(self, kept: Kept) -> None:
        astray, clock = Clock(now_us()), Clock(now_us())
        astray.pass_seconds(1_000_000)
        create(kept, ["a"])
        asyncio.run(IndexWorker(kept.store, Counting(), clock=astray).drain_once())
        kept.create("b", "text")
        assert asyncio.run(IndexWorker(kept.store, Counting(32), clock=clock).drain_once())
        assert status(kept, "b") == "ready"

    def test_one_that_slept_while_another_took_over_leaves_its_work_alone(
        self, kept: Kept, tables: Backend
    ) -> None:
        """A process that was stopped in the middle, for minutes, comes back with its vectors."""
        clock, slow, theirs = Clock(now_us()), Blocking(), Blocking()
        theirs.dimensions, theirs.identity = 32, THEIRS.identity
        create(kept, ["a"])

        async def sleep_in_the_middle() -> None:
            sleeper = IndexWorker(kept.store, slow, clock=clock)
            begun = asyncio.create_task(sleeper.drain_once())
            await asyncio.to_thread(slow.begun.wait)
            clock.pass_seconds(INDEX_WORKER_ALIVE_SECONDS + 1)
            taking_over = asyncio.create_task(
                IndexWorker(kept.store, theirs, clock=clock).drain_once()
            )
            await asyncio.to_thread(theirs.begun.wait)
            slow.may_go_on.set()
            await begun
            assert sleeper.rival == THEIRS.identity
            assert status(kept, "a") == "pending"
            theirs.may_go_on.set()
            await taking_over

        asyncio.run(sleep_in_the_middle())
        assert_in_step(tables, THEIRS)
        assert stored_vectors(tables, OURS.identity) == right_vectors(tables, OURS)


def test_a_server_beside_one_with_another_model_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with EmbeddingServer() as model, Server(data, environment=HASHED) as first:
        first.create("a", "a zebra")
        wait_until_ready(first, "a")
        with Server(data, environment=remote_model(model)) as second:

            def index() -> dict[str, object]:
                services = second.client.get("/health").json()["services"]
                return dict(services["index"])

            wait_until(lambda: index()["status"] == "standby")
            assert index()["model_in_use"] == OURS.identity
            assert OURS.identity in str(index()["message"])
            second.create("b", "a lion")
            wait_until_ready(first, "a", "b")
            refused = second.client.post("/kb/reindex-missing")
            assert (refused.status_code, refused.json()["code"]) == (409, "CONFLICT")
            found = second.client.get("/search", params={"query": "lion"}).json()
            assert [hit["document_id"] for hit in found["results"]] == ["b"]
        assert "standing by: another process indexes with hashed/64" in second.log()
        assert first.client.get("/health").json()["status"] == "healthy"
    tables = backend_of(data)
    assert_in_step(tables, OURS)
    assert stored_vectors(tables, "remote/m/8") == {}
