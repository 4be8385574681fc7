"""The writer thread: who shares a commit, and who fails with whom."""

from __future__ import annotations

import contextvars
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import apsw
import pytest

from zibaldone.access.share import SHARE
from zibaldone.access.turns import LONG_SECONDS
from zibaldone.errors import Internal, StorageUnavailable
from zibaldone.model.chunk import ChunkChanges, ChunkTerms, JoinedRuns, NewChunk
from zibaldone.store.sqlite import write_queue
from zibaldone.store.sqlite.chunks import ChunkTable
from zibaldone.store.sqlite.schema import prepare
from zibaldone.store.sqlite.writer import WriterThread

Work = Callable[[apsw.Connection], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare(tmp_path / "x.db", 5)
    return tmp_path / "x.db"


@pytest.fixture
def writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriterThread]:
    # Groups here end by what is queued, never by how slow the machine is.
    monkeypatch.setattr(write_queue, "_GROUP_SECONDS_MAX", 60)
    thread = WriterThread(path, 0.3)
    yield thread
    thread.close()


def insert(name: str) -> Work:
    def work(raw: apsw.Connection) -> str:
        raw.execute("INSERT INTO models VALUES (NULL, ?, 1, 0)", (name,))
        return name

    return work


def insert_then(name: str, then: Callable[[apsw.Connection], object]) -> Work:
    def work(raw: apsw.Connection) -> None:
        insert(name)(raw)
        then(raw)

    return work


def names(path: Path) -> list[str]:
    connection = apsw.Connection(str(path))
    try:
        return [name for (name,) in connection.execute("SELECT identity FROM models ORDER BY 1")]
    finally:
        connection.close()


def failing(error: BaseException) -> Callable[[apsw.Connection], NoReturn]:
    def work(raw: apsw.Connection) -> NoReturn:
        raise error

    return work


def submitted_together(writer: WriterThread, *works: Work) -> list[Future[Any]]:
    """They all wait behind a first one, and so share its commit."""
    entered, queued = threading.Event(), threading.Event()

    def hold(raw: apsw.Connection) -> None:
        entered.set()
        assert queued.wait(20)

    futures = [writer.submit(hold)]
    assert entered.wait(20)
    futures += [writer.submit(work) for work in works]
    queued.set()
    return futures[1:]


def write_as(writer: WriterThread, share: str, work: Work) -> Future[Any]:
    return contextvars.Context().run(lambda: (SHARE.set(share), writer.submit(work))[1])


def compute(seconds: float, _: object = None) -> None:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


def count_commits(writer: WriterThread) -> list[int]:
    """A list that grows by one with each commit from now on."""
    commits: list[int] = []

    def count() -> bool:
        commits.append(1)
        return False

    writer._connection.raw.set_commit_hook(count)
    return commits


def test_waiting_writes_share_one_commit(writer: WriterThread, path: Path) -> None:
    commits = count_commits(writer)
    futures = submitted_together(writer, *(insert(f"m{number}") for number in range(20)))
    assert [future.result(20) for future in futures] == [f"m{number}" for number in range(20)]
    assert len(commits) == 1
    assert len(names(path)) == 20


def test_a_group_that_has_worked_long_enough_commits(
    writer: WriterThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = count_commits(writer)
    monkeypatch.setattr(write_queue, "_GROUP_SECONDS_MAX", -1)
    for future in submitted_together(writer, *(insert(f"m{number}") for number in range(5))):
        future.result(20)
    assert len(commits) == 6  # the one they waited behind, and each of them


def test_a_write_is_acknowledged_only_after_the_commit(writer: WriterThread, path: Path) -> None:
    seen: list[list[str]] = []
    done: list[bool] = []
    entered, go_on = threading.Event(), threading.Event()

    def before_commit() -> bool:
        entered.set()
        assert go_on.wait(20)
        done.append(future.done())
        return False

    writer._connection.raw.set_commit_hook(before_commit)
    future = writer.submit(insert("a"))
    future.add_done_callback(lambda _: seen.append(names(path)))
    assert entered.wait(20)
    assert names(path) == []
    go_on.set()
    writer.close()
    assert (done, seen) == ([False], [["a"]])


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), KeyboardInterrupt()])
def test_a_failing_write_undoes_only_itself(
    writer: WriterThread, path: Path, error: BaseException
) -> None:
    first, bad, last = submitted_together(
        writer, insert("a"), insert_then("b", failing(error)), insert("c")
    )
    assert (first.result(20), last.result(20)) == ("a", "c")
    assert bad.exception(20) is error
    assert names(path) == ["a", "c"]


