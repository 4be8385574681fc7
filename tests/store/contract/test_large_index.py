"""Keyword search on a large index, which an engine may search in steps: rarer words first.

Whatever the steps, nothing is out of reach, and pages fit together.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.backends import BACKENDS
from tests.store.kept import EVERYTHING
from tests.store.large_index import AWAY, CHUNKS, COUNTS, Index, large_index
from zibaldone.limits import LEXICAL_ENOUGH
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.text.stem import stem

QUERIES = {
    "one rare word is enough": "fir oak elm",
    "one rare word is not, the common ones together are": "yew oak elm",
    "a rarer one": "bay oak elm ash",
    "neither is enough": "fig oak elm ash",
    "one common word, enough": "fir oak",
    "one common word, not enough": "fig oak",
    "all words are common, and often together": "oak elm",
    "all words are common, and seldom together": "elm ash",
    "all words are rare": "bay fig",
    "rare ones that are common together": "fir yew bay fig",
    "one word": "oak",
    "an unknown word": "oak elm unknown",
    "none is known": "unknown nothing",
    "without a common word": "fir oak elm -ash",
    "without a rare word": "yew oak elm -bay",
    "a phrase": '"oak elm" ash',
    "a title": "title:twelve oak elm",
    "a prefix": "fi* oak elm",
}
FILTERS = {
    "none": NO_FILTER,
    "a tag": Filter(tags_all=("even",)),
    "a folder": Filter(prefix="low/"),
    "some documents": Filter(document_ids=("low/1", "low/2", "high/15")),
    "without some": Filter(without_ids=("low/1", "low/2", "high/15")),
    "a tag and a folder": Filter(tags_any=("even", "none"), prefix="high/"),
    "nothing": Filter(document_ids=()),
}
every_query = pytest.mark.parametrize("words", QUERIES.values(), ids=QUERIES.keys())
every_folder = pytest.mark.parametrize(
    "wanted",
    [
        Filter(prefix="low/1"),
        Filter(prefix="high/1", tags_all=("even",)),
        Filter(prefix="high/", document_ids=("low/1", "high/12")),
        Filter(prefix="none/"),
    ],
    ids=["a folder", "a tag", "some documents", "nothing"],
)
every_filter = pytest.mark.parametrize("wanted", FILTERS.values(), ids=FILTERS.keys())


@pytest.fixture(scope="module", params=BACKENDS)
def index(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Index]:
    with large_index(BACKENDS[request.param](tmp_path_factory.mktemp("large"))) as filled:
        yield filled


@every_filter
@every_query
def test_nothing_is_out_of_reach_or_there_twice(index: Index, words: str, wanted: Filter) -> None:
    hits = index.found(words, wanted)
    assert {key for key, _ in hits} == {key for key, _ in index.exact(words, wanted)}
    assert len({key for key, _ in hits}) == len(hits)
    scores = [score for _, score in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


@every_filter
@every_query
def test_pages_are_slices_of_the_whole(index: Index, words: str, wanted: Filter) -> None:
    whole = index.found(words, wanted)
    for size in (7, 50, 130):
        for offset in range(0, CHUNKS + size, size * 3):
            page = index.found(words, wanted, limit=size, offset=offset)
            assert [key for key, _ in page] == [key for key, _ in whole[offset : offset + size]]
    for limit in (1, 10, 99, 101, 131, 500):
        assert index.found(words, wanted, limit=limit) == whole[:limit]


@every_query
def test_enough_leaves_out_only_what_is_beyond_it(index: Index, words: str) -> None:
    whole = index.found(words)
    for enough in (1, LEXICAL_ENOUGH, 140, 300):
        hits = index.found(words, limit=500, enough=enough)
        assert hits == whole[: len(hits)]
        assert len(hits) >= min(enough, len(whole))


@every_query
def test_a_score_does_not_depend_on_the_step_that_brought_it(index: Index, words: str) -> None:
    """The best are found by their rarer words, with the score and in the order of a full search."""
    exact = dict(index.exact(words))
    best = index.found(words, limit=LEXICAL_ENOUGH, enough=1)
    leading = [(key, score) for key, score in best if _has_rare_word(index, key, words)]
    assert [score for _, score in leading] == pytest.approx([exact[key] for key, _ in leading])


def _has_rare_word(index: Index, key: int, words: str) -> bool:
    rare = {word for word in COUNTS if COUNTS[word] <= 130} & set(words.split())
    return bool(rare & index.words_of[key])


def test_the_best_are_those_of_a_full_search(index: Index) -> None:
    for words in ("fir oak elm", "yew oak elm", "bay oak elm ash", "fig oak"):
        best, exact = index.found(words, limit=10), index.exact(words)[:10]
        assert [key for key, _ in best] == [key for key, _ in exact]


@every_query
def test_what_is_left_out_stays_out(index: Index, words: str) -> None:
    unwanted = {word[1:] for word in words.split() if word.startswith("-")}
    for key, _ in index.found(words):
        assert not unwanted & index.words_of[key]


def test_another_namespace_sees_its_own_only(index: Index) -> None:
    for words in ("fir oak elm", "oak elm", "yew oak elm ash"):
        assert len(index.found(words, tenant=AWAY)) == 1
        assert len(index.found(words, tenant=AWAY, limit=1, offset=1)) == 0


def test_terms_are_counted_over_all_namespaces(index: Index) -> None:
    terms = [*map(stem, COUNTS), "gum"]
    of_both = {"oak", "elm", "fir"}
    """One chunk of the other namespace has these."""
    for kept in (index.small, index.large):
        for tenant in (EVERYTHING, AWAY):
            known = kept.read(lambda reader: reader.lexical.frequencies(terms), tenant)
            assert known.chunks == CHUNKS + 1
            for term, count in COUNTS.items():
                assert known.chunks_with[stem(term)] == count + (term in of_both), term
            assert known.chunks_with["gum"] == 0
    assert index.small.read(lambda reader: reader.lexical.frequencies([])).chunks_with == {}
