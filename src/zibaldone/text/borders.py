"""Which of the many places where a chunk may begin are taken.

Each border has a weight: its kind, then a hash of the text that follows. A border is taken when no
heavier one is near. So it depends on the text around it and not on where earlier ones fell, and an
edit changes only the chunks beside it; packing from the start would shift all that follow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum
from zlib import crc32

from zibaldone.limits import CHUNK_CHARS_MAX, CHUNK_CHARS_MIN, CHUNK_CHARS_TARGET

_REACH_CHARS = CHUNK_CHARS_TARGET * 4 // 9
"""How far a heavier border rules out others: chunks come out at about twice this."""

_FULL_CHARS = (CHUNK_CHARS_TARGET + CHUNK_CHARS_MAX) // 2
"""A chunk of several pieces is not made longer than this; a single piece may be."""

_HASHED_CHARS = 64
_HASH_BITS = 32


class Border(IntEnum):
    """What a border parts; the higher, the better a place to cut."""

    HEADING_AND_TEXT = 0
    CHARACTERS = 1
    WORDS = 2
    LINES = 3
    SENTENCES = 4
    ITEMS = 5
    COLON_AND_BLOCK = 6
    PARAGRAPHS = 7
    SECTIONS = 8
    """Of level 6; each higher level adds one."""


class Pieces:
    """A body in its finest pieces, each with the border before it."""

    def __init__(self, body: str) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._weights: list[int] = []
        self._body = body

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, start: int, end: int, kind: int) -> None:
        # The first characters only: an edit further on leaves the weight as it was.
        following = self._body[start : min(start + _HASHED_CHARS, end)]
        digest = crc32(following.encode("utf-8", "surrogatepass"))
        self._weights.append(kind << _HASH_BITS | digest)
        self.starts.append(start)
        self.ends.append(end)

    def chunks(self) -> list[tuple[int, int]]:
        """The first and last piece of each chunk."""
        firsts = self._with_tails(self._firsts())
        return self._stretches(firsts)

    def _stretches(self, firsts: list[int]) -> list[tuple[int, int]]:
        following = [*firsts[1:], len(self)]
        return [(first, after - 1) for first, after in zip(firsts, following, strict=True)]

    def _firsts(self) -> list[int]:
        openers = [piece for piece in range(len(self)) if self._opens_section(piece)]
        firsts: list[int] = []
        small: list[int] = []  # openers of small sections in a row
        for first, last in self._stretches(openers):
            cuts = self._cuts(range(first + 1, last + 1), first, last, _FULL_CHARS)
            if not cuts and self._chars(first, last) <= CHUNK_CHARS_TARGET:
                small.append(first)
                continue
            firsts += self._put_together(small, first - 1)
            firsts += (first, *cuts)
            small = []
        return firsts + self._put_together(small, len(self) - 1)

    def _put_together(self, openers: list[int], last: int) -> list[int]:
        """Small sections in a row as few chunks, each of whole sections."""
        if not openers:
            return []
        return [openers[0], *self._cuts(openers[1:], openers[0], last, CHUNK_CHARS_TARGET)]

    def _cuts(self, borders: Sequence[int], first: int, last: int, full_chars: int) -> list[int]:
        """Which borders to take in a stretch of pieces. A border is named by the piece after it."""
        lowest = self.starts[first] + _REACH_CHARS
        highest = self.ends[last] - _REACH_CHARS
        inner = [
            piece
            for piece in borders
            if lowest <= self.starts[piece] <= highest and self._weights[piece] >> _HASH_BITS
        ]
        cuts: list[int] = []
        for peak in self._peaks(inner):
            cuts += self._cuts_in_gap(borders, first, peak - 1, full_chars)
            cuts.append(peak)
            first = peak
        return cuts + self._cuts_in_gap(borders, first, last, full_chars)

    def _peaks(self, borders: list[int]) -> list[int]:
        """The borders that have no heavier one within reach on either side."""
        starts, weights = self.starts, self._weights
        ruled_out: set[int] = set()
        for direction in (borders, borders[::-1]):
            heavier: list[int] = []
            for piece in direction:
                while heavier and weights[heavier[-1]] < weights[piece]:
                    heavier.pop()
                if heavier and abs(starts[piece] - starts[heavier[-1]]) <= _REACH_CHARS:
                    ruled_out.add(piece)
                heavier.append(piece)
        return [piece for piece in borders if piece not in ruled_out]

    def _cuts_in_gap(
        self, borders: Sequence[int], first: int, last: int, full_chars: int
    ) -> list[int]:
        """Further cuts where two peaks are far from each other."""
        cuts: list[int] = []
        while self._chars(first, last) > full_chars:
            best, best_worth = -1, (False, -1)
            for nth in range(bisect_right(borders, first), len(borders)):
                piece = borders[nth]
                chars = self._chars(first, piece - 1)
                if piece > last or (chars > full_chars and best >= 0):
                    break
                fair = chars >= CHUNK_CHARS_MIN and self._chars(piece, last) >= CHUNK_CHARS_MIN
                worth = (fair, self._weights[piece])
                if worth >= best_worth:
                    best, best_worth = piece, worth
            if best < 0:
                break
            cuts.append(best)
            first = best
        return cuts

    def _with_tails(self, firsts: list[int]) -> list[int]:
        """A chunk that is too short joins the one before it, or after it, in its section."""
        kept: list[int] = []
        waiting = False  # the chunk kept last is short, and had none before it to join
        for first, last in self._stretches(firsts):
            short = self._chars(first, last) < CHUNK_CHARS_MIN
            alone = not kept or self._opens_section(first)
            if (short or waiting) and not alone and self._chars(kept[-1], last) <= CHUNK_CHARS_MAX:
                waiting = False
            else:
                kept.append(first)
                waiting = short
        return kept

    def _opens_section(self, piece: int) -> bool:
        return piece == 0 or self._weights[piece] >> _HASH_BITS >= Border.SECTIONS

    def _chars(self, first: int, last: int) -> int:
        return self.ends[last] - self.starts[first]
