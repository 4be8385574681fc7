"""A tenant with few chunks among many of others: its searches cost what they cost alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.store.backends import Sqlite
from tests.store.contract.test_large_index import every_folder, every_query
from tests.store.large_index import AWAY, Index, large_index
from zibaldone.limits import Limits
from zibaldone.model.query import Filter
from zibaldone.store.open import DATABASE_NAME
from zibaldone.store.sqlite import lexical, vectors
from zibaldone.text.query import parse_query


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small_tenants")


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    with large_index(Sqlite(folder)) as filled:
        yield filled


@every_folder
@every_query
def test_the_hits_and_scores_are_the_same(
    index: Index, monkeypatch: pytest.MonkeyPatch, words: str, wanted: Filter
) -> None:
    exact = index.exact(words, wanted)
    monkeypatch.setattr(lexical, "_MATCHING_FEW", 0)
    monkeypatch.setattr(lexical, "_OWN_PART", 1)
    found = index.found(words, wanted)
    assert sorted(found) == sorted(exact)
    assert [score for _, score in found] == [score for _, score in exact]
    assert index.found(words, wanted, limit=3, offset=2) == found[2:5]


class Steps:
    """Counts what is done on a connection: steps of SQLite's virtual machine, not time."""

    def __init__(self, folder: Path) -> None:
        path = str(folder / DATABASE_NAME)
        self.raw = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        self.raw.set_progress_handler(self._count, 10)
        self._steps = 0

    def _count(self) -> bool:
        self._steps += 1
        return False

    def since(self) -> int:
        """How many tens there were since it was asked last."""
        steps, self._steps = self._steps, 0
        return steps


@pytest.fixture
def steps(folder: Path, index: Index) -> Iterator[Steps]:
    made = Steps(folder)
    yield made
    made.raw.close()


def test_what_others_wrote_is_not_ranked(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = []
    for few in (10, 1_000):
        monkeypatch.setattr(lexical, "_MATCHING_FEW", few)
        searched = lexical.Lexical(steps.raw, AWAY, Limits())
        steps.since()
        assert len(searched.search(parse_query("oak elm"), limit=10)) == 1
        needed.append(steps.since())
    assert 3 * needed[0] < needed[1], needed


def test_what_others_tagged_is_not_walked(index: Index, steps: Steps) -> None:
    for number in range(300):
        index.small.create(f"tagged/{number}", "", tags=("work", f"n{number}"))
    own = index.small.create("tagged", "", AWAY, tags=("work", "n1"))
    index.small.create("other", "", AWAY, tags=("n1",))
    searched = vectors.Vectors(steps.raw, AWAY, vectors.VectorMemory())
    needed = []
    for tag in ("n7", "work"):  # of one document, and of three hundred
        steps.since()
        assert searched.passing([], Filter(tags_any=(tag,))) == set()
        needed.append(steps.since())
    assert needed[1] < 3 * needed[0] + 10, needed
    keys = searched.passing(
        [key for (key,) in steps.raw.execute("SELECT chunk_key FROM chunks")],
        Filter(tags_all=("work", "n1")),
    )
    of = "SELECT chunk_key FROM chunks WHERE document_key = ?"
    assert keys == {key for (key,) in steps.raw.execute(of, (own.storage_key,))}
