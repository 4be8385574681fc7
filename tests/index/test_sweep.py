"""Sweeps: what is missing is found, what is left over is removed, and the lag is told truly."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from tests.drivers.drained import drain, status
from tests.drivers.embedders import Counting, Failing
from tests.drivers.index_state import assert_in_step, right_vectors, stored_vectors
from tests.store.backends import Backend
from tests.store.kept import ACTOR, EVERYTHING, HASHED, Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import EmbedderUnavailable
from zibaldone.index import sweep
from zibaldone.index.reindex import fill
from zibaldone.index.worker import IndexWorker
from zibaldone.keep.imports import import_documents
from zibaldone.limits import INDEX_LAG_ALERT_SECONDS, INDEX_SWEEP_DOCUMENTS, Limits
from zibaldone.model.document import Document
from zibaldone.model.incoming import Incoming
from zibaldone.model.instant import now_us

T = TypeVar("T")
SECOND_US = 1_000_000


def model_id(kept: Kept) -> int:
    return asyncio.run(IndexWorker(kept.store, HASHED).model_id())


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def audit(kept: Kept, *, heal: bool = False, shown_to: Tenant = EVERYTHING) -> sweep.SyncAudit:
    model = model_id(kept)
    return run(sweep.audit_sync(kept.store, model, heal=heal, shown_to=shown_to))


@pytest.fixture
def indexed(kept: Kept) -> Kept:
    for number in range(6):
        kept.create(f"d/{number}", f"text {number}")
    kept.create("registries/x", "text")
    kept.create("gone", "text")
    kept.delete("gone")
    drain(kept, HASHED)
    return kept


class TestAudit:
    def test_a_store_in_step_is_consistent(self, indexed: Kept) -> None:
        assert audit(indexed) == {
            "documents": 7, "ready": 6, "pending": 0, "skipped": 1, "failed": 0,
            "chunks": 7, "vectors": 6, "missing": 0, "queued": 0, "parked": 0,
            "orphans": 0, "ghosts": 0, "ghost_documents": [], "truncated": False,
            "consistent": True, "healed": None,
        }  # fmt: skip

    def test_ghosts_are_found_named_and_healed(self, indexed: Kept, tables: Backend) -> None:
        tables.execute("DELETE FROM vectors WHERE chunk_key IN (1, 3)")
        found = audit(indexed)
        assert (found["ghosts"], found["consistent"], found["missing"]) == (2, False, 2)
        assert found["ghost_documents"] == ["d/0", "d/2"]
        assert status(indexed, "d/0") == "ready"  # looking changes nothing
        healed = audit(indexed, heal=True)["healed"]
        assert healed == {"vectors_removed": 0, "documents_queued": 2}
        embedder = Counting()
        drain(indexed, embedder)
        assert sorted(embedder.texts) == ["text 0", "text 2"]
        assert audit(indexed)["consistent"]
        assert_in_step(tables, HASHED)

    def test_orphans_are_found_and_healed(self, indexed: Kept, tables: Backend) -> None:
        before = indexed.nearest("text 0")
        tables.add_orphans(1000)
        found = audit(indexed)
        assert (found["orphans"], found["consistent"]) == (1, False)
        assert audit(indexed, heal=True)["healed"] == {
            "vectors_removed": 1, "documents_queued": 0,
        }  # fmt: skip
        assert audit(indexed)["consistent"]
        assert_in_step(tables, HASHED)
        assert indexed.nearest("text 0") == before

    def test_it_names_no_document_that_the_caller_cannot_see(
        self, indexed: Kept, tables: Backend
    ) -> None:
        indexed.create("theirs", "text", Tenant("elsewhere"))
        drain(indexed, HASHED)
        tables.execute("DELETE FROM vectors")
        assert audit(indexed)["ghosts"] == 7
        assert "theirs" not in audit(indexed)["ghost_documents"]
        assert audit(indexed, shown_to=Tenant("elsewhere"))["ghost_documents"] == ["theirs"]
        assert audit(indexed, shown_to=Tenant(prefix="d/3"))["ghost_documents"] == ["d/3"]

    def test_much_is_counted_up_to_a_bound_and_said_to_be_cut(
        self, kept: Kept, tables: Backend
    ) -> None:
        for number in range(130):
            kept.create(f"d/{number:03}", f"text {number}")
        drain(kept, HASHED)
        tables.execute("DELETE FROM vectors WHERE chunk_key <= 120")
        found = audit(kept, heal=True)
        assert (found["ghosts"], found["truncated"]) == (100, True)
        assert found["healed"] is not None
        assert found["healed"]["documents_queued"] == 120


class TestCleanup:
    def test_a_dry_run_removes_nothing(self, indexed: Kept, tables: Backend) -> None:
        tables.add_orphans(1000)
        found = run(sweep.cleanup_orphans(indexed.store, dry_run=True))
        assert found == {"dry_run": True, "found": 1, "removed": 0, "truncated": False}
        assert len(stored_vectors(tables, HASHED.identity)) == 7
        found = run(sweep.cleanup_orphans(indexed.store, dry_run=False))
        assert found == {"dry_run": False, "found": 1, "removed": 1, "truncated": False}
        assert_in_step(tables, HASHED)

    def test_orphans_of_every_model_go(self, indexed: Kept, tables: Backend) -> None:
        indexed.upkeep(lambda work: work.models.id("other", 64, 0))
        tables.add_orphans(1000, 900)
        dry = run(sweep.cleanup_orphans(indexed.store, dry_run=True))
        assert (dry["found"], dry["truncated"]) == (500, True)
        done = run(sweep.cleanup_orphans(indexed.store, dry_run=False))
        assert done["removed"] == 1_800
        assert_in_step(tables, HASHED)


def waiting_since(kept: Kept, path: str, seconds: float) -> None:
    """A document that was written so long ago and has not been dealt with since."""
    at_us = now_us() - int(seconds * SECOND_US)
    kept.commit(None, _document(path, at_us))


def _document(path: str, at_us: int) -> Document:
    return Document(
        document_id=path, body="text", title="", tags=(), parent_id=None, mime="text/markdown",
        metadata={}, revision=1, created_at_us=at_us, updated_at_us=at_us, updated_by="t",
        operation="create",
    )  # fmt: skip


class TestLag:
    @pytest.mark.requirement("000/CC.08", "X-13")
    def test_the_oldest_that_waits_counts_and_the_youngest_is_told_too(self, kept: Kept) -> None:
        waiting_since(kept, "stuck", 25.0)
        waiting_since(kept, "young", 5.0)
        found = run(sweep.lag(kept.store))
        assert found.pending == 2
        assert 25.0 <= found.oldest_seconds < INDEX_LAG_ALERT_SECONDS
        assert 5.0 <= found.youngest_seconds < 24.0
        assert 19.9 < found.oldest_seconds - found.youngest_seconds < 24.0
        assert not found.alert

    @pytest.mark.requirement("000/CC.09", "X-13")
    def test_the_alert_is_on_while_the_oldest_waits_too_long(self, kept: Kept) -> None:
        waiting_since(kept, "stuck", INDEX_LAG_ALERT_SECONDS + 5)
        kept.create("young", "text")  # the youngest would hide it
        found = run(sweep.lag(kept.store))
        assert found.alert
        assert found.youngest_seconds < INDEX_LAG_ALERT_SECONDS
        drain(kept, HASHED)
        assert run(sweep.lag(kept.store)) == sweep.Lag(0, 0, 0.0, 0.0)
        assert not run(sweep.lag(kept.store)).alert

    @pytest.mark.requirement("000/CC.09")
    def test_one_that_fails_again_and_again_keeps_the_alert_on(self, kept: Kept) -> None:
        waiting_since(kept, "bad", INDEX_LAG_ALERT_SECONDS + 5)
        drain(kept, Failing(ValueError()))
        assert run(sweep.lag(kept.store)).alert

    @pytest.mark.requirement("X-15")
    def test_skipped_and_deleted_ones_do_not_wait(self, kept: Kept) -> None:
        for path in ("registries/x", "operations/tasks/comments/1"):
            kept.create(path, "text")
        kept.create("empty", "")
        kept.create("a", "text")
        kept.delete("a")
        assert run(sweep.lag(kept.store)) == sweep.Lag(0, 0, 0.0, 0.0)

    def test_an_old_document_that_is_imported_has_waited_since_it_came(self, kept: Kept) -> None:
        """What it says of its own age is of the place it was written at."""
        year_ago_us = now_us() - 365 * 86_400 * SECOND_US
        incoming = Incoming(replace(_document("old", year_ago_us), operation="import"))
        kept.write(
            lambda writer: import_documents(writer, [incoming], ACTOR, Limits(), "keep_edited")
        )
        found = run(sweep.lag(kept.store))
        assert found.pending == 1
        assert found.oldest_seconds < INDEX_LAG_ALERT_SECONDS

    def test_old_documents_that_are_queued_again_have_waited_since_then(self, kept: Kept) -> None:
        waiting_since(kept, "old", 1_000_000.0)
        drain(kept, HASHED)
        other = Counting(dimensions=32)
        indexing = IndexWorker(kept.store, other)

        async def change_model() -> sweep.Lag:
            await sweep.enqueue_missing(kept.store, await indexing.model_id())
            return await sweep.lag(kept.store)

        found = run(change_model())
        assert found.pending == 1
        assert not found.alert

    def test_one_that_is_in_no_queue_counts_from_its_last_change(
        self, kept: Kept, tables: Backend
    ) -> None:
        waiting_since(kept, "lost", 100.0)
        tables.execute("DELETE FROM jobs")
        assert run(sweep.lag(kept.store)).alert


class TestModels:
    def test_a_new_model_is_filled_beside_the_old_one(self, indexed: Kept, tables: Backend) -> None:
        other = Counting(dimensions=32)
        other_id = run(IndexWorker(indexed.store, other).model_id())
        reports: list[int] = []
        before = tables.query("SELECT * FROM documents")
        filled = run(fill(indexed.store, other, other_id, reports.append))
        assert (filled.chunks, sum(reports), filled.failed) == (6, 6, {})
        assert stored_vectors(tables, other.identity) == right_vectors(tables, Counting(32))
        assert tables.query("SELECT * FROM documents") == before  # no status of the other model's
        assert_in_step(tables, HASHED)
        assert run(fill(indexed.store, other, other_id, reports.append)).chunks == 0

    def test_filling_goes_on_where_it_was_ended(self, indexed: Kept, tables: Backend) -> None:
        class Ending(Counting):
            def embed(self, texts: Any) -> Any:
                if len(self.calls) == 2:
                    raise KeyboardInterrupt
                return super().embed(texts)

        for number in range(60):
            indexed.create(f"more/{number}", f"more text {number}")
        ended = Ending(32)
        other_id = run(IndexWorker(indexed.store, ended).model_id())
        with pytest.raises(KeyboardInterrupt):
            run(fill(indexed.store, ended, other_id, lambda done: None))
        done = len(stored_vectors(tables, ended.identity))
        assert 0 < done < 66
        again = Counting(32)
        assert run(fill(indexed.store, again, other_id, lambda done: None)).chunks == 66 - done
        assert set(ended.texts).isdisjoint(again.texts)

    def test_a_document_that_cannot_be_embedded_does_not_stop_it(self, indexed: Kept) -> None:
        failing = Failing(ValueError("no"), only="text 3")
        other_id = run(IndexWorker(indexed.store, failing).model_id())
        indexed.upkeep(lambda work: work.vectors.drop(other_id, 100))
        filled = run(fill(indexed.store, failing, other_id, lambda done: None))
        assert filled.chunks == 5
        assert filled.failed.keys() == {"d/3"}

    def test_it_ends_when_the_model_cannot_be_had(self, indexed: Kept, tables: Backend) -> None:
        away = Failing(EmbedderUnavailable("nobody is there"), only="text 4")
        other_id = run(IndexWorker(indexed.store, away).model_id())
        indexed.upkeep(lambda work: work.vectors.drop(other_id, 100))
        with pytest.raises(EmbedderUnavailable, match="the same command goes on"):
            run(fill(indexed.store, away, other_id, lambda done: None))
        assert len(away.calls) == 1
        away.problem = None
        assert run(fill(indexed.store, away, other_id, lambda done: None)).chunks == 6

    def test_dropping_the_others_leaves_the_one(self, indexed: Kept, tables: Backend) -> None:
        other = Counting(dimensions=32)
        other_id = run(IndexWorker(indexed.store, other).model_id())
        run(fill(indexed.store, other, other_id, lambda done: None))
        assert run(sweep.drop_other_models(indexed.store, other_id)) == 6
        assert stored_vectors(tables, HASHED.identity) == {}
        assert len(stored_vectors(tables, other.identity)) == 6
        assert run(sweep.drop_other_models(indexed.store, other_id)) == 0
        assert indexed.nearest("text 1") == []

    def test_a_changed_model_makes_everything_wait_again_and_loses_nothing(
        self, indexed: Kept, tables: Backend
    ) -> None:
        other = Counting(dimensions=32)
        indexing = IndexWorker(indexed.store, other)

        async def start() -> int:
            return await sweep.enqueue_missing(indexed.store, await indexing.model_id())

        assert run(start()) == 6
        assert status(indexed, "d/0") == "pending"
        assert len(indexed.nearest("text 1")) == 6  # the old vectors are still there
        drain(indexed, other)
        assert_in_step(tables, other)


@pytest.mark.requirement("000/R4", "000/AP.05")
def test_sweeps_of_many_documents_go_page_by_page(
    kept: Kept, tables: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty thousand documents; no step brings more than a page, nor much memory."""
    count = 30_000
    tables.add_documents(count)
    largest: list[int] = []
    upkeep = kept.store.upkeep

    async def watched(work: Any, *, write: bool = True) -> Any:
        result = await upkeep(work, write=write)
        if isinstance(result, list):
            largest.append(len(result))
        return result

    monkeypatch.setattr(kept.store, "upkeep", watched)
    model = model_id(kept)
    tracemalloc.start()
    try:
        assert run(sweep.enqueue_missing(kept.store, model)) == count
        assert audit(kept, heal=True)["documents"] == count
        run(sweep.cleanup_orphans(kept.store, dry_run=False))
        assert run(kept.store.check(thorough=False)).ok
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max(largest) <= INDEX_SWEEP_DOCUMENTS
    assert peak_bytes < 16 * 1024 * 1024
    assert tables.query("SELECT count(*) FROM jobs") == [(count,)]