def test_a_refused_statement_undoes_only_its_write(writer: WriterThread, path: Path) -> None:
    first, bad, last = submitted_together(
        writer, insert("a"), insert_then("b", insert("a")), insert("c")
    )
    assert isinstance(bad.exception(20), Internal)
    assert (first.result(20), last.result(20)) == ("a", "c")
    assert names(path) == ["a", "c"]


@pytest.mark.parametrize("error", [apsw.IOError("disk I/O error"), KeyError("x"), SystemExit(1)])
def test_a_failure_that_costs_the_transaction_fails_all_that_shared_it(
    writer: WriterThread, path: Path, error: BaseException
) -> None:
    """SQLite gives the whole transaction up after some I/O errors; here a write does."""

    def lose(raw: apsw.Connection) -> NoReturn:
        raw.execute("ROLLBACK")
        raise error

    first, bad, behind = submitted_together(
        writer, insert("a"), insert_then("b", lose), insert("c")
    )
    assert isinstance(first.exception(20), StorageUnavailable)
    assert isinstance(bad.exception(20), StorageUnavailable)
    # It had not begun when the transaction was lost, so it gets one of its own.
    assert behind.result(20) == "c"
    assert names(path) == ["c"]


def orphan(raw: apsw.Connection) -> None:
    """Break a foreign key in a way that only the commit finds out."""
    raw.execute("PRAGMA defer_foreign_keys = ON")
    raw.execute("INSERT INTO vectors VALUES (999, 1, x'00')")


def test_a_commit_that_fails_fails_all_that_shared_it(writer: WriterThread, path: Path) -> None:
    futures = submitted_together(writer, insert("a"), orphan, insert("c"))
    errors = [future.exception(20) for future in futures]
    assert all(isinstance(error, Internal) for error in errors)
    assert len({id(error) for error in errors}) == 3  # each raises its own, with its own traceback
    assert names(path) == []
    assert writer.submit(insert("d")).result(20) == "d"


