"""Exact vector search in memory: sign bits first, then int8 rescoring of the best few hundred.

Derived state: whatever is here can be read again from the file, so a crash has nothing to tear.
The bits of a dimension block lie together (column by column), so that a scan is a few linear passes
over small integers; at a million passages that is about ten milliseconds (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_SCAN_ROWS = 16_384
"""Rows scanned at once: the block and its counts stay in the processor's cache."""

RESCORED_MIN = 400
"""Passages whose int8 vectors are looked at; bits alone rank too coarsely."""

_ROWS_MIN = 1_024
_SCALE = 127.0
_BYTES_PER_WORD = 8

Floats = npt.NDArray[np.float32]


def pack(vector: Floats) -> bytes:
    """A unit vector as int8 with its scale before it: barely less exact, a quarter the size."""
    peak = float(np.abs(vector).max()) or 1.0
    scale = np.float32(peak / _SCALE)
    values: npt.NDArray[np.int8] = np.rint(vector / scale).astype(np.int8)
    return bytes(scale.tobytes() + values.tobytes())


@dataclass(frozen=True, slots=True)
class StoredVector:
    chunk_key: int
    document_key: int
    namespace: str
    source_id: int
    packed: bytes


class VectorIndex:
    """The vectors of one model. Rows of passages that are gone are reused."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.seen_change = 0
        """The newest change of the file that is reflected here."""
        self._words = -(-dimensions // (8 * _BYTES_PER_WORD))
        self._row_by_chunk: dict[int, int] = {}
        self._free: list[int] = []
        self._used = 0
        self._namespaces: dict[str, int] = {}
        self._allocate(_ROWS_MIN)

    def _allocate(self, rows: int) -> None:
        self._bits: npt.NDArray[np.uint64] = np.zeros((self._words, rows), np.uint64)
        self._values: npt.NDArray[np.int8] = np.zeros((rows, self.dimensions), np.int8)
        self._scales: Floats = np.zeros(rows, np.float32)
        self._chunks: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._documents: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._namespace: npt.NDArray[np.int32] = np.full(rows, -1, np.int32)
        self._sources: npt.NDArray[np.int64] = np.zeros(rows, np.int64)

    def __len__(self) -> int:
        return len(self._row_by_chunk)

    @property
    def size_bytes(self) -> int:
        arrays = (self._bits, self._values, self._scales, self._chunks, self._documents)
        return sum(array.nbytes for array in arrays) + self._namespace.nbytes + self._sources.nbytes

    def put(self, stored: Sequence[StoredVector]) -> None:
        """Add or replace vectors; those of another dimension are not ours and are left out."""
        expected_bytes = 4 + self.dimensions
        fitting = [one for one in stored if len(one.packed) == expected_bytes]
        if not fitting:
            return
        rows = np.array([self._row_for(one.chunk_key) for one in fitting])
        raw = np.frombuffer(b"".join(one.packed for one in fitting), np.uint8)
        raw = raw.reshape(len(fitting), expected_bytes)
        values = raw[:, 4:].view(np.int8)
        self._scales[rows] = np.ascontiguousarray(raw[:, :4]).view(np.float32)[:, 0]
        self._values[rows] = values
        self._bits[:, rows] = self._sign_words(values).T
        self._chunks[rows] = [one.chunk_key for one in fitting]
        self._documents[rows] = [one.document_key for one in fitting]
        self._sources[rows] = [one.source_id for one in fitting]
        self._namespace[rows] = [
            self._namespaces.setdefault(one.namespace, len(self._namespaces)) for one in fitting
        ]

    def remove(self, chunk_keys: Iterable[int]) -> None:
        for chunk_key in chunk_keys:
            row = self._row_by_chunk.pop(chunk_key, None)
            if row is not None:
                self._namespace[row] = -1
                self._free.append(row)

    def _row_for(self, chunk_key: int) -> int:
        row = self._row_by_chunk.get(chunk_key)
        if row is None:
            row = self._free.pop() if self._free else self._used
            if row == self._used:
                self._used += 1
                if self._used > len(self._scales):
                    self._grow()
            self._row_by_chunk[chunk_key] = row
        return row

    def _grow(self) -> None:
        old = (
            self._bits,
            self._values,
            self._scales,
            self._chunks,
            self._documents,
            self._namespace,
            self._sources,
        )
        rows = len(self._scales)
        self._allocate(rows + rows // 2)
        self._bits[:, :rows] = old[0]
        for array, before in zip(
            (
                self._values,
                self._scales,
                self._chunks,
                self._documents,
                self._namespace,
                self._sources,
            ),
            old[1:],
            strict=True,
        ):
            array[:rows] = before  # type: ignore[index]

    def _sign_words(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        packed = np.packbits(values > 0, axis=-1)
        padding = self._words * _BYTES_PER_WORD - packed.shape[-1]
        if padding:
            packed = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, padding)])
        return np.ascontiguousarray(packed).view(np.uint64)

    def search(
        self,
        vector: Floats,
        k: int,
        *,
        namespace: str,
        sources: Sequence[int],
        documents: npt.NDArray[np.int64] | None,
    ) -> list[tuple[int, float]]:
        """The k nearest passages that are allowed, with their cosine; best first, ties by key."""
        wanted = self._namespaces.get(namespace)
        if wanted is None or not self._used:
            return []
        allowed = self._namespace[: self._used] == wanted
        allowed &= np.isin(self._sources[: self._used], sources)
        if documents is not None:
            allowed &= self._are_of(documents)
        rows = self._nearest_by_bits(vector, allowed, max(k * 4, RESCORED_MIN))
        scores = self._cosines(rows, vector)
        order = np.lexsort((self._chunks[rows], -scores))[:k]
        return [(int(self._chunks[rows[at]]), float(scores[at])) for at in order]

    def scores(self, vector: Floats, chunk_keys: Iterable[int]) -> dict[int, float]:
        """The cosine of each of these passages that has a vector."""
        known = [key for key in chunk_keys if key in self._row_by_chunk]
        if not known:
            return {}
        rows = np.array([self._row_by_chunk[key] for key in known])
        return dict(zip(known, self._cosines(rows, vector).tolist(), strict=True))

    def _are_of(self, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        of_row = self._documents[: self._used]
        table = np.zeros(int(max(of_row.max(initial=0), documents.max(initial=0))) + 1, np.bool_)
        table[documents] = True
        return table[of_row]

    def _nearest_by_bits(
        self, vector: Floats, allowed: npt.NDArray[np.bool_], count: int
    ) -> npt.NDArray[np.int64]:
        rows = np.flatnonzero(allowed)
        if len(rows) <= count:
            return rows
        everything = len(rows) == self._used
        bits = self._bits[:, : self._used] if everything else self._bits[:, rows]
        distances = _hamming(bits, self._sign_words(vector[np.newaxis, :])[0])
        within = np.cumsum(np.bincount(distances, minlength=self.dimensions + 1))
        farthest = np.searchsorted(within, count)
        near = np.flatnonzero(distances <= farthest)
        return near if everything else rows[near]

    def _cosines(self, rows: npt.NDArray[np.int64], vector: Floats) -> Floats:
        exact: Floats = self._values[rows].astype(np.float32) @ vector
        exact *= self._scales[rows]
        return exact


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
