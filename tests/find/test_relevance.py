"""Figures of a search → a relevance."""

from __future__ import annotations

from itertools import pairwise

import pytest

from zibaldone.find.relevance import (
    CALIBRATIONS,
    Measure,
    calibration_of,
    is_weak,
    score_max,
    wanted_terms,
)
from zibaldone.store.port import TermFrequencies
from zibaldone.text.query import parse_query

MINILM = CALIBRATIONS["all-MiniLM-L6-v2"]
COSINES = [part / 10 for part in range(-10, 11)]


def highest(words: str, chunks: int, **chunks_with: float) -> float:
    query = parse_query(words)
    counts = {term: chunks_with.get(term, 0.0) for term in wanted_terms(query)}
    return score_max(query, TermFrequencies(chunks, counts))


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    assert highest("zebra", 1_000, zebra=3) > highest("zebra", 1_000, zebra=300) > 0


def test_a_word_that_is_nowhere_weighs_most() -> None:
    both = highest("zebra unicorn", 1_000, zebra=3)
    assert both > 2 * highest("zebra", 1_000, zebra=3)


def test_in_a_few_chunks_a_word_that_is_nowhere_weighs_no_more_than_the_rarest() -> None:
    """With a single chunk, every word of it is in more than half of all chunks."""
    one = highest("zebra", 1, zebra=1)
    assert highest("zebra unicorn", 1, zebra=1) == pytest.approx(2 * one)


def test_each_form_of_a_word_weighs_like_its_most_common_one() -> None:
    """With its accent it is rarer than without; a chunk that has both has said it once."""
    both = highest("caf\u00e9", 1_000, cafe=30, café=2)
    assert both == pytest.approx(2 * highest("cafe", 1_000, cafe=30))


def test_demands_and_beginnings_of_words_add_nothing() -> None:
    assert highest('"red fox"', 100, red=1, fox=1) == 0.0
    assert highest("zeb* lion", 100, lion=2) == highest("lion", 100, lion=2)


def test_an_empty_index_is_no_trouble() -> None:
    assert highest("zebra", 0) >= 0.0


@pytest.mark.parametrize("model", CALIBRATIONS)
@pytest.mark.parametrize("trust", [0.0, 0.5, 1.0])
def test_more_of_anything_is_never_less_relevant(model: str, trust: float) -> None:
    measure = Measure(10.0, calibration_of(f"{model}/rest"), trust)
    for score in (0.0, 2.0, 5.0, 20.0):
        rising = [measure.of(cosine, score).value for cosine in COSINES]
        assert all(less <= more for less, more in pairwise(rising))
    for cosine in COSINES:
        rising = [measure.of(cosine, score).value for score in (0.0, 1.0, 5.0, 10.0, 11.0)]
        assert all(less <= more for less, more in pairwise(rising))
        assert all(0.0 <= value <= 1.0 for value in rising)


def test_a_leg_that_is_missing_leaves_it_to_the_other() -> None:
    by_words = Measure(10.0).of(None, 5.0).value
    assert Measure(10.0, MINILM).of(None, 5.0).value == by_words
    assert Measure(None, MINILM).of(0.7, None).value > 0.8
    assert Measure(None, MINILM).of(0.1, None).value < 0.1
    assert Measure(None).of(None, None).value < 1e-6


def test_where_words_can_add_nothing_it_is_told_whether_they_were_found() -> None:
    assert Measure(0.0).of(None, 3.0).words == 1.0
    assert Measure(0.0).of(None, 0.0).words == 0.0
    assert Measure(0.0).of(None, None).words == 0.0


def test_a_model_that_knows_the_language_less_is_believed_less() -> None:
    believed, halfway, not_at_all = (
        Measure(10.0, MINILM, trust).of(0.8, 1.0).value for trust in (1.0, 0.5, 0.0)
    )
    assert believed > halfway > not_at_all == Measure(10.0).of(None, 1.0).value


def test_without_the_words_asked_for_a_coarse_model_is_believed_less() -> None:
    coarse = CALIBRATIONS["wordllama-l2-supercat-256"]
    for cosine in (0.4, 0.6, 0.8):
        by_cosine = Measure(None, coarse).of(cosine, None).value
        assert Measure(10.0, coarse).of(cosine, 0.0).value < by_cosine
        assert Measure(10.0, MINILM).of(cosine, 0.0).value == pytest.approx(
            Measure(None, MINILM).of(cosine, None).value
        )


def test_a_model_that_was_not_fitted_is_asked_only_where_words_say_nothing() -> None:
    unknown = calibration_of("remote/some-model/64")
    assert unknown is None
    assert Measure(10.0, unknown).of(0.99, 5.0) == (Measure(10.0).of(None, 5.0).value, 0.99, 0.5)
    assert Measure(None, unknown).of(0.5, None).value < 0.3 < Measure(None).of(0.9, None).value


def test_near_in_meaning_without_a_common_word_is_relevant() -> None:
    assert not is_weak([Measure(10.0, MINILM).of(0.6, 0.0).value])


def test_nothing_is_weak() -> None:
    assert is_weak([])
    assert is_weak([0.1, 0.2])
    assert not is_weak([0.1, 0.9])
