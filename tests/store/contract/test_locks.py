"""What a writer reads by id is locked until it commits: it may decide by what it read."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.store.backends import Backend
from tests.store.kept import ACTOR, EVERYTHING, Kept
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.store.port import Store, Writer

WRITES = 40


def count_up(writer: Writer) -> int:
    before = writer.documents.get("counter")
    assert before is not None
    count = before.metadata["count"] + 1
    after = replace(before, revision=before.revision + 1, metadata={"count": count})
    writer.documents.replace(before, after)
    return int(count)


def test_no_update_is_lost_between_two_that_opened_the_store(kept: Kept, backend: Backend) -> None:
    """Neither gets a Conflict either: the second waits, and then reads what the first wrote."""
    kept.create("counter", metadata={"count": 0})
    other = backend.open(Limits())

    async def write_all(store: Store) -> list[int]:
        return await asyncio.gather(*(store.write(EVERYTHING, count_up) for _ in range(WRITES)))

    async def both() -> list[int]:
        here, there = await asyncio.gather(write_all(kept.store), write_all(other))
        return [*here, *there]

    try:
        counts = asyncio.run(both())
    finally:
        other.close()
    assert sorted(counts) == list(range(1, 2 * WRITES + 1))
    assert kept.known("counter").metadata == {"count": 2 * WRITES}
    assert kept.known("counter").revision == 2 * WRITES + 1


def test_an_id_that_does_not_exist_is_locked_as_well(kept: Kept, backend: Backend) -> None:
    """Of several that put one new document, one creates it and the others update it."""
    other = backend.open(Limits())

    def put(writer: Writer) -> bool:
        _, is_new = create(writer, NewDocument("new", "words"), ACTOR, kept.limits, upsert=True)
        return is_new

    async def both() -> list[bool]:
        stores = [kept.store, other] * 10
        return await asyncio.gather(*(store.write(EVERYTHING, put) for store in stores))

    try:
        are_new = asyncio.run(both())
    finally:
        other.close()
    assert sum(are_new) == 1
    assert kept.known("new").revision == len(are_new)


def test_an_error_of_the_work_itself_reaches_its_caller_unchanged(kept: Kept) -> None:
    class OwnError(Exception):
        pass

    problem = OwnError("mine")

    def fail(writer: Writer) -> None:
        count_up(writer)
        raise problem

    kept.create("counter", metadata={"count": 0})
    with pytest.raises(OwnError) as caught:
        kept.write(fail)
    assert caught.value is problem
    assert kept.known("counter").metadata == {"count": 0}
