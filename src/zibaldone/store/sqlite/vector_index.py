"""Vector search in memory: sign bits first, then int8 rescoring of those that can be the best.

Derived state: whatever is here can be read again from the file, so a crash has nothing to tear.
The bits of a dimension block lie together (column by column), so that a scan is a few linear passes
over small integers; at a million chunks that is about ten milliseconds (docs/benchmarks.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from zibaldone.model.vector import Vectors, np

if TYPE_CHECKING:
    import numpy.typing as npt

_SCAN_ROWS = 32_768
"""Rows scanned at once: the block and its counts stay in the processor's cache."""

RESCORED_MIN = 1_000
"""Chunks whose int8 vectors are looked at first; bits alone rank too coarsely. On sentences of
real text they hold .99 of the ten nearest of a hundred thousand, .97 of a million."""

_RESCORED_GROWTH = 3
_RESCORED_MAX = 81_000
_SETTLED_MIN = 10
"""As long as looking at three times as many changes the best ten, or the first quarter of what is
asked for, so many are looked at, up to this: ten milliseconds. Chunks that are alike need one
such step; a filter may leave some that are not, and then all of them are looked at."""

_RESCORE_ROWS = 256
"""Rows multiplied at once: with more, the linear algebra library wakes its threads, and waiting for
them on a busy machine takes ten times as long as the work."""

EXACT_ROWS_MAX = 16_384
"""Up to this many, every vector is compared: two milliseconds, and nothing is missed."""

_SPARSE = 4
"""Where less than one row in so many is allowed, those are gathered; else all are scanned."""

_NO_GROUP = -1
_ROWS_MIN = 1_024
_VALUE_MAX = 127.0
_SCALE_BYTES = 4
_BYTES_PER_WORD = 8
_BYTES_PER_KEY = 64
"""Two integers as Python holds them."""


def pack(vector: Vectors) -> bytes:
    """A unit vector as int8 with its scale before it: barely less exact, a quarter the size.

    The scale makes what is stored a unit vector again, so that no cosine is above 1.
    """
    peak = float(np.abs(vector).max()) or 1.0
    values: npt.NDArray[np.int8] = np.rint(vector * (_VALUE_MAX / peak)).astype(np.int8)
    length = float(np.linalg.norm(values.astype(np.float32))) or 1.0
    return bytes(np.float32(1.0 / length).tobytes() + values.tobytes())


def unpack(packed: bytes) -> Vectors:
    """What was packed, as far as it was kept."""
    scale = np.frombuffer(packed, np.float32, 1)
    values = np.frombuffer(packed, np.int8, offset=_SCALE_BYTES)
    vector: Vectors = values.astype(np.float32) * scale
    return vector


class StoredVector(NamedTuple):
    chunk_key: int
    document_key: int
    namespace: str
    source_id: int
    packed: bytes


