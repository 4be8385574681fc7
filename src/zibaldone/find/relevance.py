"""How relevant a hit is, from 0 to 1, whatever else was found. Pure: numbers in, a number out.

Scores rank the hits of one search: the best is near 1 even if nothing answers the question. A
relevance compares across searches. It is a logistic curve over two figures that do: the cosine, and
the keyword score as a part of the highest that the query's words could reach. The curves are fitted
on questions with and without an answer (docs/explain/finding.md, `benchmarks/answerable.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from zibaldone.model.query import Query
from zibaldone.store.port import TermFrequencies
from zibaldone.text.lookups import wanted_lookups

RELEVANT_MIN = 0.3
"""An answer whose best hit is below this is weak."""

_TERM_SCORE_MAX = 2.2
"""What BM25 (k1 = 1.2) gives a term for each unit of its idf, at most."""
_IDF_MIN = 1e-6
_FEW_CHUNKS, _MANY_CHUNKS = 20, 200
"""From a few chunks it cannot be told how rare a word is that none of them has."""
_SMALL_CHUNKS, _LARGE_CHUNKS = 200, 2_000
"""Up to the first, vectors tell answers from the rest as well as words do; words from the second on
(docs/explain/finding.md has the figures)."""
_SMALL_TO_LARGE = math.log(_LARGE_CHUNKS / _SMALL_CHUNKS)


@dataclass(frozen=True, slots=True)
class Curve:
    base: float
    cosine: float = 0.0
    words: float = 0.0

    def at(self, cosine: float, words: float) -> float:
        """The logarithm of the odds."""
        return self.base + self.cosine * cosine + self.words * words


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of an embedding model that was fitted."""

    both: Curve
    cosine_alone: Curve
    without_words: float = 0.0
    """Taken from the odds by the cosine alone where words were asked for and say less."""


WORDS_ALONE = Curve(-3.35, words=13.75)

_ANY_COSINE = Curve(-6.0, cosine=8.0)
"""Of a model that was not fitted: half at .75, since some put unrelated texts that near."""

CALIBRATIONS: Mapping[str, Calibration] = {
    "all-MiniLM-L6-v2": Calibration(Curve(-5.15, 6.9, 7.67), Curve(-4.57, 9.77)),
    "wordllama-l2-supercat-256": Calibration(Curve(-4.37, 4.82, 9.53), Curve(-3.71, 9.28), 1.0),
    "universal-sentence-encoder-multilingual-3": Calibration(
        Curve(-4.03, 3.06, 11.58), Curve(-2.61, 7.57), 1.0
    ),
}
"""By what the identity of a model begins with."""


def calibration_of(identity: str) -> Calibration | None:
    """None: nobody knows how near unrelated texts are to this model."""
    return CALIBRATIONS.get(identity.partition("/")[0])


def wanted_terms(query: Query) -> set[str]:
    """The terms whose frequencies `score_max` needs."""
    return {term for terms in _word_terms(query) for term in terms}


def score_max(query: Query, frequencies: TermFrequencies) -> float:
    """The highest keyword score that the words of a query could reach in one chunk.

    What a query demands and the beginnings of words add nothing to it: a chunk that has them has
    what was asked for. A word that is looked up in several forms counts for each like its most
    common one.
    """
    weights, absent = [], 0
    for terms in _word_terms(query):
        chunks_with = max(frequencies.chunks_with[term] for term in terms)
        if chunks_with:
            weights.append(len(terms) * _idf(frequencies.chunks, chunks_with))
        else:
            absent += len(terms)
    full = _idf(frequencies.chunks, 0)
    known = (frequencies.chunks - _FEW_CHUNKS) / (_MANY_CHUNKS - _FEW_CHUNKS)
    rarest = min(full, max(weights, default=full))
    weight = rarest + (full - rarest) * min(1.0, max(0.0, known))
    return _TERM_SCORE_MAX * (sum(weights) + absent * weight)


def telling_score(query: Query, frequencies: TermFrequencies) -> float:
    """The keyword score from which on words tell more than vectors which chunk is meant.

    One word of a question is always somewhere, whatever is asked. So it is the most that the rarest
    word could score alone (in a chunk that has it once, it scores about half of that), or half of
    what all words could, where that is less. In a large index it falls to 0: among thousands of
    chunks many are near in meaning, and few have the word.
    """
    smallness = math.log(_LARGE_CHUNKS / max(1, frequencies.chunks)) / _SMALL_TO_LARGE
    if smallness <= 0.0:
        return 0.0
    rarest = max(
        (
            len(terms) * _idf(frequencies.chunks, chunks_with)
            for terms in _word_terms(query)
            if (chunks_with := max(frequencies.chunks_with[term] for term in terms))
        ),
        default=0.0,
    )
    alone, half = _TERM_SCORE_MAX * rarest, score_max(query, frequencies) / 2
    return min(1.0, smallness) * min(alone, half)


def _word_terms(query: Query) -> list[list[str]]:
    """The terms of each word that is looked up whole."""
    groups = wanted_lookups(query)
    return [
        [lookup.term for lookup in group]
        for group in groups
        if not any(lookup.is_prefix for lookup in group)
    ]


def _idf(chunks: int, chunks_with: float) -> float:
    ratio = (chunks - chunks_with + 0.5) / (chunks_with + 0.5)
    return max(math.log(ratio), _IDF_MIN) if ratio > 0 else _IDF_MIN


class Relevance(NamedTuple):
    value: float
    """From 0 to 1."""
    cosine: float | None
    words: float | None
    """The keyword score as a part of the highest possible. None, as above: it is not known."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What the figures of one search are measured by."""

    words_max: float | None
    """`score_max`; None: it is not known, or words were not asked for."""
    calibration: Calibration | None = None
    trust: float = 1.0
    """In the cosines, for the language of the query."""

    def of(self, cosine: float | None, score: float | None) -> Relevance:
        """By the best cosine and the best keyword score of something; None: it has none."""
        words = None if self.words_max is None else _part(score or 0.0, self.words_max)
        return Relevance(_logistic(self._odds(cosine, words)), cosine, words)

    def _odds(self, cosine: float | None, words: float | None) -> float:
        """A leg that says nothing leaves the judgement to the other."""
        fitted = self.calibration
        if words is None:
            if cosine is None:
                return -math.inf
            return (_ANY_COSINE if fitted is None else fitted.cosine_alone).at(cosine, 0.0)
        by_words = WORDS_ALONE.at(0.0, words)
        if cosine is None or fitted is None:
            return by_words
        # What is near in meaning need not share a word with the question.
        by_cosine = fitted.cosine_alone.at(cosine, 0.0) - fitted.without_words
        by_both = max(fitted.both.at(cosine, words), by_cosine)
        return self.trust * by_both + (1.0 - self.trust) * by_words


def is_weak(relevances: Iterable[float]) -> bool:
    """Is nothing good among what was found? So it is if nothing was."""
    return max(relevances, default=0.0) < RELEVANT_MIN


def _part(score: float, score_max: float) -> float:
    if score_max <= 0.0:
        return 1.0 if score > 0.0 else 0.0
    return min(1.0, score / score_max)


def _logistic(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))