def test_a_failed_rollback_does_not_end_the_thread(
    writer: WriterThread, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn:
        """The connection, refusing its first ROLLBACK as it would with the disk gone."""

        refused = False

        def __init__(self, raw: apsw.Connection) -> None:
            self._raw = raw

        def __getattr__(self, name: str) -> Any:
            return getattr(self._raw, name)

        def execute(self, sql: str, *more: Any) -> Any:
            if sql == "ROLLBACK" and not self.refused:
                self.refused = True
                raise apsw.IOError("disk I/O error")
            return self._raw.execute(sql, *more)

    stubborn = Stubborn(writer._connection.raw)
    monkeypatch.setattr(writer._connection, "raw", stubborn)
    assert isinstance(writer.submit(orphan).exception(20), Internal)
    assert stubborn.refused
    assert writer.submit(insert("a")).result(20) == "a"
    assert names(path) == ["a"]


def test_those_behind_a_lock_that_is_not_to_be_had_fail_together(
    writer: WriterThread, path: Path
) -> None:
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    futures = [writer.submit(insert(f"m{number}")) for number in range(50)]
    errors = [future.exception(20) for future in futures]
    assert all(isinstance(error, StorageUnavailable) for error in errors)
    other.execute("ROLLBACK")
    other.close()
    assert writer.submit(insert("a")).result(20) == "a"
    assert names(path) == ["a"]


def test_a_waiting_write_can_be_cancelled_and_then_never_happens(
    writer: WriterThread, path: Path
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(raw: apsw.Connection) -> None:
        entered.set()
        assert go_on.wait(20)

    holding = writer.submit(hold)
    assert entered.wait(20)
    cancelled, kept = writer.submit(insert("cancelled")), writer.submit(insert("kept"))
    assert cancelled.cancel()
    assert not holding.cancel()  # it has begun
    go_on.set()
    assert kept.result(20) == "kept"
    holding.result(20)
    assert names(path) == ["kept"]


def test_cancelled_writes_behind_a_lock_are_left_alone(writer: WriterThread, path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    futures = [writer.submit(insert(f"m{number}")) for number in range(3)]
    assert futures[1].cancel()
    assert isinstance(futures[0].exception(20), StorageUnavailable)
    assert isinstance(futures[2].exception(20), StorageUnavailable)
    assert futures[1].cancelled()
    other.close()


def test_a_long_write_of_somebody_who_is_forgotten_meanwhile_does_not_end_the_thread(
    writer: WriterThread,
) -> None:
    """A thousand others have written, and one more comes while the long write is committed."""
    for number in range(1_000):
        waiting = write_as(writer, f"share{number}", lambda _: None)
    waiting.result(10)
    long = write_as(writer, "share0", partial(compute, LONG_SECONDS))
    long.add_done_callback(lambda _: write_as(writer, "one more", lambda _: None))
    long.result(10)
    assert write_as(writer, "share1", lambda _: "stored").result(10) == "stored"


def test_a_long_write_of_one_is_not_followed_by_that_of_another_while_a_short_one_waits(
    writer: WriterThread,
) -> None:
    order: list[str] = []
    entered, queued = threading.Event(), threading.Event()

    def note(share: str, _: apsw.Connection) -> None:
        order.append(share)

    def compute_long(_: apsw.Connection) -> None:
        entered.set()
        assert queued.wait(20)
        compute(20 * LONG_SECONDS)  # by then the other has rested from its own

    # Who writes little has had the writer for longer, without computing.
    write_as(writer, "short", lambda _: time.sleep(0.2)).result(10)
    write_as(writer, "long", partial(compute, LONG_SECONDS)).result(10)
    write_as(writer, "longer", compute_long)
    assert entered.wait(20)
    waiting = [write_as(writer, share, partial(note, share)) for share in ("long", "short")]
    queued.set()
    wait(waiting, 20)
    assert order == ["short", "long"]


def test_closing_finishes_what_was_submitted_and_refuses_the_rest(path: Path) -> None:
    writer = WriterThread(path, 5)
    futures = submitted_together(writer, *(insert(f"m{number:03}") for number in range(300)))
    writer.close()
    assert [future.result(0) for future in futures] == names(path)
    with pytest.raises(StorageUnavailable, match="closed"):
        writer.submit(insert("late")).result(0)
    writer.close()


def test_no_write_is_left_hanging_by_a_close_beside_it(path: Path) -> None:
    for _ in range(30):
        writer = WriterThread(path, 5)
        line = threading.Barrier(4)
        futures: list[Future[Any]] = []

        def submit(
            line: threading.Barrier = line,
            writer: WriterThread = writer,
            futures: list[Future[Any]] = futures,
        ) -> None:
            line.wait()
            futures.extend(writer.submit(lambda raw: None) for _ in range(20))

        threads = [threading.Thread(target=submit) for _ in range(3)]
        for thread in threads:
            thread.start()
        line.wait()
        writer.close()
        for thread in threads:
            thread.join()
        assert len(futures) == 60
        for future in futures:
            error = future.exception(20)
            assert error is None or isinstance(error, StorageUnavailable)


def test_what_a_write_held_is_freed_when_it_is_done(writer: WriterThread) -> None:
    """Not when the collector comes: it may be a hundred megabytes and more."""

    class Held:
        def __call__(self, raw: apsw.Connection) -> None:
            """The work of a write."""

    held = Held()
    left = weakref.ref(held)
    gc.disable()
    try:
        done = writer.submit(held)
        del held
        done.result(10)
        writer.submit(insert("another")).result(10)
        assert left() is None
    finally:
        gc.enable()


def test_the_chunks_of_a_long_document_are_replaced_quickly(
    writer: WriterThread, path: Path
) -> None:
    """Nobody else writes meanwhile. A statement that needs a journal of its own for each of them
    makes it seconds: a trigger does, and RETURNING."""
    terms = ChunkTerms(JoinedRuns([]), JoinedRuns([]), JoinedRuns([["word"]]))
    added = [NewChunk(n, 0, 600, "", "word " * 120, b"0", terms) for n in range(15_000)]

    def make(raw: apsw.Connection) -> None:
        raw.execute("PRAGMA defer_foreign_keys = ON")
        raw.executemany(
            "INSERT INTO chunks VALUES (?, 1, ?, 0, 600, '', ?, x'00')",
            [(number, number, "word " * 120) for number in range(30_000)],
        )
        raw.execute(
            "INSERT INTO documents (document_key, namespace, document_id, source_id, title, tags, "
            "mime, metadata, revision, content_hash, content_chars, created_at_us, updated_at_us, "
            "updated_by, operation, vector_status) VALUES (1, 'default', 'a', 1, '', '[]', '', "
            "'{}', 1, x'00', 0, 0, 0, '', 'create', 'ready')"
        )

    def replace(raw: apsw.Connection) -> float:
        started_s = time.thread_time()
        ChunkTable(raw).apply(1, ChunkChanges(added, (), range(15_000)))
        return time.thread_time() - started_s

    writer.submit(make).result(60)
    assert writer.submit(replace).result(60) < 0.8
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT max(chunk_key), count(*) FROM chunks").get == (44_999, 30_000)
    connection.close()
