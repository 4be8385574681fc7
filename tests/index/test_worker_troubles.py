"""The worker among bad documents, long ones, other workers, and changes made meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.drivers.drained import BAD, drain, paragraphs, passages, status, until
from tests.drivers.embedders import PATIENCE_SECONDS, Blocking, Clock, Counting, Failing
from tests.drivers.index_state import assert_in_step
from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.errors import EmbedderUnavailable, EmbeddingFailed
from zibaldone.index import worker
from zibaldone.index.reindex_job import REINDEX, reindex_kind, reindex_schedule
from zibaldone.index.sweep import enqueue_missing
from zibaldone.index.worker import IndexWorker
from zibaldone.jobs.runner import JobRunner
from zibaldone.jobs.schedule import Scheduler
from zibaldone.limits import (
    INDEX_BATCH_CHUNKS,
    INDEX_BATCH_DOCUMENTS,
    INDEX_LEASE_SECONDS,
    INDEX_TRIES_MAX,
    INDEX_UNAVAILABLE_SECONDS_MAX,
    JOB_CRASHES_MAX,
)
from zibaldone.model.instant import now_us
from zibaldone.model.job import VECTORS, LeasedJob, new_lease_owner
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Upkeep


def lease(work: Upkeep, at_us: int, until_us: int) -> list[LeasedJob]:
    return work.queue.lease(
        VECTORS, limit=5, now_us=at_us, until_us=until_us, owner=new_lease_owner(), by_subject=True
    )


class TestNeighbours:
    @pytest.mark.parametrize(
        "problem",
        [BAD, RuntimeError("a bug in the model"), MemoryError()],
        ids=lambda e: type(e).__name__,
    )
    def test_a_bad_document_does_not_hold_up_the_others(
        self, kept: Kept, tables: Backend, problem: Exception
    ) -> None:
        failing, clock = Failing(problem, only="poison"), Clock(now_us())
        for number in range(40):
            kept.create(f"d/{number:02}", "poison" if number == 3 else f"text {number}")
        drain(kept, failing, clock=clock)
        assert [n for n in range(40) if status(kept, f"d/{n:02}") != "ready"] == [3]
        for _ in range(INDEX_TRIES_MAX):
            clock.pass_seconds(100)
            drain(kept, failing, clock=clock)
        bad = kept.known("d/03")
        assert bad.vector_status == "error"
        assert bad.vector_error
        kept.create("later", "text")
        drain(kept, failing, clock=clock)
        assert status(kept, "later") == "ready"

    def test_a_model_that_cannot_be_had_is_not_asked_for_each_document(
        self, kept: Kept, tables: Backend
    ) -> None:
        away = Failing(EmbedderUnavailable("nobody is there", retry_after_seconds=60.0))
        clock = Clock(now_us())
        for number in range(INDEX_BATCH_DOCUMENTS):
            kept.create(f"d/{number}", f"text {number}")
        drain(kept, away, clock=clock)
        assert len(away.calls) == 1
        away.problem = None
        clock.pass_seconds(59)
        assert drain(kept, away, clock=clock).documents == 0  # it asked to be left alone
        clock.pass_seconds(1)
        drain(kept, away, clock=clock)
        assert_in_step(tables, away)

    def test_vectors_of_the_wrong_shape_are_not_stored(self, kept: Kept, tables: Backend) -> None:
        class Short(Counting):
            def embed(self, texts: Any) -> Any:
                return super().embed(texts)[:, :-1]

        clock = Clock(now_us())
        kept.create("a", "zebra")
        for _ in range(INDEX_TRIES_MAX):
            drain(kept, Short(), clock=clock)
            clock.pass_seconds(100)
        assert status(kept, "a") == "error"
        assert "shape" in (kept.known("a").vector_error or "")
        assert tables.query("SELECT * FROM vectors") == []

    def test_a_long_reason_is_cut(self, kept: Kept) -> None:
        clock = Clock(now_us())
        kept.create("a", "zebra")
        for _ in range(INDEX_TRIES_MAX):
            drain(kept, Failing(EmbeddingFailed("why " * 10_000)), clock=clock)
            clock.pass_seconds(100)
        assert len(kept.known("a").vector_error or "") <= 500


class TestAway:
    """The model cannot be had for a while: nothing of that is the documents' fault."""

    @pytest.mark.requirement("000/CC.06")
    def test_documents_wait_however_long_and_are_done_soon_after_it_is_back(
        self, kept: Kept, tables: Backend
    ) -> None:
        away, clock = Failing(EmbedderUnavailable("nobody is there")), Clock(now_us())
        for number in range(2 * INDEX_BATCH_DOCUMENTS):
            kept.create(f"d/{number}", f"text {number}")
        indexing = IndexWorker(kept.store, away, clock=clock)
        for _ in range(900):
            asyncio.run(indexing.drain())
            clock.pass_seconds(1)
        assert tables.query("SELECT DISTINCT vector_status FROM documents") == [("pending",)]
        assert tables.query("SELECT count(*), max(state), max(attempts) FROM jobs") == [
            (2 * INDEX_BATCH_DOCUMENTS, 0, 0)
        ]
        assert len(away.calls) < 900 / INDEX_UNAVAILABLE_SECONDS_MAX * 2 + 10  # it is not pestered
        away.problem = None
        for _ in range(int(INDEX_UNAVAILABLE_SECONDS_MAX)):
            clock.pass_seconds(1)
            asyncio.run(indexing.drain())
        assert_in_step(tables, away)

    def test_what_a_document_failed_by_itself_before_still_counts(
        self, kept: Kept, tables: Backend
    ) -> None:
        failing, clock = Failing(BAD), Clock(now_us())
        kept.create("a", "zebra")
        indexing = IndexWorker(kept.store, failing, clock=clock)
        for number in range(INDEX_TRIES_MAX):
            assert status(kept, "a") == "pending"
            for failing.problem in (EmbedderUnavailable("nobody is there"), BAD):
                asyncio.run(indexing.drain_once())
                clock.pass_seconds(100)
            assert len(failing.calls) == 2 * (number + 1)
        assert status(kept, "a") == "error"

    def test_a_document_that_makes_the_model_go_away_does_not_hold_up_the_others(
        self, kept: Kept, tables: Backend
    ) -> None:
        failing = Failing(EmbedderUnavailable("it broke off"), only="poison")
        clock = Clock(now_us())
        for number in range(2 * INDEX_BATCH_DOCUMENTS):
            kept.create(f"d/{number:02}", "poison" if number == 3 else f"text {number}")
        indexing = IndexWorker(kept.store, failing, clock=clock)
        for _ in range(120):
            asyncio.run(indexing.drain())
            clock.pass_seconds(1)
        unready = "SELECT document_id FROM documents WHERE vector_status <> 'ready'"
        assert tables.query(unready) == [("d/03",)]


