"""The worker: embeds what is new, once, and says truly how each document stands."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from tests.drivers.drained import BAD, drain, enqueue_missing, paragraphs, passages, status, until
from tests.drivers.embedders import Clock, Counting, Failing
from tests.drivers.index_state import assert_in_step, stored_vectors
from tests.store.backends import Backend
from tests.store.kept import ACTOR, Kept
from zibaldone.index import sweep
from zibaldone.index.worker import Batch, IndexWorker
from zibaldone.keep.imports import import_documents
from zibaldone.limits import INDEX_BATCH_DOCUMENTS, INDEX_TRIES_MAX
from zibaldone.model.incoming import Incoming
from zibaldone.model.instant import now_us
from zibaldone.model.job import VECTORS, NewJob
from zibaldone.model.point import point_id


class TestOnceAndNoMore:
    @pytest.mark.requirement("C1")
    def test_a_small_upload_is_one_embedding(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        kept.create("a", "zebra", title="Animals")
        drain(kept, embedder)
        assert embedder.calls == [["Animals\nzebra"]]
        drain(kept, embedder)
        assert len(embedder.calls) == 1
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("C1")
    def test_several_uploads_share_one_call(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        for number in range(INDEX_BATCH_DOCUMENTS):
            kept.create(f"d/{number}", f"text {number}")
        done = drain(kept, embedder)
        assert embedder.calls == [[f"text {number}" for number in range(INDEX_BATCH_DOCUMENTS)]]
        assert done == Batch(INDEX_BATCH_DOCUMENTS, INDEX_BATCH_DOCUMENTS, 0)
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("C1")
    def test_many_changes_of_one_document_are_one_embedding(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder = Counting()
        kept.create("a", "0")
        for number in range(1, 30):
            kept.update("a", body=f"state {number}")
        drain(kept, embedder)
        assert embedder.texts == ["state 29"]
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("C1", "C2")
    def test_patching_a_paragraph_of_a_long_document_embeds_only_that(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder = Counting()
        body = paragraphs(100)
        kept.create("long", "\n\n".join(body))
        drain(kept, embedder)
        assert len(embedder.taken()) == passages(tables) >= 100
        before = stored_vectors(tables, embedder.identity)
        kept.patch("long", body[50], body[50].replace("among others", "alone"))
        drain(kept, embedder)
        embedded = embedder.taken()
        assert 1 <= len(embedded) <= 3
        assert all("alone" in text or "Paragraph" in text for text in embedded)
        after = stored_vectors(tables, embedder.identity)
        kept_keys = before.keys() & after.keys()
        assert len(kept_keys) >= len(before) - 3
        assert all(after[key] == before[key] for key in kept_keys)
        assert_in_step(tables, embedder)

    def test_a_change_of_metadata_embeds_nothing(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        kept.create("a", "zebra")
        drain(kept, embedder)
        embedder.taken()
        kept.update("a", metadata={"k": 1}, tags=("t",))
        assert status(kept, "a") == "pending"
        drain(kept, embedder)
        assert embedder.taken() == []
        assert_in_step(tables, embedder)

    def test_a_new_title_is_embedded_with_every_passage(self, kept: Kept, tables: Backend) -> None:
        """It is a part of what a passage says, so its vectors were of another text."""
        embedder = Counting()
        kept.create("a", "zebra", title="Old")
        drain(kept, embedder)
        kept.update("a", title="New")
        drain(kept, embedder)
        assert embedder.texts == ["Old\nzebra", "New\nzebra"]
        assert_in_step(tables, embedder)


class TestTheSameEveryTime:
    @pytest.mark.requirement("C2")
    def test_a_document_of_one_passage_has_one_point_and_keeps_it(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder = Counting()
        kept.create("a", "zebra")
        drain(kept, embedder)
        first = stored_vectors(tables, embedder.identity)
        assert len(first) == 1
        kept.update("a", body="zebra")
        drain(kept, embedder)
        assert stored_vectors(tables, embedder.identity) == first
        assert len(embedder.texts) == 1

    @pytest.mark.requirement("C2")
    def test_point_ids_are_those_of_the_seed(self) -> None:
        assert point_id("a/b", 0) == "6ecea0e7-8c81-5e7c-88de-0f03c906bd56"
        assert point_id("knowledge/one", 3) == "126f9484-6aa6-562a-a57e-290e9c09f8f4"
        assert len({point_id(path, n) for path in ("a", "b", "ü") for n in range(50)}) == 150

    @pytest.mark.requirement("K3")
    def test_two_syncs_of_one_document_leave_the_same(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        document = kept.create("a", "\n\n".join(paragraphs(5)))
        drain(kept, embedder)
        first = stored_vectors(tables, embedder.identity)
        subject = str(document.storage_key)
        for _ in range(2):
            kept.write(lambda writer: writer.queue.add([NewJob(VECTORS, subject=subject)]))
        assert drain(kept, embedder).documents == 1
        assert stored_vectors(tables, embedder.identity) == first
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("K2")
    def test_writing_the_status_asks_for_no_more_work(self, kept: Kept, tables: Backend) -> None:
        failing = Failing(BAD)
        tables.execute("CREATE TABLE ever_queued (job_id TEXT)")
        tables.note_changes("ever_queued", "new.job_id", on="INSERT ON jobs")
        kept.create("a", "zebra")
        kept.update("a", body="lion")
        kept.create("b", "okapi")
        kept.delete("b")
        writes = 4
        clock = Clock(now_us())
        for _ in range(INDEX_TRIES_MAX):
            drain(kept, failing, clock=clock)
            clock.pass_seconds(1_000)
        assert status(kept, "a") == "error"
        drain(kept, Counting())
        ever_queued = "SELECT count(*) FROM ever_queued"
        assert tables.query(ever_queued) == [(writes,)]
        failing.problem = None
        enqueue_missing(kept, failing)
        drain(kept, failing)
        assert status(kept, "a") == "ready"
        assert tables.query(ever_queued) == [(writes + 1,)]


class TestStatus:
    @pytest.mark.requirement("000/CC.04")
    def test_every_write_leaves_its_document_waiting(self, kept: Kept) -> None:
        embedder = Counting()
        kept.create("a", "one")
        assert status(kept, "a") == "pending"
        drain(kept, embedder)
        kept.update("a", body="two")
        assert status(kept, "a") == "pending"
        drain(kept, embedder)
        kept.patch("a", "two", "three")
        assert status(kept, "a") == "pending"

    @pytest.mark.requirement("000/CC.05")
    def test_it_is_ready_once_its_vectors_are_stored(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        kept.create("a", "one")
        drain(kept, embedder)
        assert status(kept, "a") == "ready"
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("000/CC.06")
    def test_a_failure_is_tried_again_ever_less_soon_and_then_said(
        self, kept: Kept, tables: Backend
    ) -> None:
        failing, clock = Failing(BAD), Clock(now_us())
        kept.create("a", "zebra")
        waits = []
        for number in range(1, INDEX_TRIES_MAX):
            assert drain(kept, failing, clock=clock) == Batch(1, 0, 1)
            assert len(failing.calls) == number
            assert status(kept, "a") == "pending"
            ((not_before_us, error),) = tables.query("SELECT not_before_us, error FROM jobs")
            assert error == BAD.message
            waits.append(not_before_us - clock())
            clock.pass_seconds(waits[-1] / 1e6 - 0.001)
            assert drain(kept, failing, clock=clock).documents == 0
            clock.pass_seconds(0.001)
        assert waits == [2_000_000, 4_000_000, 8_000_000, 16_000_000]
        drain(kept, failing, clock=clock)
        document = kept.known("a")
        assert (document.vector_status, document.vector_error) == ("error", BAD.message)
        clock.pass_seconds(10_000)
        assert drain(kept, failing, clock=clock).documents == 0
        assert kept.found("zebra") == {"a"}

    @pytest.mark.requirement("000/CC.06")
    def test_what_failed_is_tried_again_on_demand(self, kept: Kept, tables: Backend) -> None:
        failing, clock = Failing(BAD), Clock(now_us())
        kept.create("a", "zebra")
        for _ in range(INDEX_TRIES_MAX):
            drain(kept, failing, clock=clock)
            clock.pass_seconds(100)
        for _ in range(3):  # asking again and again leaves no more than one behind
            assert enqueue_missing(kept, failing) == 1
            assert status(kept, "a") == "pending"
            assert kept.known("a").vector_error is None
            assert enqueue_missing(kept, failing) == 0
            for _ in range(INDEX_TRIES_MAX):
                drain(kept, failing, clock=clock)
                clock.pass_seconds(100)
            assert status(kept, "a") == "error"
            assert tables.query("SELECT count(*) FROM jobs") == [(1,)]
        failing.problem = None
        assert enqueue_missing(kept, failing) == 1
        drain(kept, failing)
        assert_in_step(tables, failing)

    def test_a_new_revision_is_tried_at_once_whatever_the_last_one_did(
        self, kept: Kept, tables: Backend
    ) -> None:
        failing = Failing(BAD, only="poison")
        clock = Clock(now_us())
        kept.create("a", "poison")
        drain(kept, failing, clock=clock)
        kept.update("a", body="cure")
        drain(kept, failing, clock=clock)
        assert_in_step(tables, failing)
        kept.update("a", body="poison")
        for _ in range(INDEX_TRIES_MAX):
            drain(kept, failing, clock=clock)
            clock.pass_seconds(100)
        assert status(kept, "a") == "error"
        kept.update("a", body="cure again")
        drain(kept, failing, clock=clock)
        assert_in_step(tables, failing)

    def test_an_error_in_the_middle_of_a_new_revision_is_not_its_error(self, kept: Kept) -> None:
        """The old revision failed for the last time; the new one has its own tries."""
        failing, clock = Failing(BAD, only="poison"), Clock(now_us())
        kept.create("a", "poison")
        for _ in range(INDEX_TRIES_MAX - 1):
            drain(kept, failing, clock=clock)
            clock.pass_seconds(100)

        class Meanwhile(Failing):
            def embed(self, texts: Any) -> Any:
                kept.update("a", body="cure")
                return super().embed(texts)

        asyncio.run(IndexWorker(kept.store, Meanwhile(BAD, "poison"), clock=clock).drain_once())
        assert status(kept, "a") == "pending"
        drain(kept, failing, clock=clock)
        assert status(kept, "a") == "ready"

    @pytest.mark.requirement("C7", "000/CC.07", "X-15")
    def test_skip_paths_and_empty_bodies_are_skipped_at_once(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder = Counting()
        skipped = {
            "operations/tasks/comments/1": "zebra",
            "registries/machines/2": "zebra",
            "empty": "",
            "blank": " \n\t ",
        }
        for path, body in skipped.items():
            kept.create(path, body)
            assert status(kept, path) == "skipped", path
        found = asyncio.run(sweep.lag(kept.store))
        assert (found.pending, found.alert) == (0, False)
        drain(kept, embedder)
        assert embedder.calls == []
        assert all(status(kept, path) == "skipped" for path in skipped)
        assert_in_step(tables, embedder)
        assert kept.found("zebra") == {"operations/tasks/comments/1", "registries/machines/2"}

    @pytest.mark.requirement("C7", "X-15")
    def test_a_skip_path_is_one_however_it_is_written(self, kept: Kept) -> None:
        made = kept.create("model", "zebra")
        incoming = Incoming(replace(made, document_id="/registries//machines/2", storage_key=None))
        kept.write(
            lambda writer: import_documents(writer, [incoming], ACTOR, kept.limits, "update")
        )
        assert status(kept, "registries/machines/2") == "skipped"

    @pytest.mark.requirement("X-16")
    def test_looking_for_what_is_missing_leaves_skipped_ones_alone(
        self, kept: Kept, tables: Backend
    ) -> None:
        embedder = Counting()
        kept.create("registries/machines/2", "zebra")
        kept.create("empty", "")
        drain(kept, embedder)
        assert enqueue_missing(kept, embedder) == 0
        assert tables.query("SELECT * FROM jobs") == []
        assert status(kept, "registries/machines/2") == status(kept, "empty") == "skipped"

    def test_a_body_that_becomes_empty_loses_its_vectors(self, kept: Kept, tables: Backend) -> None:
        embedder = Counting()
        kept.create("a", "zebra")
        drain(kept, embedder)
        kept.update("a", body="")
        assert status(kept, "a") == "skipped"
        assert stored_vectors(tables, embedder.identity) == {}
        drain(kept, embedder)
        kept.update("a", body="back")
        drain(kept, embedder)
        assert_in_step(tables, embedder)

    @pytest.mark.requirement("C4")
    def test_a_status_goes_from_pending_to_ready_and_nowhere_else(
        self, kept: Kept, tables: Backend
    ) -> None:
        """Every change of it, by whomever, not only those that somebody happens to see."""
        tables.execute(
            "CREATE TABLE seen (document_id TEXT, before TEXT, after TEXT, revision INT)"
        )
        tables.note_changes(
            "seen",
            "new.document_id, old.vector_status, new.vector_status, new.revision",
            on="UPDATE OF vector_status ON documents",
            when="old.revision = new.revision",
        )

        async def uploads_and_sweeps() -> None:
            indexing = IndexWorker(kept.store, Counting())
            running = asyncio.create_task(indexing.run())
            model_id = await indexing.model_id()
            for number in range(10):
                await asyncio.to_thread(kept.create, f"d/{number}", f"text {number}")
                indexing.wake()
                await sweep.enqueue_missing(kept.store, model_id)
                if number % 3 == 0:
                    await asyncio.to_thread(kept.update, f"d/{number}", metadata={"n": number})
                    indexing.wake()
            await until(lambda: not tables.query("SELECT 1 FROM jobs"))
            await sweep.enqueue_missing(kept.store, model_id)
            await indexing.drain()
            running.cancel()

        asyncio.run(uploads_and_sweeps())
        changes = tables.query("SELECT before, after, count(*) FROM seen GROUP BY 1, 2")
        assert {(before, after) for before, after, _ in changes} == {("pending", "ready")}
        once = tables.query(
            "SELECT max(n) FROM (SELECT count(*) n FROM seen GROUP BY document_id, revision)"
        )
        assert once == [(1,)]
        assert all(status(kept, f"d/{number}") == "ready" for number in range(10))

    @pytest.mark.requirement("C3")
    def test_every_change_that_is_dealt_with_is_logged_without_its_content(
        self, kept: Kept, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "zibaldone.index")
        failing = Failing(BAD, only="poison")
        kept.create("good", "secret words", title="secret title")
        kept.create("bad", "poison and secret words")
        kept.create("gone", "secret words")
        kept.delete("gone")
        kept.create("registries/x", "secret words")
        drain(kept, failing)
        lines = {record.getMessage().split(",")[0]: record for record in caplog.records}
        assert lines.keys() == {
            "good: ready", "bad: retry", "gone: removed", "registries/x: skipped",
            "indexed 3 documents: 1 removed",
        }  # fmt: skip
        assert BAD.message in lines["bad: retry"].getMessage()
        assert lines["bad: retry"].levelno == logging.WARNING
        assert "secret" not in caplog.text
