"""A large index is read into memory in steps; searches meanwhile say so, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.errors import VectorsLoading
from commonplace.limits import Limits
from commonplace.store.open import open_store
from commonplace.store.port import Reader
from commonplace.store.sqlite import vectors as sqlite_vectors
from tests.store.kept import HASHED, Kept, Two


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    limits = Limits()
    first, second = open_store(tmp_path, limits), open_store(tmp_path, limits)
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
    for _ in range(50):
        try:
            return two.there.nearest("zebra")
        except VectorsLoading:
            continue
    raise AssertionError("it is never all there")


def test_a_search_that_cannot_wait_says_so_and_the_next_goes_on(filled: Two) -> None:
    with pytest.raises(VectorsLoading):
        filled.there.nearest("zebra")
    assert len(finished(filled)) == 30


def test_what_changes_meanwhile_is_not_lost(filled: Two) -> None:
    with pytest.raises(VectorsLoading):
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
    with pytest.raises(VectorsLoading):
        filled.there.nearest("zebra")
    model_id = filled.here.maintain(lambda work: work.model_id(HASHED.identity, 64, 0))
    filled.here.maintain(lambda work: work.drop_vectors(model_id, 20))
    assert len(finished(filled)) == 10


def test_a_server_reads_ahead(filled: Two) -> None:
    asyncio.run(filled.there.store.load_vectors(HASHED.identity))
    assert len(filled.there.nearest("zebra")) == 30
    asyncio.run(filled.there.store.load_vectors("no such model"))


def test_an_older_snapshot_does_not_bring_back_what_is_gone(filled: Two) -> None:
    """Begun by one reader, continued by another whose snapshot is from before a removal."""
    query = HASHED.embed(["zebra"])[0]

    def outer(reader: Reader) -> None:
        # The snapshot is taken by the first statement.
        reader.documents.get("d/29")
        filled.here.delete("d/29")
        with pytest.raises(VectorsLoading):
            filled.there.nearest("zebra")
        for _ in range(50):
            try:
                reader.vectors.search(HASHED.identity, query, 50)
            except VectorsLoading:
                continue
            return
        raise AssertionError("it is never all there")

    filled.there.read(outer)
    assert len(filled.there.nearest("zebra")) == 29
