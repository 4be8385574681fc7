"""Two rankings into one: what each leg brings, and what a chunk is judged by that one leg lacks."""

from __future__ import annotations

import pytest

from zibaldone.find.fusion import (
    Fused,
    by_words,
    reciprocal_ranks,
    reranked,
    weighted_scores,
    with_bonus,
)

LEXICAL = [(1, 8.0), (2, 4.0), (3, 2.0)]
VECTOR = [(4, 0.9), (2, 0.7)]


def keys(fused: list[Fused]) -> list[int]:
    return [chunk.chunk_key for chunk in fused]


def scores(fused: list[Fused]) -> dict[int, float]:
    return {chunk.chunk_key: chunk.score for chunk in fused}


def mixed(share: float, similarities: dict[int, float]) -> dict[int, float]:
    words = {**dict(LEXICAL), 4: 2.0}
    return scores(weighted_scores(LEXICAL, VECTOR, words, similarities, vector_share=share))


def test_reciprocal_ranks_add_up_over_the_legs() -> None:
    fused = reciprocal_ranks(LEXICAL, VECTOR, k0=1.0, lexical_weight=1.0, vector_weight=2.0)
    assert scores(fused) == pytest.approx({4: 2 / 2, 2: 1 / 3 + 2 / 3, 1: 1 / 2, 3: 1 / 4})
    assert keys(fused) == [2, 4, 1, 3]  # of equal ones the one with the lower key
    assert [(chunk.rank_lexical, chunk.rank_vector) for chunk in fused] == [
        (2, 2), (None, 1), (1, None), (3, None),
    ]  # fmt: skip
    assert (fused[1].score_lexical, fused[1].score_vector) == (None, 0.9)


def test_scores_are_scaled_and_mixed() -> None:
    near = {1: 0.1, 2: 0.7, 3: 0.5, 4: 0.9}
    assert mixed(0.0, near) == pytest.approx({1: 1.0, 2: 1 / 3, 3: 0.0, 4: 0.0})
    assert mixed(1.0, near) == pytest.approx({1: 0.0, 2: 0.75, 3: 0.5, 4: 1.0})
    assert mixed(0.5, near) == pytest.approx({1: 0.5, 2: 13 / 24, 3: 0.25, 4: 0.5})


def test_a_chunk_whose_vector_is_not_there_yet_is_judged_by_its_words() -> None:
    without_the_first = {2: 0.7, 3: 0.5, 4: 0.9}
    assert mixed(0.9, without_the_first)[1] == pytest.approx(1.0)


def test_what_the_keyword_search_did_not_score_holds_none_of_the_words() -> None:
    fused = weighted_scores(
        LEXICAL, VECTOR, dict(LEXICAL), {1: 0.9, 2: 0.9, 3: 0.9, 4: 0.9}, vector_share=0.0
    )
    assert scores(fused) == pytest.approx({1: 1.0, 2: 0.5, 3: 0.25, 4: 0.0})


def test_the_order_of_cosines_with_those_that_have_none_behind() -> None:
    fused = reranked(LEXICAL, {2: -1.0, 3: 0.5})
    assert keys(fused) == [3, 2, 1]
    assert scores(fused) == pytest.approx({3: 0.75, 2: 0.0, 1: 0.0})
    assert [chunk.rank_vector for chunk in fused] == [1, 2, None]


def test_what_holds_a_quotation_is_raised() -> None:
    fused = by_words(LEXICAL)
    assert keys(with_bonus(fused, frozenset({3}), 1.0)) == [3, 1, 2]
    assert with_bonus(fused, frozenset(), 1.0) == fused
    some = with_bonus(fused, frozenset({3}), 0.05)
    assert keys(some) == [1, 2, 3]
    assert all(0.0 < chunk.score < 1.0 for chunk in some)
