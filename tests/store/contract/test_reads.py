"""Reads: one snapshot each, bounded in time, side by side with writes."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TypeVar

import pytest

from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.errors import DeadlineExceeded, StorageUnavailable
from zibaldone.model.query import Query
from zibaldone.store.port import Reader
from zibaldone.store.tables import BY_NAME
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.query import parse_query

T = TypeVar("T")


def look(reader: Reader) -> tuple[str, list[str], list[str]]:
    document = reader.documents.get("a")
    assert document is not None
    heads = reader.documents.heads("", limit=9)
    scored = reader.lexical.search(parse_query("zebra"), limit=9)
    views = reader.chunks.views(key for key, _ in scored)
    found = [views[key].document_id for key, _ in scored]
    return document.body, [h.document_id for h in heads], found


def test_a_read_sees_one_state_while_writes_go_on(kept: Kept) -> None:
    kept.create("a", "zebra")
    looked, written = threading.Event(), threading.Event()

    def look_twice(reader: Reader) -> tuple[object, object]:
        first = look(reader)
        looked.set()
        assert written.wait(20)
        return first, look(reader)

    async def both() -> tuple[object, object]:
        reading = asyncio.ensure_future(kept.store.read(EVERYTHING, look_twice))
        assert await asyncio.to_thread(looked.wait, 20)
        await asyncio.to_thread(kept.update, "a", body="lion")
        await asyncio.to_thread(kept.create, "b", "zebra")
        written.set()
        return await reading

    first, second = asyncio.run(both())
    assert first == second == ("zebra", ["a"], ["a"])
    assert kept.read(look) == ("lion", ["a", "b"], ["b"])


def test_a_quick_read_sees_every_write_that_was_acknowledged(kept: Kept) -> None:
    """No state is held from one to the next."""
    kept.create("a", "zebra")
    assert kept.read(look, is_small=True) == ("zebra", ["a"], ["a"])
    kept.update("a", body="lion")
    assert kept.read(look, is_small=True) == ("lion", ["a"], [])
    kept.create("b", "zebra")
    assert kept.read(look, is_small=True) == ("lion", ["a", "b"], ["b"])


@pytest.mark.parametrize("is_small", [False, True])
def test_a_read_that_takes_too_long_is_interrupted(kept: Kept, is_small: bool) -> None:
    for number in range(60):
        kept.create(f"d/{number}")

    def endless(reader: Reader) -> None:
        for _ in range(5_000):
            reader.documents.heads("", limit=100)

    with pytest.raises(DeadlineExceeded):
        kept.read(endless, seconds_max=0.05, is_small=is_small)
    # The connection it ran on is as good as new.
    for _ in range(10):
        assert len(kept.ids()) == 60
    assert kept.read(lambda reader: reader.documents.get("d/1"), is_small=is_small) is not None


def test_a_part_of_a_read_that_takes_too_long_is_interrupted_alone(kept: Kept) -> None:
    for number in range(60):
        kept.create(f"d/{number}")

    def endless(reader: Reader) -> None:
        while True:
            reader.documents.heads("", limit=100)

    def partly(reader: Reader) -> tuple[int, int]:
        started_s = time.monotonic()
        with pytest.raises(DeadlineExceeded), reader.within(0.5), reader.within(0.02):
            endless(reader)
        assert time.monotonic() - started_s < 5
        with reader.within(1.0), reader.within(0.5):
            inside = len(reader.documents.heads("", limit=100))
        return inside, len(reader.documents.heads("", limit=100))

    assert kept.read(partly, seconds_max=20) == (60, 60)


def test_the_whole_of_a_read_still_has_its_deadline(kept: Kept) -> None:
    for number in range(60):
        kept.create(f"d/{number}")

    def endless(reader: Reader) -> None:
        while True:
            with reader.within(0.9):
                reader.documents.heads("", limit=100)

    with pytest.raises(DeadlineExceeded):
        kept.read(endless, seconds_max=0.1)


def test_matching_looks_at_every_key_however_many_others_match(kept: Kept) -> None:
    for number in range(80):
        kept.create(f"d/{number:02}", "zebra" if number % 2 else "zebra and lion")

    def matching(reader: Reader) -> tuple[set[str], set[str]]:
        zebras = reader.lexical.search(Query(terms=("zebra",)), limit=100)
        views = reader.chunks.views(key for key, _ in zebras)
        wanted = {key for key, view in views.items() if view.document_id[-1] in "18"}
        lions = reader.lexical.matching(Query(wishes=(("lion",), ("zebra", "and"))), wanted)
        return (
            {views[key].document_id for key in lions},
            {views[key].document_id for key in reader.lexical.matching(Query(), wanted)},
        )

    expected = {f"d/{tens}8" for tens in range(8)}
    assert kept.read(matching) == (expected, set())


def test_reads_run_side_by_side(kept: Kept) -> None:
    kept.create("a", "zebra")
    both_are_in = threading.Barrier(2, timeout=20)

    def meet(reader: Reader) -> str:
        both_are_in.wait()
        document = reader.documents.get("a")
        assert document is not None
        return document.body

    async def two() -> tuple[str, str]:
        return await asyncio.gather(
            kept.store.read(EVERYTHING, meet), kept.store.read(EVERYTHING, meet)
        )

    assert tuple(asyncio.run(two())) == ("zebra", "zebra")


def test_more_reads_than_readers_all_get_their_turn(kept: Kept) -> None:
    kept.create("a", "zebra")

    async def many() -> list[tuple[str, list[str], list[str]]]:
        return await asyncio.gather(*(kept.store.read(EVERYTHING, look) for _ in range(50)))

    assert asyncio.run(many()) == [("zebra", ["a"], ["a"])] * 50


def test_a_read_that_fails_gives_its_error_and_the_reader_back(kept: Kept) -> None:
    def fail(reader: Reader) -> None:
        raise KeyError(reader.documents.get("nothing"))

    for _ in range(10):
        with pytest.raises(KeyError):
            kept.read(fail)
        with pytest.raises(KeyError):
            kept.read(fail, is_small=True)
    assert kept.ids() == []


def test_a_closed_store_says_so(kept: Kept) -> None:
    kept.create("a", "zebra")
    kept.store.close()
    kept.store.close()
    with pytest.raises(StorageUnavailable, match="closed"):
        kept.read(look)
    with pytest.raises(StorageUnavailable, match="closed"):
        kept.read(look, is_small=True)
    with pytest.raises(StorageUnavailable, match="closed"):
        kept.create("b")
    with pytest.raises(StorageUnavailable, match="closed"):
        asyncio.run(kept.store.check())


def test_what_was_written_is_there_after_closing_and_opening(kept: Kept, backend: Backend) -> None:
    kept.create("a", "zebra")
    kept.update("a", body="zebra, again")
    kept.store.close()
    again = Kept(backend.open(kept.limits), kept.limits)
    try:
        assert again.read(look) == ("zebra, again", ["a"], ["a"])
        assert asyncio.run(again.store.check(thorough=True)).problems == ()
    finally:
        again.store.close()


def test_a_sound_store_is_found_sound(kept: Kept) -> None:
    kept.create("a", "zebra")
    kept.delete("a")
    for thorough in (False, True):
        check = asyncio.run(kept.store.check(thorough=thorough))
        assert (check.ok, check.problems) == (True, ())
        assert check.engine


def test_upkeep_that_looks_for_long_sees_one_state_and_ends_in_time(kept: Kept) -> None:
    kept.create("a", "words")

    async def look() -> list[int]:
        loop = asyncio.get_running_loop()

        def count_twice(work: Upkeep) -> list[int]:
            before = work.transfer.count(BY_NAME["documents"])
            added = kept.store.upkeep(lambda other: other.models.id("new", 3, 1))
            asyncio.run_coroutine_threadsafe(added, loop).result(20)
            return [before, work.transfer.count(BY_NAME["models"])]

        return await kept.store.upkeep(count_twice, write=False, seconds_max=600)

    documents, models = asyncio.run(look())
    assert (documents, models) == (1, 0)
    assert kept.upkeep(lambda work: work.transfer.count(BY_NAME["models"]), write=False) == 1

    def endless(work: Upkeep) -> None:
        while True:
            work.transfer.count(BY_NAME["documents"])

    with pytest.raises(DeadlineExceeded):
        asyncio.run(kept.store.upkeep(endless, write=False, seconds_max=0.1))
