"""The relevance of what one search found, by the scores that its legs brought."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zibaldone.errors import DeadlineExceeded
from zibaldone.find.candidates import Candidates
from zibaldone.find.meaning import Meaning
from zibaldone.find.relevance import Measure, Relevance, calibration_of, score_max, wanted_terms
from zibaldone.model.query import Query
from zibaldone.store.port import Reader

WEAK_NOTE = "nothing found matches the query well; the answer may not be here"

_SHARE = 0.2
"""Of the time that is left."""


@dataclass(frozen=True, slots=True)
class Judge:
    measure: Measure
    candidates: Candidates

    def relevance(self, chunk_keys: Iterable[int]) -> Relevance:
        """Of chunks that are shown as one hit: by the best figures that any of them has."""
        keys = list(chunk_keys)
        cosines, scores = self.candidates.similarities, self.candidates.word_scores
        return self.measure.of(
            max((cosines[key] for key in keys if key in cosines), default=None),
            max((scores[key] for key in keys if key in scores), default=None),
        )


def judge(reader: Reader, query: Query, meaning: Meaning | None, candidates: Candidates) -> Judge:
    words_max = None if candidates.lacks_words else word_score_max(reader, query)
    if meaning is None:
        return Judge(Measure(words_max), candidates)
    return Judge(Measure(words_max, calibration_of(meaning.identity), meaning.trust), candidates)


def word_score_max(reader: Reader, query: Query) -> float | None:
    """The highest keyword score that a query could reach; None: it could not be told in time."""
    try:
        with reader.within(_SHARE):
            return score_max(query, reader.lexical.frequencies(wanted_terms(query)))
    except DeadlineExceeded:
        return None
