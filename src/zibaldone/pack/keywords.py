"""A keyword index in memory: BM25 over documents that are numbered from 0."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping

from zibaldone.model.vector import Vectors, np

DOCUMENTS_MAX = (1 << 24) - 1
"""A posting is the number of a document and a count, in 32 bits."""

_COUNT_MAX = 255
"""Higher counts are worth the same: BM25 is nearly flat there."""

_FREQUENCY_HALF = 1.5
_LENGTH_SHARE = 0.75
"""BM25's k1 and b. For the ranking of code they matter little (docs/explain/code-search.md)."""


class KeywordIndex:
    """Written by one thread, then read by any."""

    def __init__(self) -> None:
        self._postings: dict[str, array[int]] = {}
        self._lengths = array("I")

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, counts: Mapping[str, int]) -> int:
        """Add a document by how often it has each term; returns its number."""
        number, postings = len(self._lengths), self._postings
        for term, count in counts.items():
            posting = number << 8 | min(count, _COUNT_MAX)
            known = postings.get(term)
            if known is None:
                postings[term] = array("I", (posting,))
            else:
                known.append(posting)
        self._lengths.append(sum(counts.values()))
        return number

    def rarity(self, term: str) -> float:
        """BM25's idf: near 0 for what every document has."""
        known = self._postings.get(term)
        having = len(known) if known is not None else 0
        return math.log(1 + (len(self) - having + 0.5) / (having + 0.5))

    def scores(self, terms: Iterable[str]) -> Vectors:
        """The score of every document; 0 for those that have none of the terms."""
        scores = np.zeros(len(self), np.float32)
        if not len(self):
            return scores
        lengths = np.frombuffer(self._lengths, np.uint32).astype(np.float32)
        average = max(float(lengths.mean()), 1.0)
        pivot = _FREQUENCY_HALF * (1 - _LENGTH_SHARE + _LENGTH_SHARE * lengths / average)
        for term in terms:
            known = self._postings.get(term)
            if known is None:
                continue
            packed = np.frombuffer(known, np.uint32)
            numbers, counts = packed >> 8, (packed & _COUNT_MAX).astype(np.float32)
            gained = counts * (_FREQUENCY_HALF + 1) / (counts + pivot[numbers])
            scores[numbers] += self.rarity(term) * gained
        return scores
