"""Writers beside each other: nobody is lost, sees a collision, or waits without a reason."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

from tests.store.backends import Postgres
from tests.store.kept import ACTOR, EVERYTHING, HASHED, Kept
from zibaldone.errors import Conflict, StorageUnavailable
from zibaldone.index.worker import IndexWorker
from zibaldone.keep.create import NewDocument, create
from zibaldone.keep.update import Changes, update
from zibaldone.limits import Limits
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import Document
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store, Writer
from zibaldone.store.postgres import scopes
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.fold import fold
from zibaldone.store.postgres.writer import Writers
from zibaldone.store.upkeep import Upkeep

HANG_SECONDS_MAX = 20.0


def bump(writer: Writer, path: str) -> int:
    before = writer.documents.get(path)
    assert before is not None
    return writer.documents.replace(before, replace(before, revision=before.revision + 1)).revision


def test_two_that_lock_in_opposite_order_both_succeed(kept: Kept) -> None:
    for path in "ab":
        kept.create(path)
    met = threading.Barrier(2)
    tries: list[str] = []

    def both(first: str, second: str) -> None:
        def work(writer: Writer) -> None:
            tries.append(first)
            bump(writer, first)
            if len(tries) <= 2:
                met.wait(HANG_SECONDS_MAX)
            bump(writer, second)

        kept.write(work)

    threads = [threading.Thread(target=both, args=pair) for pair in ("ab", "ba")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tries) == 3, "one of them was the victim of a deadlock, and ran again"
    assert [kept.known(path).revision for path in "ab"] == [3, 3]


def test_writes_of_different_documents_do_not_wait_for_each_other(kept: Kept) -> None:
    """Each has written all it writes before any of them commits; usage and source are shared."""
    together = threading.Barrier(3)

    def work(writer: Writer, path: str) -> None:
        create(writer, NewDocument(path, "some words"), ACTOR, kept.limits)
        writer.documents.heads("", limit=1)  # sends what is deferred
        together.wait(HANG_SECONDS_MAX)

    async def all_of_them() -> None:
        await asyncio.gather(
            *(
                kept.store.write(EVERYTHING, lambda writer, path=path: work(writer, path))  # type: ignore[misc]
                for path in "abc"
            )
        )

    asyncio.run(all_of_them())
    assert kept.ids() == ["a", "b", "c"]
    (held,) = kept.upkeep(lambda upkeep: upkeep.usage.all())
    assert (held.documents, held.revisions) == (3, 3)


def test_a_new_id_is_created_once_by_several_stores(kept: Kept, tables: Postgres) -> None:
    stores = [kept.store, *(tables.open(Limits()) for _ in range(2))]
    new = NewDocument("new", "words")

    def put(writer: Writer) -> bool:
        return create(writer, new, ACTOR, kept.limits, upsert=True)[1]

    async def run() -> list[bool]:
        return await asyncio.gather(*(store.write(EVERYTHING, put) for store in stores * 10))

    try:
        are_new = asyncio.run(run())
    finally:
        for store in stores[1:]:
            store.close()
    assert sum(are_new) == 1
    assert kept.known("new").revision == 30


def test_fifty_changes_of_one_document_by_three_servers_all_land(
    kept: Kept, tables: Postgres
) -> None:
    kept.create("counter")
    stores: list[Store] = [kept.store, *(tables.open(Limits()) for _ in range(2))]

    async def run() -> list[int]:
        return await asyncio.gather(
            *(
                stores[number % 3].write(EVERYTHING, lambda writer: bump(writer, "counter"))
                for number in range(50)
            )
        )

    try:
        revisions = asyncio.run(run())
    finally:
        for store in stores[1:]:
            store.close()
    assert sorted(revisions) == list(range(2, 52))


def test_a_body_is_always_that_of_its_revision(kept: Kept, tables: Postgres) -> None:
    """Others replace it all the time, some of them by what an earlier transaction read."""
    kept.create("a", "revision 1")
    other = tables.open(Limits())
    torn: list[tuple[int, str]] = []

    def next_of(before: Document) -> Document:
        number = before.revision + 1
        return replace(before, revision=number, body=f"revision {number}")

    def locked(writer: Writer) -> None:
        before = writer.documents.get("a")
        assert before is not None
        if before.body != f"revision {before.revision}":
            torn.append((before.revision, before.body))
        writer.documents.replace(before, next_of(before))

    async def unlocked(store: Store) -> None:
        before = await store.read(EVERYTHING, lambda reader: reader.documents.get("a"))
        assert before is not None
        with suppress(Conflict):
            await store.write(
                EVERYTHING, lambda writer: writer.documents.replace(before, next_of(before))
            )

    async def run() -> None:
        for _ in range(15):
            await asyncio.gather(
                *(store.write(EVERYTHING, locked) for store in (kept.store, other) * 3),
                *(unlocked(store) for store in (kept.store, other) * 2),
            )

    try:
        asyncio.run(run())
    finally:
        other.close()
    assert torn == []
    document = kept.known("a")
    assert document.revision > 90
    assert document.body == f"revision {document.revision}"


def test_nobody_inserts_an_id_that_a_writer_found_missing(kept: Kept) -> None:
    looked, over = threading.Event(), threading.Event()
    order: list[str] = []

    def look(writer: Writer) -> None:
        assert writer.documents.get("a") is None
        looked.set()
        over.wait(HANG_SECONDS_MAX)
        assert writer.documents.get("a") is None
        order.append("looked twice")

    def insert() -> None:
        assert looked.wait(HANG_SECONDS_MAX)
        kept.create("a")
        order.append("inserted")

    threads = [threading.Thread(target=kept.write, args=(look,)), threading.Thread(target=insert)]
    for thread in threads:
        thread.start()
    assert looked.wait(HANG_SECONDS_MAX)
    threads[1].join(0.3)
    over.set()
    for thread in threads:
        thread.join()
    assert order == ["looked twice", "inserted"]


def test_a_chunking_is_not_changed_under_a_document_that_was_cut_by_it(kept: Kept) -> None:
    """Many writers share the source; whoever changes it waits for them."""
    met = threading.Barrier(2)
    cut_by_old, over = threading.Event(), threading.Event()
    versions: list[int] = []

    def write(path: str) -> None:
        def work(writer: Writer) -> None:
            create(writer, NewDocument(path, "words"), ACTOR, kept.limits)
            met.wait(HANG_SECONDS_MAX)  # two are in it at a time
            cut_by_old.set()
            over.wait(HANG_SECONDS_MAX)

        kept.write(work)

    def change() -> None:
        def work(upkeep: Upkeep) -> int:
            return upkeep.sources.set_chunking(1, Chunking.by_size(500))

        versions.append(kept.upkeep(work))

    writers = [threading.Thread(target=write, args=(path,)) for path in "ab"]
    changer = threading.Thread(target=change)
    for thread in writers:
        thread.start()
    assert cut_by_old.wait(HANG_SECONDS_MAX)
    changer.start()
    changer.join(0.3)
    assert versions == []
    over.set()
    for thread in (*writers, changer):
        thread.join()
    assert versions == [1]
    stale = kept.upkeep(lambda upkeep: upkeep.sources.stale(1, after=0, limit=9))
    assert len(stale) == 2


def test_no_vector_outlives_its_chunk(kept: Kept) -> None:
    """A worker stores a vector while a writer takes its chunk away."""
    document = kept.create("a", "words")
    (key,) = [chunk.chunk_key for chunk in kept.write(lambda w: w.chunks.stored(document))]
    model_id = kept.upkeep(lambda upkeep: upkeep.models.id("model", 2, 0))
    stored, over = threading.Event(), threading.Event()

    def work(upkeep: Upkeep) -> None:
        upkeep.vectors.put(model_id, [key], np.array([[1.0, 0.0]], np.float32))
        stored.set()
        over.wait(HANG_SECONDS_MAX)

    worker = threading.Thread(target=kept.upkeep, args=(work,))
    writer = threading.Thread(target=kept.update, args=("a",), kwargs={"body": "others"})
    worker.start()
    assert stored.wait(HANG_SECONDS_MAX)
    writer.start()
    writer.join(0.3)
    assert writer.is_alive(), "it waits for the worker"
    over.set()
    for thread in (worker, writer):
        thread.join()
    assert asyncio.run(kept.store.check(thorough=True)).problems == ()


@pytest.mark.parametrize("sent", ["its row", "its chunks"])
def test_a_worker_waits_for_no_writer(kept: Kept, sent: str) -> None:
    """Else a writer could hold up the vectors of everybody, or wait for the worker in a circle."""
    for path in "ab":
        kept.create(path, f"some words of {path}")
    locked, over = threading.Event(), threading.Event()

    def work(writer: Writer) -> None:
        if sent == "its chunks":
            update(writer, "a", Changes(body="other words"), ACTOR, kept.limits)
        else:
            bump(writer, "a")
        writer.documents.heads("", limit=1)  # sends what is deferred
        locked.set()
        over.wait(HANG_SECONDS_MAX)

    writer = threading.Thread(target=kept.write, args=(work,))
    writer.start()
    assert locked.wait(HANG_SECONDS_MAX)
    began_s = time.thread_time()
    try:
        asyncio.run(asyncio.wait_for(IndexWorker(kept.store, HASHED).drain(), HANG_SECONDS_MAX / 2))
        assert {path: kept.known(path).vector_status for path in "ab"} == {
            "a": "pending",
            "b": "ready",
        }
        assert time.thread_time() - began_s < 1, "it does not ask all the time"
    finally:
        over.set()
        writer.join()
    later = IndexWorker(kept.store, HASHED, clock=lambda: now_us() + 2_000_000)
    asyncio.run(later.drain())
    assert kept.known("a").vector_status == "ready"
    assert asyncio.run(kept.store.check(thorough=True)).problems == ()


class TestLostInCommit:
    """The connection breaks when COMMIT was sent, or just before."""

    @pytest.fixture
    def runs(self) -> list[str]:
        return []

    def lose(self, monkeypatch: pytest.MonkeyPatch, *, before: bool, runs: list[str]) -> None:
        finish = Transaction.finish

        def losing(self: Transaction, sql: str) -> str:
            if sql == "COMMIT" and len(runs) == 1:
                if not before:
                    finish(self, sql)
                self._raw.close()
                raise psycopg.OperationalError("the connection is lost")
            return finish(self, sql)

        monkeypatch.setattr(Transaction, "finish", losing)

    def put(self, kept: Kept, runs: list[str]) -> Any:
        def work(writer: Writer) -> int:
            runs.append("run")
            return bump(writer, "a")

        return kept.write(work)

    def test_what_was_committed_is_not_done_again(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch, runs: list[str]
    ) -> None:
        kept.create("a")
        self.lose(monkeypatch, before=False, runs=runs)
        assert self.put(kept, runs) == 2
        assert runs == ["run"]
        assert kept.known("a").revision == 2

    def test_what_was_not_is_done_again(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch, runs: list[str]
    ) -> None:
        kept.create("a")
        self.lose(monkeypatch, before=True, runs=runs)
        assert self.put(kept, runs) == 2
        assert runs == ["run", "run"]
        assert kept.known("a").revision == 2

    def test_where_nobody_can_say_the_caller_is_told_so(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch, runs: list[str]
    ) -> None:
        kept.create("a")
        self.lose(monkeypatch, before=False, runs=runs)
        monkeypatch.setattr("zibaldone.store.postgres.writer._OUTCOME", "SELECT NULL")
        monkeypatch.setattr("zibaldone.store.postgres.writer._OUTCOME_SECONDS_MAX", 0.1)
        with pytest.raises(StorageUnavailable, match="Read the document") as unknown:
            self.put(kept, runs)
        assert unknown.value.details == {"outcome": "unknown"}
        assert kept.known("a").revision == 2


def test_work_that_goes_on_after_a_failed_statement_is_not_acknowledged(kept: Kept) -> None:
    def careless(writer: Any) -> None:
        create(writer, NewDocument("a", "text"), ACTOR, kept.limits)
        with suppress(psycopg.Error):
            writer._transaction.execute("SELECT nonsense")

    with pytest.raises(Exception, match="refused a statement"):
        kept.write(careless)
    assert kept.ids() == []


def test_others_that_keep_colliding_are_given_up(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def collide(writer: Any) -> None:
        tries.append(1)
        raise psycopg.errors.SerializationFailure("again")

    with pytest.raises(StorageUnavailable, match="try again"):
        kept.write(collide)
    assert 5 < len(tries) < 50


class TestFolding:
    def rows(self, tables: Postgres) -> tuple[int, int]:
        ((changes,),) = tables.query("SELECT count(*) FROM usage_changes")
        ((folded,),) = tables.query("SELECT count(*) FROM usage")
        return changes, folded

    def test_the_counts_are_the_same_before_and_after(self, kept: Kept, tables: Postgres) -> None:
        for number in range(5):
            kept.create(f"d/{number}", "text")
        before = kept.upkeep(lambda upkeep: upkeep.usage.all())
        writers: Writers = kept.store._writers  # type: ignore[attr-defined]
        writers.run_here(fold, scopes.OF_UPKEEP)
        assert self.rows(tables) == (0, 1)
        assert kept.upkeep(lambda upkeep: upkeep.usage.all()) == before
        kept.delete("d/1")
        writers.run_here(fold, scopes.OF_UPKEEP)
        (held,) = kept.upkeep(lambda upkeep: upkeep.usage.all())
        assert (held.documents, held.revisions) == (4, 6)

    def test_it_happens_by_itself(
        self, kept: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("zibaldone.store.postgres.fold._PAUSE_SECONDS", 0.05)
        kept.create("a", "text")
        for _ in range(400):
            if self.rows(tables) == (0, 1):
                return
            threading.Event().wait(0.05)
        raise AssertionError("nothing was folded")
