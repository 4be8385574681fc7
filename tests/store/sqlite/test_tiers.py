"""Which words of a query lead a search of a large index, and when the steps end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.backends import Sqlite
from tests.store.large_index import Index, large_index
from zibaldone.model.query import Filter


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with large_index(Sqlite(tmp_path_factory.mktemp("tiers"))) as filled:
        yield filled


def holding(index: Index, *groups: str) -> set[int]:
    """Chunks of the first tenant that hold all words of one of these."""
    reachable = {key for key, _ in index.exact("oak")}
    return {
        key
        for key in reachable
        if any(set(group.split()) <= index.words_of[key] for group in groups)
    }


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("fir oak elm", ["fir"]),
        ("fir oak", ["fir"]),
        ("oak elm fir", ["fir"]),
        ("fir oak elm unknown", ["fir"]),
        # Fewer than enough: then those with all the common words, and in the end with any.
        ("yew oak elm", ["yew", "oak elm"]),
        ("bay oak elm ash", ["bay", "oak elm ash"]),
        ("fig oak elm ash", ["oak", "elm", "ash", "fig"]),
        ("fig oak", ["oak", "fig"]),
        # No word is rare: all of them together, then the first of them.
        ("oak elm", ["oak elm"]),
        ("elm ash", ["elm"]),
        ("ash elm", ["ash"]),
        # As many as may be ranked together, the rarest first.
        ("fir yew bay fig", ["yew", "bay", "fig", "fir"]),
        # What is required bounds the search already.
        ('+"oak elm" ash', ["oak elm"]),
        ("oak", ["oak"]),
    ],
)  # fmt: skip
def test_a_search_ends_with_the_step_that_finds_enough(
    index: Index, words: str, groups: list[str]
) -> None:
    found = {key for key, _ in index.found(words, limit=500, enough=1)}
    if words.startswith("+"):
        assert found == {key for key, _ in index.exact(words)}
    else:
        assert found == holding(index, *groups)


def test_counted_is_what_passes_the_filter(index: Index) -> None:
    """Fewer than enough of what the rarer words find: the next step looks for more."""
    for words in ("fir oak elm", "oak elm", "yew oak elm"):
        for wanted in (Filter(document_ids=("low/1",)), Filter(document_ids=("low/1", "high/12"))):
            found = index.found(words, wanted, limit=500, enough=1)
            assert found == index.exact(words, wanted)
