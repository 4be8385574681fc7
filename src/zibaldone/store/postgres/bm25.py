"""BM25 over postings: which chunks have which terms, and how much that is worth.

The same numbers as FTS5's, so that both engines rank alike. Titles, headings and texts have one
weight; a chunk's length is that of all three.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zibaldone.model.vector import np

if TYPE_CHECKING:
    import numpy.typing as npt

    Keys = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_K1 = 1.2
_B = 0.75
_IDF_MIN = 1e-6
"""Of a term in more than half of all chunks: it still brings them."""

_SPARSE = 4
"""Where there are more than so many keys for each score, scores are put in order to add them up;
else they are added up in an array from the lowest key to the highest."""


class Entries(NamedTuple):
    """The chunks that have something, each once, with their length and how often they have it."""

    keys: Keys
    lengths: Floats
    counts: Floats

    def by_key(self) -> Entries:
        """By rising key."""
        order = np.argsort(self.keys, kind="stable")
        return Entries(self.keys[order], self.lengths[order], self.counts[order])

    def __len__(self) -> int:
        return len(self.keys)


def unpack(rows: Iterable[tuple[int, bytes]]) -> Entries:
    """Rows of the table `postings`: base and entries. See the migration for their layout."""
    layout = np.dtype([("key", ">u4"), ("length", ">u2"), ("count", "u1")])
    by_base: defaultdict[int, list[bytes]] = defaultdict(list)
    for base, packed in rows:
        by_base[base].append(packed)
    unpacked = [(base, np.frombuffer(b"".join(of), layout)) for base, of in by_base.items()]
    return joined(
        Entries(
            part["key"].astype(np.int64) + base,
            part["length"].astype(np.float64),
            part["count"].astype(np.float64),
        )
        for base, part in unpacked
    )


def entries_of(rows: Sequence[tuple[int, int, int]]) -> Entries:
    """Out of keys, lengths and counts."""
    keys = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    lengths = np.fromiter((row[1] for row in rows), np.float64, len(rows))
    return Entries(keys, lengths, np.fromiter((row[2] for row in rows), np.float64, len(rows)))


def joined(parts: Iterable[Entries]) -> Entries:
    """One after the other; a chunk may be there twice."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    if not listed:
        return entries_of(())
    keys, lengths, counts = zip(*listed, strict=True)
    return Entries(np.concatenate(keys), np.concatenate(lengths), np.concatenate(counts))


def added_up(entries: Entries) -> Entries:
    """Each chunk once, by rising key, with its counts added up."""
    times = np.ones(len(entries))
    keys, (counts, lengths, times) = _by_key(entries.keys, entries.counts, entries.lengths, times)
    return Entries(keys, lengths / times, counts)


def shared(parts: Sequence[Entries], corpus: Corpus) -> Ranking:
    """The chunks that have all of these, by what their terms are worth."""
    keys = np.concatenate([entries.keys for entries in parts])
    scores = np.concatenate([corpus.scores(entries, 1.0) for entries in parts])
    keys, (scores, times) = _by_key(keys, scores, np.ones(len(keys)))
    in_all = times == len(parts)
    return Ranking(keys[in_all], scores[in_all])


def _by_key(keys: Keys, *values: Floats) -> tuple[Keys, list[Floats]]:
    """Each key once, rising, with the sums of its values, all of which are above 0."""
    if not len(keys):
        return keys, list(values)
    lowest = int(keys.min())
    reach = int(keys.max()) - lowest + 1
    if reach <= _SPARSE * len(keys):
        offsets = keys - lowest
        sums: list[Floats] = [
            np.bincount(offsets, of_key, reach).astype(np.float64, copy=False) for of_key in values
        ]
        places = np.flatnonzero(sums[0] > 0)
        return places + lowest, [of_key[places] for of_key in sums]
    order = np.argsort(keys, kind="stable")  # they come in runs that are in order
    keys = keys[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], [np.add.reduceat(of_key[order], first) for of_key in values]


def only(entries: Entries, keys: Keys) -> Entries:
    """Those of these chunks."""
    return _chosen(entries, np.isin(entries.keys, keys))


def without(entries: Entries, keys: Keys) -> Entries:
    """Those of other chunks."""
    return _chosen(entries, ~np.isin(entries.keys, keys))


def _chosen(entries: Entries, places: npt.NDArray[np.bool_]) -> Entries:
    return Entries(entries.keys[places], entries.lengths[places], entries.counts[places])


@dataclass(frozen=True, slots=True)
class Corpus:
    chunks: int
    length_mean: float

    def idf(self, chunks_with: float) -> float:
        ratio = (self.chunks - chunks_with + 0.5) / (chunks_with + 0.5)
        return max(math.log(ratio), _IDF_MIN) if ratio > 0 else _IDF_MIN

    def scores(self, entries: Entries, weight: float) -> Floats:
        """`weight` is the part's idf times how often it was asked for."""
        counts = entries.counts
        saturation = entries.lengths * (_K1 * _B / self.length_mean) + _K1 * (1 - _B)
        scores: Floats = counts * (weight * (_K1 + 1)) / (counts + saturation)
        return scores


@dataclass(frozen=True, slots=True)
class Ranking:
    keys: Keys
    """Rising, each once."""
    scores: Floats
    is_cut: bool = False
    """There is more to be found."""

    @classmethod
    def adding(cls, parts: Sequence[tuple[Keys, Floats]]) -> Ranking:
        """Chunks by the sum of their scores, all of which are above 0."""
        if not parts:
            return cls(np.empty(0, np.int64), np.empty(0))
        keys, (scores,) = _by_key(
            np.concatenate([keys for keys, _ in parts]),
            np.concatenate([scores for _, scores in parts]),
        )
        return cls(keys, scores)

    def of(self, keys: Keys) -> Ranking:
        """Only these chunks; `keys` need not be among them."""
        chosen = np.isin(self.keys, keys)
        return Ranking(self.keys[chosen], self.scores[chosen])

    def best(self, limit: float) -> Ranking:
        """The best, by rising key; of equals, those with the lower keys. No more than `limit`:
        texts made by one template are all equally good."""
        if len(self.keys) <= limit:
            return self
        place = len(self.keys) - int(limit)
        last = np.partition(self.scores, place)[place]
        chosen = self.scores > last
        equal = np.flatnonzero(self.scores == last)
        chosen[equal[: int(limit) - np.count_nonzero(chosen)]] = True
        return Ranking(self.keys[chosen], self.scores[chosen])

    def in_order(self) -> tuple[Keys, Floats]:
        """The best first; of equals, the one with the lower key."""
        order = np.lexsort((self.keys, -self.scores))
        return self.keys[order], self.scores[order]

    def __len__(self) -> int:
        return len(self.keys)
