"""The WAL stays small, whoever reads; and no reader, however long, stops the writers for good."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from tests.store.kept import EVERYTHING, Kept
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Reader
from zibaldone.store.sqlite import checkpoint

PAGE_BYTES = 4096 + 24  # a page and the header of its frame
DUE, LARGE = 40, 160
BODY = "Some words of a body. " * 400  # a dozen pages with its passages


@pytest.fixture(params=[20.0])
def kept(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kept]:
    """Small bounds, so that a few hundred writes go past them many times."""
    monkeypatch.setattr(checkpoint, "_DUE_PAGES", DUE)
    monkeypatch.setattr(checkpoint, "_LARGE_PAGES", LARGE)
    limits = replace(Limits(), write_wait_seconds_max=request.param)
    store = open_store(store_url(tmp_path), limits)
    yield Kept(store, limits)
    store.close()


def wal_bytes(folder: Path) -> int:
    return (folder / f"{DATABASE_NAME}-wal").stat().st_size


class Snapshot:
    """A read that has begun and goes on until it is told to end."""

    def __init__(self, kept: Kept) -> None:
        self._begun, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._read, args=(kept,))
        self._thread.start()
        assert self._begun.wait(20)

    def _read(self, kept: Kept) -> None:
        def work(reader: Reader) -> None:
            reader.documents.heads("", limit=1)
            self._begun.set()
            assert self._end.wait(60)

        asyncio.run(kept.store.read(EVERYTHING, work))

    def end(self) -> None:
        self._end.set()
        self._thread.join()


def test_the_wal_stays_small_under_writes_alone(kept: Kept, tmp_path: Path) -> None:
    largest = 0
    for number in range(60):
        kept.create(f"d/{number}", BODY)
        largest = max(largest, wal_bytes(tmp_path))
    assert (tmp_path / DATABASE_NAME).stat().st_size > 2 * largest
    assert largest < (DUE + 60) * PAGE_BYTES


def test_the_wal_stays_small_although_there_is_always_a_reader(kept: Kept, tmp_path: Path) -> None:
    """Each reader begins before the one before it ends: SQLite alone would never empty the WAL."""
    largest = 0
    stop = threading.Event()

    def relay() -> None:
        reader = Snapshot(kept)
        while not stop.is_set():
            following = Snapshot(kept)
            reader.end()
            reader = following
        reader.end()

    readers = threading.Thread(target=relay)
    readers.start()
    try:
        for number in range(150):
            kept.create(f"d/{number}", BODY)
            largest = max(largest, wal_bytes(tmp_path))
    finally:
        stop.set()
        readers.join()
    assert (tmp_path / DATABASE_NAME).stat().st_size > 2 * largest
    assert largest < 3 * LARGE * PAGE_BYTES


def test_the_wal_is_emptied_although_each_reader_takes_longer_than_the_first_wait(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two read all the time, and one of them is always in the middle."""
    monkeypatch.setattr(checkpoint, "_WAIT_SECONDS_FIRST", 0.05)
    for number in range(10):  # a checkpoint: from then on it holds
        kept.create(f"first/{number}", BODY)
    stop = threading.Event()

    def read_on(begin_s: float) -> None:
        def work(reader: Reader) -> None:
            reader.documents.heads("", limit=1)
            stop.wait(0.2)

        stop.wait(begin_s)
        while not stop.is_set():
            asyncio.run(kept.store.read(EVERYTHING, work))

    readers = [threading.Thread(target=read_on, args=(begin_s,)) for begin_s in (0.0, 0.1)]
    for reader in readers:
        reader.start()
    try:
        largest, number = 0, 0
        while wal_bytes(tmp_path) >= largest:
            assert number < 400, f"it has {largest // PAGE_BYTES} pages"
            largest = wal_bytes(tmp_path)
            kept.create(f"d/{number}", BODY)
            number += 1
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert largest > LARGE * PAGE_BYTES


