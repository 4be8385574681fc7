"""A tenant with few chunks among many of others: its searches cost what they cost alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.store.backends import Sqlite
from tests.store.contract.test_large_index import every_query
from tests.store.large_index import AWAY, Index, large_index
from zibaldone.limits import Limits
from zibaldone.model.query import Filter
from zibaldone.store.open import DATABASE_NAME
from zibaldone.store.sqlite import lexical
from zibaldone.text.query import parse_query


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small_tenants")


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    with large_index(Sqlite(folder)) as filled:
        yield filled


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(prefix="low/1"),
        Filter(prefix="high/1", tags_all=("even",)),
        Filter(prefix="high/", document_ids=("low/1", "high/12")),
        Filter(prefix="none/"),
    ],
    ids=["a folder", "a tag", "some documents", "nothing"],
)
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


def test_what_others_wrote_is_not_ranked(
    folder: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured in steps of SQLite's virtual machine, not in time."""
    raw = apsw.Connection(str(folder / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    raw.set_progress_handler(count, 10)
    needed = []
    for few in (10, 1_000):
        monkeypatch.setattr(lexical, "_MATCHING_FEW", few)
        steps = 0
        searched = lexical.Lexical(raw, AWAY, Limits())
        assert len(searched.search(parse_query("oak elm"), limit=10)) == 1
        needed.append(steps)
    raw.close()
    assert 3 * needed[0] < needed[1], needed
