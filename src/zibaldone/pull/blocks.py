"""Cut a stream of rows into the blocks that were stored, so that what is as it was costs little.

A block is looked for by the key of its first row. If the rows from there on have its digest, it is
confirmed as a whole. If not, its rows are compared one by one, up to the first row of the next
stored block: an insertion or a deletion spoils one block, not all behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from zibaldone.limits import SYNC_BLOCK_BYTES, SYNC_BLOCK_ROWS
from zibaldone.model.pulled import PulledBlock
from zibaldone.pull.values import Row, encoded

_DIGEST_BYTES = 16

Fetch = Callable[[int], Sequence[Row]]
"""The next rows, at least one and about as many as asked for; none at the end."""


@dataclass(frozen=True, slots=True)
class Segment:
    rows: Sequence[Row]
    first_key: str
    digest: bytes
    known: PulledBlock | None
    """The stored block whose keys and watermarks are these."""
    is_confirmed: bool
    """Nothing of it need be looked at."""


class Cutter:
    def __init__(
        self,
        fetch: Fetch,
        stored: Iterable[PulledBlock],
        *,
        key_length: int,
        light: Callable[[Sequence[Row]], Sequence[Row]] | None,
        seed: bytes,
        is_full: bool = False,
        weigh: Callable[[Sequence[Row]], list[int]] | None = None,
        block_rows: int = SYNC_BLOCK_ROWS,
        block_bytes: int = SYNC_BLOCK_BYTES,
    ) -> None:
        """`light`: rows are whole, and this gives their keys and watermarks; both are hashed then.
        `is_full`: what is confirmed must be the same as a whole.

        `weigh`: the sizes of rows in memory, where they may be large. A block ends with the row
        that reaches `block_bytes`.
        """
        self._fetch = fetch
        self._key_length = key_length
        self._light = light
        self._seed = seed
        self._is_full = is_full
        self._block_rows = block_rows
        self._weigh = weigh
        self._block_bytes = block_bytes
        self._weights: list[int] = []
        self._bytes = 0
        """Of the buffer, like the weights."""
        self._buffer: list[Row] = []
        self._is_ended = False
        self._by_first: dict[str, list[PulledBlock]] = {}
        for block in stored:
            self._by_first.setdefault(block.first_key, []).append(block)
        self.confirmed: set[int] = set()
        """Numbers of the stored blocks that are still there."""
        self._forgotten: set[int] = set()

    def next(self) -> Segment | None:
        """The next segment; None: that was all."""
        self._fill(1)
        if not self._buffer:
            return None
        first_key = self._key(self._buffer[0])
        # The newest first: an older one may be left from before a run that was cut short.
        for known in reversed(self._by_first.get(first_key, [])):
            if known.block in self.confirmed or known.block in self._forgotten:
                continue
            self._fill(known.rows)
            rows = self._buffer[: known.rows]
            if len(rows) == known.rows and self._is_alike(known, digest := self.digest(rows)):
                if not self._wants_merging(known):
                    return self._known_segment(known, rows, first_key, digest)
                break
        rows = self._take(self._cut())
        return Segment(rows, first_key, self.digest(rows), None, False)

    def confirm(self, known: PulledBlock) -> None:
        """A stored block whose rows were compared and found to be as they were."""
        self.confirmed.add(known.block)

    def forget(self, blocks: set[int]) -> None:
        """Stored blocks that are no longer: some of their rows belong to others by now."""
        self._forgotten |= blocks

    def digest(self, rows: Sequence[Row]) -> bytes:
        """Hash of keys and watermarks; where rows are whole, the hash of all of them behind it."""
        if self._light is None:
            return self._hash(rows)
        light = self._light(rows)
        return self._hash(light) + (b"" if light is rows else self._hash(rows))

    def _hash(self, rows: Sequence[Row]) -> bytes:
        return hashlib.blake2b(encoded(rows), digest_size=_DIGEST_BYTES, key=self._seed).digest()

    def _is_alike(self, known: PulledBlock, digest: bytes) -> bool:
        return known.digest[:_DIGEST_BYTES] == digest[:_DIGEST_BYTES]

    def _known_segment(
        self, known: PulledBlock, rows: Sequence[Row], first_key: str, digest: bytes
    ) -> Segment:
        self._take(known.rows)
        is_confirmed = known.is_settled and (not self._is_full or known.digest == digest)
        if is_confirmed:
            self.confirmed.add(known.block)
        return Segment(rows, first_key, digest, known, is_confirmed)

    def _wants_merging(self, known: PulledBlock) -> bool:
        """Whether a block is so small that it should be joined with what follows it.

        Otherwise a table that grows would get a block with every sync.
        """
        if 2 * known.rows > self._block_rows:
            return False
        self._fill(known.rows + 1)
        if len(self._buffer) <= known.rows:
            return False  # it is the last
        following = self._by_first.get(self._key(self._buffer[known.rows]), [])
        return known.rows + max((block.rows for block in following), default=0) <= self._block_rows

    def _cut(self) -> int:
        """How many rows the next segment has."""
        half = self._block_rows // 2
        self._fill(2 * self._block_rows if self._by_first else self._block_rows)
        if self._is_heavy:
            return self._light_enough()
        if self._by_first:
            for number in range(half + 1, len(self._buffer)):
                if self._key(self._buffer[number]) in self._by_first:
                    return number
        size = len(self._buffer)
        return size if size <= self._block_rows + half // 2 else self._block_rows

    def _light_enough(self) -> int:
        """The number of rows with which the bound in bytes is reached."""
        total = 0
        for number, weight in enumerate(self._weights, 1):
            total += weight
            if total >= self._block_bytes:
                return number
        return len(self._buffer)

    @property
    def _is_heavy(self) -> bool:
        return self._bytes >= self._block_bytes

    def _take(self, count: int) -> list[Row]:
        rows = self._buffer[:count]
        self._buffer = self._buffer[count:]
        self._bytes -= sum(self._weights[:count])
        self._weights = self._weights[count:]
        return rows

    def _fill(self, count: int) -> None:
        while len(self._buffer) < count and not self._is_ended and not self._is_heavy:
            rows = self._fetch(max(count - len(self._buffer), self._block_rows))
            if not rows:
                self._is_ended = True
            self._buffer.extend(rows)
            if self._weigh is not None:
                weights = self._weigh(rows)
                self._weights += weights
                self._bytes += sum(weights)

    def _key(self, row: Row) -> str:
        return encoded(row[: self._key_length]).decode("utf-8", "replace")