@pytest.mark.parametrize("kept", [0.1], indirect=True)
def test_a_reader_that_never_ends_delays_writers_but_does_not_stop_them(
    kept: Kept, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept.create("first", BODY)
    forgotten = Snapshot(kept)
    try:
        for number in range(60):
            kept.create(f"d/{number}", BODY)
        assert wal_bytes(tmp_path) > LARGE * PAGE_BYTES
        warnings = [record for record in caplog.records if "long read" in record.getMessage()]
        assert 1 <= len(warnings) <= 1 + wal_bytes(tmp_path) // (LARGE * PAGE_BYTES)
    finally:
        forgotten.end()
    # Free again: the next ones empty it.
    for number in range(30):
        kept.create(f"e/{number}", BODY)
    assert wal_bytes(tmp_path) < (LARGE + 60) * PAGE_BYTES
    assert len(kept.ids()) == 91


def test_a_reader_that_stays_is_waited_for_once(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of minutes beside a busy writer: nobody waits for it again and again."""
    waits: list[float] = []
    make_waiting = checkpoint.Checkpoints._make_waiting

    def watched(self: checkpoint.Checkpoints, wait_seconds: float) -> bool:
        waits.append(wait_seconds)
        return make_waiting(self, 0)

    monkeypatch.setattr(checkpoint.Checkpoints, "_make_waiting", watched)
    kept.create("first", BODY)
    backup = apsw.Connection(str(tmp_path / DATABASE_NAME))
    backup.execute("BEGIN; SELECT count(*) FROM documents").fetchall()
    for number in range(90):
        kept.create(f"d/{number}", BODY)
    assert wal_bytes(tmp_path) > 4 * LARGE * PAGE_BYTES
    assert len(waits) == 1
    assert waits[0] <= 1
    backup.close()
    for number in range(30):
        kept.create(f"e/{number}", BODY)
    assert wal_bytes(tmp_path) < (LARGE + 60) * PAGE_BYTES


def test_those_who_read_after_it_are_waited_for_soon(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the log became beside a backup, it does not become twice as long after it."""
    waits: list[float] = []

    def in_vain(self: checkpoint.Checkpoints, wait_seconds: float) -> bool:
        waits.append(wait_seconds)
        return False

    monkeypatch.setattr(checkpoint.Checkpoints, "_make_waiting", in_vain)
    kept.create("first", BODY)
    backup = Snapshot(kept)
    for number in range(90):
        kept.create(f"d/{number}", BODY)
    reader = Snapshot(kept)
    backup.end()
    assert len(waits) == 1
    before_bytes = wal_bytes(tmp_path)
    for number in range(200):
        kept.create(f"e/{number}", BODY)
        if len(waits) > 1:
            break
    reader.end()
    assert wal_bytes(tmp_path) - before_bytes < (LARGE + 60) * PAGE_BYTES


def test_a_longer_wait_comes_after_more_writing(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one long read follows another, what they cost the writers does not grow."""
    waits: list[tuple[float, int]] = []

    def in_vain(self: checkpoint.Checkpoints, wait_seconds: float) -> bool:
        waits.append((wait_seconds, self._wal_pages))
        return False

    monkeypatch.setattr(checkpoint.Checkpoints, "_make_waiting", in_vain)
    kept.create("first", BODY)
    number = 0
    while len(waits) < 3:
        reader = Snapshot(kept)
        seen = len(waits)
        while len(waits) == seen:
            assert number < 200, waits
            kept.create(f"d/{number}", BODY)
            number += 1
        reader.end()
    first, *others = waits
    for wait_seconds, pages in others:
        assert wait_seconds / pages < 1.1 * first[0] / first[1]


def test_reads_go_on_while_the_writer_waits_for_readers(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, over = threading.Event(), threading.Event()
    make_waiting = checkpoint.Checkpoints._make_waiting

    def watched(self: checkpoint.Checkpoints, wait_seconds: float) -> bool:
        waiting.set()
        done = make_waiting(self, 60)
        over.set()
        return done

    monkeypatch.setattr(checkpoint.Checkpoints, "_make_waiting", watched)
    kept.create("first", BODY)
    reader = Snapshot(kept)

    def write() -> None:
        for number in range(100):
            kept.create(f"d/{number}", BODY)

    writes = threading.Thread(target=write)
    writes.start()
    try:
        assert waiting.wait(20)
        # Every acknowledged write is there to be read, by the event loop and by other readers.
        heads = kept.read(lambda one: one.documents.heads("", limit=200), is_small=True)
        assert 5 < len(heads) < 100
        assert len(kept.ids()) == len(heads)
        assert not over.is_set()
    finally:
        reader.end()
        writes.join()
    assert over.is_set()
    assert len(kept.ids()) == 101


def test_a_quick_read_leaves_no_snapshot_behind(kept: Kept, tmp_path: Path) -> None:
    """A statement left halfway would keep one open for ever."""
    for number in range(60):
        kept.create(f"d/{number}", BODY)
        kept.read(lambda reader: reader.documents.get("d/0"), is_small=True)
        with pytest.raises(ZeroDivisionError):
            kept.read(lambda reader: reader.documents.heads("", limit=9)[1 // 0], is_small=True)
    assert wal_bytes(tmp_path) < (DUE + 60) * PAGE_BYTES


def test_a_checkpoint_that_fails_costs_no_write(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing:
        def wal_checkpoint(self, *arguments: object) -> tuple[int, int]:
            raise apsw.IOError("disk I/O error")

    checkpoints = kept.store._writer._checkpoints  # type: ignore[attr-defined]
    monkeypatch.setattr(checkpoints, "_connection", SimpleNamespace(raw=Refusing()))
    for number in range(40):
        kept.create(f"d/{number}", BODY)
    assert len(kept.ids()) == 40
    assert "could not be moved" in caplog.text