class TestLongDocuments:
    def test_a_long_document_is_done_in_parts_beside_the_others(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder = Counting()
        kept.create("long", "\n\n".join(paragraphs(300)))
        long_passages = passages(tables)
        for number in range(20):
            kept.create(f"short/{number:02}", f"text {number}")
        indexing = IndexWorker(kept.store, embedder)
        first = asyncio.run(indexing.drain_once())
        assert first.chunks <= INDEX_BATCH_CHUNKS
        assert status(kept, "long") == "pending"
        assert status(kept, "short/00") == status(kept, "short/14") == "ready"
        asyncio.run(indexing.drain_once())
        assert status(kept, "short/19") == "ready"  # though the long one came before
        asyncio.run(indexing.drain())
        assert all(len(call) <= INDEX_BATCH_CHUNKS for call in embedder.calls)
        assert len(embedder.texts) == long_passages + 20
        assert_in_step(tables, embedder)

    def test_what_was_done_of_it_is_not_done_again(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        kept.create("long", "\n\n".join(paragraphs(200)))
        first = asyncio.run(IndexWorker(kept.store, embedder).drain_once())
        assert 0 < first.chunks < passages(tables)
        drain(kept, embedder)  # another worker, who knows nothing of the first
        assert len(embedder.texts) == len(set(embedder.texts)) == passages(tables)
        assert_in_step(tables, embedder)

    def test_a_failure_in_the_middle_of_it_has_all_its_tries(
        self, kept: Kept, tables: Backend
    ) -> None:
        failing, clock = Failing(None), Clock(now_us())
        kept.create("long", "\n\n".join(paragraphs(200)))
        indexing = IndexWorker(kept.store, failing, clock=clock)
        asyncio.run(indexing.drain_once())
        failing.problem = BAD
        for _ in range(INDEX_TRIES_MAX - 1):
            asyncio.run(indexing.drain_once())
            clock.pass_seconds(100)
        assert status(kept, "long") == "pending"
        failing.problem = None
        asyncio.run(indexing.drain())
        assert_in_step(tables, failing)


class TestMeanwhile:
    """Things that happen to a document while its passages are being embedded."""

    def run(self, kept: Kept, change: Any) -> Blocking:
        embedder = Blocking()

        async def both() -> None:
            indexing = asyncio.create_task(IndexWorker(kept.store, embedder).drain_once())
            await asyncio.to_thread(embedder.begun.wait)
            await asyncio.to_thread(change)
            embedder.may_go_on.set()
            await indexing

        asyncio.run(both())
        return embedder

    @pytest.mark.requirement("K4")
    def test_deleting_it_leaves_no_vectors(self, kept: Kept, tables: Backend) -> None:
        kept.create("a", "zebra")
        embedder = self.run(kept, lambda: kept.delete("a"))
        assert tables.query("SELECT * FROM vectors") == []
        assert status(kept, "a") == "skipped"
        drain(kept, embedder)
        assert_in_step(tables, embedder)

    def test_changing_it_leaves_it_waiting_and_the_unchanged_part_done(
        self, kept: Kept, tables: Backend
    ) -> None:
        body = paragraphs(3)
        kept.create("a", "\n\n".join(body))
        embedder = self.run(
            kept, lambda: kept.patch("a", body[0], "Quite another beginning. " * 40)
        )
        assert status(kept, "a") == "pending"
        done = len(embedder.taken())
        drain(kept, embedder)
        assert len(embedder.taken()) < done
        assert_in_step(tables, embedder)

    def test_deleting_and_creating_it_anew_embeds_the_new_one(
        self, kept: Kept, tables: Backend
    ) -> None:
        kept.create("a", "zebra")

        def change() -> None:
            kept.delete("a")
            kept.create("a", "zebra")

        embedder = self.run(kept, change)
        assert status(kept, "a") == "pending"
        assert tables.query("SELECT * FROM vectors") == []
        drain(kept, embedder)
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("K4")
    def test_a_hundred_deleted_at_once_leave_nothing(self, kept: Kept, tables: Backend) -> None:
        async def upload_and_delete() -> None:
            indexing = IndexWorker(kept.store, Counting())
            running = asyncio.create_task(indexing.run())
            for number in range(100):
                await asyncio.to_thread(kept.create, f"d/{number}", f"text {number} " * 300)
                indexing.wake()
                if number % 3:
                    await asyncio.sleep(0)
                await asyncio.to_thread(kept.delete, f"d/{number}")
            await until(lambda: not tables.query("SELECT 1 FROM jobs"))
            running.cancel()

        asyncio.run(upload_and_delete())
        assert tables.query("SELECT * FROM vectors") == []
        assert tables.query("SELECT * FROM chunks") == []


class TestLeases:
    def test_two_workers_do_not_do_the_same_work(self, kept: Kept, tables: Backend) -> None:
        for number in range(2 * INDEX_BATCH_DOCUMENTS):
            kept.create(f"d/{number:02}", f"text {number}")
        slow, other = Blocking(), Counting()

        async def both() -> None:
            first = asyncio.create_task(IndexWorker(kept.store, slow).drain_once())
            await asyncio.to_thread(slow.begun.wait)
            # One that is being worked on changes: the other worker must not take it either.
            await asyncio.to_thread(kept.update, "d/00", metadata={"k": 1})
            await IndexWorker(kept.store, other).drain()
            assert len(other.texts) == INDEX_BATCH_DOCUMENTS
            slow.may_go_on.set()
            await first

        asyncio.run(both())
        assert set(slow.texts).isdisjoint(other.texts)
        drain(kept, other)
        assert len(slow.texts) + len(other.texts) == 2 * INDEX_BATCH_DOCUMENTS
        assert_in_step(tables, other)

    def test_a_dead_workers_documents_are_taken_up_after_its_lease(
        self, kept: Kept, tables: Backend
    ) -> None:
        kept.create("a", "zebra")
        clock, embedder = Clock(now_us()), Counting()
        until_us = clock() + int(INDEX_LEASE_SECONDS * 1e6)

        def lease_and_die(work: Upkeep) -> None:
            assert lease(work, clock(), until_us)

        kept.upkeep(lease_and_die)
        clock.pass_seconds(INDEX_LEASE_SECONDS - 0.001)
        assert drain(kept, embedder, clock=clock).documents == 0
        clock.pass_seconds(0.001)
        assert drain(kept, embedder, clock=clock).documents == 1
        assert_in_step(tables, embedder)

    def test_a_busy_worker_keeps_its_lease(
        self, kept: Kept, tables: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(worker, "INDEX_RENEW_SECONDS", 0.01)
        kept.create("a", "zebra")
        slow, clock = Blocking(), Clock(now_us())

        def renewed() -> bool:
            ((leased_until_us,),) = tables.query("SELECT leased_until_us FROM jobs")
            return bool(leased_until_us == clock() + INDEX_LEASE_SECONDS * 1e6)

        async def both() -> None:
            first = asyncio.create_task(IndexWorker(kept.store, slow, clock=clock).drain_once())
            await asyncio.to_thread(slow.begun.wait)
            for _ in range(3):
                clock.pass_seconds(INDEX_LEASE_SECONDS * 0.9)
                await until(renewed)
                other = Counting()
                assert (await IndexWorker(kept.store, other, clock=clock).drain()).documents == 0
            slow.may_go_on.set()
            await first

        asyncio.run(both())
        assert_in_step(tables, slow)

    def test_a_worker_that_is_stopped_gives_back_what_it_has(
        self, kept: Kept, tables: Backend
    ) -> None:
        kept.create("a", "zebra")
        slow, other = Blocking(), Counting()

        async def stop_in_the_middle() -> None:
            running = asyncio.create_task(IndexWorker(kept.store, slow).run())
            await asyncio.to_thread(slow.begun.wait)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            slow.may_go_on.set()

        asyncio.run(stop_in_the_middle())
        assert tables.query("SELECT state, attempts, crashes FROM jobs") == [(0, 0, 0)]
        drain(kept, other)
        assert_in_step(tables, other)

    def test_a_worker_that_is_stopped_while_it_leases_gives_back_what_it_gets(
        self, kept: Kept, tables: Backend
    ) -> None:
        """The lease is stored already, but the worker does not know of it yet."""
        kept.create("a", "text")
        counting = Counting()

        async def stop_while_leasing() -> None:
            is_stored, is_cancelled = asyncio.Event(), asyncio.Event()

            class Slow:
                async def upkeep(self, work: Any, *, write: bool = True) -> Any:
                    outcome = await kept.store.upkeep(work, write=write)
                    if tables.query("SELECT 1 FROM jobs WHERE state = 1"):
                        is_stored.set()
                        await is_cancelled.wait()
                    return outcome

            slow: Any = Slow()
            draining = asyncio.create_task(IndexWorker(slow, counting).drain_once())
            await is_stored.wait()
            draining.cancel()
            await asyncio.sleep(0)
            is_cancelled.set()
            with pytest.raises(asyncio.CancelledError):
                await draining

        asyncio.run(stop_while_leasing())
        assert tables.query("SELECT state, attempts, crashes FROM jobs") == [(0, 0, 0)]
        drain(kept, counting)
        assert_in_step(tables, counting)

    def test_a_document_that_ends_the_process_each_time_is_set_aside(
        self, kept: Kept, tables: Backend
    ) -> None:
        """That its worker died is seen when it is taken up again, though nobody came back."""
        kept.create("a", "zebra")
        clock, embedder = Clock(now_us()), Counting()
        for _ in range(JOB_CRASHES_MAX + 1):
            kept.upkeep(lambda work: lease(work, clock(), clock() + 1))
            clock.pass_seconds(1)
        kept.create("b", "lion")
        drain(kept, embedder, clock=clock)
        assert embedder.texts == ["lion"]
        assert status(kept, "a") == "error"
        assert "ended" in (kept.known("a").vector_error or "")
        assert status(kept, "b") == "ready"

    def test_an_innocent_document_survives_kills_that_would_park_it_as_failures(
        self, kept: Kept, tables: Backend
    ) -> None:
        kept.create("a", "zebra")
        kept.create("b", "lion")
        clock, embedder = Clock(now_us()), Counting()
        for _ in range(2 * INDEX_TRIES_MAX):
            kept.upkeep(lambda work: lease(work, clock(), clock() + 1))
            clock.pass_seconds(1)
        drain(kept, embedder, clock=clock)
        assert (status(kept, "a"), status(kept, "b")) == ("ready", "ready")
        assert_in_step(tables, embedder)

    def test_a_lease_from_a_clock_that_was_ahead_holds_nothing_up(
        self, kept: Kept, tables: Backend
    ) -> None:
        kept.create("a", "zebra")
        clock, embedder = Clock(now_us()), Counting()
        ahead_us = clock() + 86_400 * 1_000_000
        kept.upkeep(lambda work: lease(work, ahead_us, ahead_us + 20_000_000))
        drain(kept, embedder, clock=clock)
        assert status(kept, "a") == "ready"
        assert_in_step(tables, embedder)


class TestRunning:
    def test_it_notices_what_another_process_writes(self, kept: Kept, tables: Backend) -> None:
        other = tables.open(kept.limits)

        async def write_elsewhere() -> None:
            running = asyncio.create_task(IndexWorker(kept.store, Counting()).run())
            await asyncio.to_thread(Kept(other, kept.limits).create, "a", "zebra")
            await until(lambda: status(kept, "a") == "ready")
            running.cancel()

        try:
            asyncio.run(write_elsewhere())
        finally:
            other.close()

    @pytest.mark.requirement("000/CC.10")
    def test_it_looks_for_what_is_missing_at_its_start_and_again_and_again(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder, clock = Counting(), Clock(now_us())
        kept.create("a", "zebra")
        tables.execute("DELETE FROM jobs")  # lost, by whatever mishap

        async def run() -> None:
            indexing = IndexWorker(kept.store, embedder)
            runner = JobRunner(kept.store, {REINDEX: reindex_kind(kept.store, indexing)})
            scheduler = Scheduler(kept.store, [reindex_schedule()], clock=clock)
            await scheduler.put()
            running = asyncio.create_task(indexing.run())
            await until(lambda: status(kept, "a") == "ready")
            for _ in range(2):
                tables.execute("DELETE FROM vectors")
                assert await scheduler.tick() == []
                clock.pass_seconds(15 * 60)
                assert await scheduler.tick() == ["reindex-missing"]
                await runner.drain()
                await until(lambda: tables.query("SELECT 1 FROM vectors"))
                await until(lambda: status(kept, "a") == "ready")
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        asyncio.run(run())
        assert_in_step(tables, embedder)
        jobs = kept.jobs(kind=REINDEX)
        assert [(job.state, job.result) for job in jobs] == 2 * [("done", {"queued": 1})]

    def test_a_sweep_that_fails_at_the_start_is_made_up_for(
        self, kept: Kept, tables: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        problems = [EmbeddingFailed("the store is away"), EmbeddingFailed("it still is")]

        async def stumble(store: Store, model_id: int) -> int:
            if problems:
                raise problems.pop()
            return await enqueue_missing(store, model_id)

        monkeypatch.setattr(worker, "enqueue_missing", stumble)
        monkeypatch.setattr(worker, "_IDLE_SECONDS", 0.01)
        kept.create("a", "zebra")
        tables.execute("DELETE FROM jobs")

        async def run() -> None:
            running = asyncio.create_task(IndexWorker(kept.store, Counting()).run())
            await until(lambda: status(kept, "a") == "ready")
            running.cancel()

        asyncio.run(run())

    @pytest.mark.parametrize("steps", range(6))
    def test_it_ends_when_it_is_told_to_though_it_is_woken_at_that_moment(
        self, kept: Kept, steps: int
    ) -> None:
        """However the two fall together: a server that cannot stop its worker never ends."""

        async def wake_and_stop() -> None:
            indexing = IndexWorker(kept.store, Counting())
            running = asyncio.create_task(indexing.run())
            await indexing.model_id()
            await asyncio.sleep(0.05)  # by now it waits
            indexing.wake()
            for _ in range(steps):
                await asyncio.sleep(0)
            running.cancel()
            done, _ = await asyncio.wait([running], timeout=PATIENCE_SECONDS)
            assert done

        asyncio.run(wake_and_stop())

    def test_nothing_that_goes_wrong_ends_it(
        self, kept: Kept, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        problems: list[Exception] = [EmbeddingFailed("the store is away"), RuntimeError("a bug")]
        lease = worker._lease

        def stumble(*arguments: Any) -> Any:
            if problems:
                raise problems.pop()
            return lease(*arguments)

        monkeypatch.setattr(worker, "_lease", stumble)
        monkeypatch.setattr(worker, "_IDLE_SECONDS", 0.01)
        kept.create("a", "zebra")

        async def run() -> None:
            running = asyncio.create_task(IndexWorker(kept.store, Counting()).run())
            await until(lambda: status(kept, "a") == "ready")
            assert not running.done()
            running.cancel()

        asyncio.run(run())
        assert "the index worker failed" in caplog.text
        assert "the store is away" in caplog.text
