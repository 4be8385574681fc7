"""A large index is read into memory in steps; searches meanwhile say so, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import Sqlite
from tests.store.kept import HASHED, Kept, Two
from zibaldone.errors import VectorsUnavailable
from zibaldone.limits import Limits
from zibaldone.store.open import open_store, store_url
from zibaldone.store.port import Reader
from zibaldone.store.sqlite import vector_log
from zibaldone.store.sqlite import vectors as sqlite_vectors


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    limits = Limits()
    first, second = open_store(store_url(tmp_path), limits), open_store(store_url(tmp_path), limits)
    two = Two(Kept(first, limits), Kept(second, limits))
    for number in range(30):
        two.here.create(f"d/{number}", f"zebra {number}")
    two.here.index()
    monkeypatch.setattr(sqlite_vectors, "_PAGE_ROWS", 4)
    monkeypatch.setattr(sqlite_vectors, "VECTOR_LOAD_SECONDS_MAX", 0.0)
    yield two
    second.close()
    first.close()


def finished(two: Two) -> list[tuple[str, float]]:
    return searched(two)[0]


def searched(two: Two) -> tuple[list[tuple[str, float]], int]:
    """What is found in the end, and how many searches had to go without."""
    for waited in range(50):
        try:
            return two.there.nearest("zebra"), waited
        except VectorsUnavailable:
            continue
    raise AssertionError("it is never all there")


def test_a_search_that_cannot_wait_says_so_and_the_next_goes_on(filled: Two) -> None:
    with pytest.raises(VectorsUnavailable):
        filled.there.nearest("zebra")
    assert len(finished(filled)) == 30


def test_what_changes_meanwhile_is_not_lost(filled: Two) -> None:
    with pytest.raises(VectorsUnavailable):
        filled.there.nearest("zebra")
    filled.here.delete("d/0")  # read already
    filled.here.delete("d/29")  # to be read
    filled.here.update("d/1", body="zebra once more")
    filled.here.create("e", "zebra last")
    filled.here.index()
    texts = {text for text, _ in finished(filled)}
    assert texts == {
        *(f"zebra {number}" for number in range(2, 29)), "zebra once more", "zebra last",
    }  # fmt: skip


def test_a_load_that_is_overtaken_by_a_drop_begins_again(filled: Two) -> None:
    with pytest.raises(VectorsUnavailable):
        filled.there.nearest("zebra")
    model_id = filled.here.upkeep(lambda work: work.models.id(HASHED.identity, 64, 0))
    filled.here.upkeep(lambda work: work.vectors.drop(model_id, 20))
    assert len(finished(filled)) == 10


def test_a_server_reads_ahead(filled: Two) -> None:
    asyncio.run(filled.there.store.prepare_model(HASHED.identity))
    assert len(filled.there.nearest("zebra")) == 30
    asyncio.run(filled.there.store.prepare_model("no such model"))


def test_an_older_snapshot_does_not_bring_back_what_is_gone(filled: Two) -> None:
    """Begun by one reader, continued by another whose snapshot is from before a removal."""
    query = HASHED.embed(["zebra"])[0]

    def outer(reader: Reader) -> None:
        # The snapshot is taken by the first statement.
        reader.documents.get("d/29")
        filled.here.delete("d/29")
        with pytest.raises(VectorsUnavailable):
            filled.there.nearest("zebra")
        for _ in range(50):
            try:
                reader.vectors.search(HASHED.identity, query, 50)
            except VectorsUnavailable:
                continue
            return
        raise AssertionError("it is never all there")

    filled.there.read(outer)
    assert len(filled.there.nearest("zebra")) == 29


_LOGGED = 41
"""Changes of ten deletions, ten updates (a vector goes, another comes), ten creations, and one."""


def changed_much(two: Two) -> set[str]:
    """Far more changes than one step takes; what is there then."""
    for number in range(10):
        two.here.delete(f"d/{number}")
        two.here.update(f"d/{number + 10}", body=f"zebra {number} anew")
        two.here.create(f"e/{number}", f"zebra {number} more")
    two.here.index()
    two.here.delete("d/15")
    return {
        *(f"zebra {number} anew" for number in range(10) if number != 5),
        *(f"zebra {number} more" for number in range(10)),
        *(f"zebra {number}" for number in range(20, 30)),
    }


def test_the_log_of_changes_is_followed_in_steps(filled: Two) -> None:
    assert len(finished(filled)) == 30
    expected = changed_much(filled)
    found, waited = searched(filled)
    assert {text for text, _ in found} == expected
    assert waited == _LOGGED // 4, "a step is kept, the next goes on from there"


def test_the_log_grows_while_it_is_followed(filled: Two) -> None:
    assert len(finished(filled)) == 30
    expected = changed_much(filled)
    with pytest.raises(VectorsUnavailable):
        filled.there.nearest("zebra")
    filled.here.delete("d/20")  # not in the steps so far
    filled.here.delete("e/0")  # created in a step to come
    filled.here.update("d/10", body="zebra twice anew")
    filled.here.index()
    expected = expected - {"zebra 20", "zebra 0 more", "zebra 0 anew"} | {"zebra twice anew"}
    assert {text for text, _ in finished(filled)} == expected


def test_a_drop_late_in_the_log_begins_again(filled: Two) -> None:
    assert len(finished(filled)) == 30
    expected = changed_much(filled)
    model_id = filled.here.upkeep(lambda work: work.models.id(HASHED.identity, 64, 0))
    filled.here.upkeep(lambda work: work.vectors.drop(model_id, 5))
    found = {text for text, _ in finished(filled)}
    assert len(found) == len(expected) - 5
    assert found < expected


def test_who_is_too_far_behind_begins_again(filled: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(finished(filled)) == 30
    expected = changed_much(filled)
    monkeypatch.setattr(sqlite_vectors, "VECTOR_CHANGES_KEPT", _LOGGED - 1)
    found, waited = searched(filled)
    assert {text for text, _ in found} == expected
    assert waited == len(expected) // 4, "the pages of what is there, not of what happened"


def test_a_server_follows_the_log_ahead_of_searches(filled: Two) -> None:
    assert len(finished(filled)) == 30
    expected = changed_much(filled)
    asyncio.run(filled.there.store.prepare_model(HASHED.identity))
    assert {text for text, _ in filled.there.nearest("zebra")} == expected


def test_an_older_snapshot_in_the_middle_of_the_log(filled: Two) -> None:
    """Steps taken by readers whose snapshots are newer and older, in turn."""
    assert len(finished(filled)) == 30
    query = HASHED.embed(["zebra"])[0]
    found: list[int] = []

    def outer(reader: Reader) -> None:
        changed_much(filled)  # before the snapshot, which the first statement takes
        reader.documents.get("d/29")
        filled.here.delete("d/29")
        filled.here.update("d/19", body="zebra at last")
        filled.here.index()
        with pytest.raises(VectorsUnavailable):
            filled.there.nearest("zebra")
        for _ in range(50):
            try:
                found.extend(key for key, _ in reader.vectors.search(HASHED.identity, query, 50))
                return
            except VectorsUnavailable:
                continue
        raise AssertionError("it is never all there")

    filled.there.read(outer)
    assert len(found) == 29, "what was there at the snapshot"
    texts = {text for text, _ in finished(filled)}
    assert "zebra at last" in texts
    assert not texts & {"zebra 29", "zebra 9 anew"}
    assert len(texts) == 28


def test_whatever_adds_to_the_log_of_changes_keeps_it_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_log, "VECTOR_CHANGES_KEPT", 3)
    limits, tables = Limits(), Sqlite(tmp_path)
    store = tables.open(limits)
    kept = Kept(store, limits)

    def log_rows() -> list[int]:
        return [row[0] for row in tables.query("SELECT change_key FROM vector_changes")]

    try:
        for number in range(8):
            kept.create(f"d/{number}", f"zebra {number}")
        kept.index()
        assert log_rows() == [6, 7, 8]
        for number in range(4):  # a write that removes chunks trims as well
            kept.delete(f"d/{number}")
        assert log_rows() == [10, 11, 12]
        model_id = kept.upkeep(lambda work: work.models.id(HASHED.identity, 64, 0))
        kept.upkeep(lambda work: work.vectors.drop(model_id, 100))
        assert log_rows() == [11, 12, 13]
    finally:
        store.close()