class VectorIndex:
    """The vectors of one model. Rows of chunks that are gone are reused."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._words = -(-dimensions // (8 * _BYTES_PER_WORD))
        self._row_by_chunk: dict[int, int] = {}
        self._free: list[int] = []
        self._used = 0
        self._groups: dict[tuple[str, int], int] = {}
        """A number for each namespace and source: what one may see is a set of these."""
        self._owners: list[str] = []
        """The namespace of each group."""
        self._allocate(_ROWS_MIN)

    def _allocate(self, rows: int) -> None:
        self._bits: npt.NDArray[np.uint64] = np.zeros((self._words, rows), np.uint64)
        self._values: npt.NDArray[np.int8] = np.zeros((rows, self.dimensions), np.int8)
        self._scales: Vectors = np.zeros(rows, np.float32)
        self._chunks: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._documents: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._group: npt.NDArray[np.int32] = np.full(rows, _NO_GROUP, np.int32)

    def _by_row(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self._values,
            self._scales,
            self._chunks,
            self._documents,
            self._group,
        )

    def __len__(self) -> int:
        return len(self._row_by_chunk)

    @property
    def size_bytes(self) -> int:
        arrays = sum(array.nbytes for array in (self._bits, *self._by_row()))
        return arrays + sys.getsizeof(self._row_by_chunk) + _BYTES_PER_KEY * len(self)

    def put(self, stored: Sequence[StoredVector]) -> None:
        """Add or replace vectors; those of another dimension are not ours and are left out."""
        expected_bytes = _SCALE_BYTES + self.dimensions
        fitting = [vector for vector in stored if len(vector.packed) == expected_bytes]
        if not fitting:
            return
        self._reserve(self._used + len(fitting))
        chunks, documents, namespaces, sources, packed = zip(*fitting, strict=True)
        rows = np.array([self._row_for(chunk_key) for chunk_key in chunks])
        raw = np.frombuffer(b"".join(packed), np.uint8).reshape(len(fitting), expected_bytes)
        values = raw[:, _SCALE_BYTES:].view(np.int8)
        scales = np.ascontiguousarray(raw[:, :_SCALE_BYTES]).view(np.float32)
        self._scales[rows] = scales[:, 0]
        self._values[rows] = values
        self._bits[:, rows] = self._sign_words(values).T
        self._chunks[rows] = chunks
        self._documents[rows] = documents
        self._group[rows] = [
            self._group_of(*place) for place in zip(namespaces, sources, strict=True)
        ]

    def remove(self, chunk_keys: Iterable[int]) -> None:
        for chunk_key in chunk_keys:
            row = self._row_by_chunk.pop(chunk_key, None)
            if row is not None:
                self._group[row] = _NO_GROUP
                self._free.append(row)

    def _row_for(self, chunk_key: int) -> int:
        row = self._row_by_chunk.get(chunk_key)
        if row is None:
            if self._free:
                row = self._free.pop()
            else:
                row = self._used
                self._used += 1
            self._row_by_chunk[chunk_key] = row
        return row

    def _group_of(self, namespace: str, source_id: int) -> int:
        place = namespace, source_id
        if place not in self._groups:
            self._groups[place] = len(self._owners)
            self._owners.append(namespace)
        return self._groups[place]

    def _reserve(self, rows: int) -> None:
        had = len(self._scales)
        if rows <= had:
            return
        bits, others = self._bits, self._by_row()
        self._allocate(max(rows, had + had // 2))
        self._bits[:, :had] = bits
        for array, before in zip(self._by_row(), others, strict=True):
            array[:had] = before

    def _sign_words(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        packed = np.packbits(values > 0, axis=-1)
        padding = self._words * _BYTES_PER_WORD - packed.shape[-1]
        if padding:
            packed = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, padding)])
        return np.ascontiguousarray(packed).view(np.uint64)

    def search(
        self,
        vector: Vectors,
        k: int,
        *,
        namespace: str,
        sources: Sequence[int],
        documents: npt.NDArray[np.int64] | None,
        without: npt.NDArray[np.int64] | None = None,
    ) -> list[tuple[int, float]]:
        """The k nearest chunks that are allowed, with their cosine; best first, ties by key."""
        groups = [
            self._groups[group]
            for source in sources
            if (group := (namespace, source)) in self._groups
        ]
        if not groups:
            return []
        allowed = self._are_in(groups)
        if documents is not None:
            allowed &= self._are_of(documents)
        if without is not None:
            allowed &= ~self._are_of(without)
        rows = np.flatnonzero(allowed)
        signs = self._sign_words(vector[np.newaxis])[0]
        if len(rows) <= EXACT_ROWS_MAX:
            rows, scores = self._best(vector, rows, k)
        elif len(rows) * _SPARSE < self._used:
            distances = _hamming(self._bits[:, rows], signs)
            rows, scores = self._nearest(vector, distances, rows, k)
        else:
            distances = _hamming(self._bits[:, : self._used], signs)
            distances[~allowed] = self.dimensions + 1
            rows, scores = self._nearest(vector, distances, None, k)
        nearest = zip(self._chunks[rows].tolist(), scores.tolist(), strict=True)
        return [(key, min(score, 1.0)) for key, score in nearest]

    def scores(
        self, vector: Vectors, chunk_keys: Iterable[int], *, namespace: str
    ) -> dict[int, float]:
        """The cosine of each of these chunks that is in the namespace and has a vector."""
        held = (self._row_by_chunk.get(key) for key in chunk_keys)
        rows = np.array([row for row in held if row is not None], np.int64)
        owners = [self._owners[group] for group in self._group[rows].tolist()]
        rows = rows[[owner == namespace for owner in owners]]
        cosines = np.minimum(self._cosines(rows, vector), 1.0)
        return dict(zip(self._chunks[rows].tolist(), cosines.tolist(), strict=True))

    def _are_in(self, groups: Sequence[int]) -> npt.NDArray[np.bool_]:
        of_row = self._group[: self._used]
        allowed: npt.NDArray[np.bool_] = of_row == groups[0]
        for group in groups[1:]:
            allowed |= of_row == group
        return allowed

    def _are_of(self, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        of_row = self._documents[: self._used]
        table = np.zeros(int(max(of_row.max(initial=0), documents.max(initial=0))) + 1, np.bool_)
        table[documents] = True
        return table[of_row]

    def _nearest(
        self,
        vector: Vectors,
        distances: npt.NDArray[np.uint16],
        rows: npt.NDArray[np.int64] | None,
        k: int,
    ) -> tuple[npt.NDArray[np.int64], Vectors]:
        """The k best by their values, of ever more by their bits, until the first stay the same.

        `distances` are those of `rows`, or of all.
        """
        within = np.cumsum(np.bincount(distances, minlength=self.dimensions + 1))
        best, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        count, seen, settled = max(RESCORED_MIN, k * 4), -1, max(_SETTLED_MIN, k // 4)
        while True:
            reach = min(int(np.searchsorted(within, count)), self.dimensions)
            places = np.flatnonzero((distances > seen) & (distances <= reach))
            fresh = places if rows is None else rows[places]
            before = best
            best, scores = self._best(vector, np.concatenate((best, fresh)), k)
            is_settled = np.isin(best[:settled], before).all()
            if is_settled or count >= _RESCORED_MAX or reach == self.dimensions:
                return best, scores
            count, seen = count * _RESCORED_GROWTH, reach

    def _best(
        self, vector: Vectors, rows: npt.NDArray[np.int64], k: int
    ) -> tuple[npt.NDArray[np.int64], Vectors]:
        """The k best of these by their cosine; ties by key."""
        scores = self._cosines(rows, vector)
        if len(rows) > k:  # sorting them all would take longer than their cosines
            least = np.partition(scores, -k)[-k]
            can_be = np.flatnonzero(scores >= least)
            rows, scores = rows[can_be], scores[can_be]
        order = np.lexsort((self._chunks[rows], -scores))[:k]
        return rows[order], scores[order]

    def _cosines(self, rows: npt.NDArray[np.int64], vector: Vectors) -> Vectors:
        cosines = np.empty(len(rows), np.float32)
        block = np.empty((_RESCORE_ROWS, self.dimensions), np.float32)
        for start in range(0, len(rows), _RESCORE_ROWS):
            some = rows[start : start + _RESCORE_ROWS]
            block[: len(some)] = self._values[some]
            np.matmul(block[: len(some)], vector, out=cosines[start : start + len(some)])
        cosines *= self._scales[rows]
        return cosines


def _hamming(bits: npt.NDArray[np.uint64], query: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    words, rows = bits.shape
    distances = np.empty(rows, np.uint16)
    for start in range(0, rows, _SCAN_ROWS):
        block = bits[:, start : start + _SCAN_ROWS]
        total = np.bitwise_count(block[0] ^ query[0]).astype(np.uint16)
        for word in range(1, words):
            total += np.bitwise_count(block[word] ^ query[word])
        distances[start : start + _SCAN_ROWS] = total
    return distances
