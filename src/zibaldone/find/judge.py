"""The relevance of what one search found, by the scores that its legs brought."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from zibaldone.errors import DeadlineExceeded
from zibaldone.find.candidates import Candidates
from zibaldone.find.meaning import Meaning
from zibaldone.find.relevance import (
    Measure,
    Relevance,
    calibration_of,
    score_max,
    telling_score,
    wanted_terms,
)
from zibaldone.model.query import Query
from zibaldone.store.port import Reader

WEAK_NOTE = "nothing found matches the query well; the answer may not be here"

_SHARE = 0.2
"""Of the time that is left."""


@dataclass(frozen=True, slots=True)
class Judge:
    measure: Measure
    candidates: Candidates
    word_trust: float = 1.0
    """How far the keyword scores tell which chunk is meant, from 0 to 1: less where the best of
    them comes from a stray word."""

    def relevance(self, chunk_keys: Iterable[int]) -> Relevance:
        """Of chunks that are shown as one hit: by the best figures that any of them has."""
        keys = list(chunk_keys)
        cosines, scores = self.candidates.similarities, self.candidates.word_scores
        return self.measure.of(
            max((cosines[key] for key in keys if key in cosines), default=None),
            max((scores[key] for key in keys if key in scores), default=None),
        )


def judge(reader: Reader, query: Query, meaning: Meaning | None, candidates: Candidates) -> Judge:
    reach = _NOT_KNOWN if candidates.lacks_words else word_reach(reader, query)
    if meaning is None:
        return Judge(Measure(reach.score_max), candidates)
    measure = Measure(reach.score_max, calibration_of(meaning.identity), meaning.trust)
    return Judge(measure, candidates, _word_trust(candidates, meaning.trust * reach.telling_score))


def _word_trust(candidates: Candidates, telling_score: float) -> float:
    best = candidates.lexical[0][1] if candidates.lexical else 0.0
    return min(1.0, best / telling_score) if telling_score else 1.0


class WordReach(NamedTuple):
    """What keyword scores mean for one query."""

    score_max: float | None
    """The highest that there could be; None: it could not be told in time."""
    telling_score: float = 0.0


_NOT_KNOWN = WordReach(None)


def word_reach(reader: Reader, query: Query) -> WordReach:
    try:
        with reader.within(_SHARE):
            frequencies = reader.lexical.frequencies(wanted_terms(query))
    except DeadlineExceeded:
        return _NOT_KNOWN
    return WordReach(score_max(query, frequencies), telling_score(query, frequencies))
