"""The difference between two bodies, as a unified diff.

The lines that stay are a longest common subsequence, found by one addition and a few logical
operations on integers of one bit a line for each line of the other side (Hyyrö, "Bit-parallel LCS-
length computation revisited", 2004). So the time is bounded by the number of lines alone: some
tenths of a second for the most that are compared, whatever is in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt

from zibaldone.errors import LimitExceeded
from zibaldone.limits import DIFF_CHARS_MAX, DIFF_LINES_MAX

_CONTEXT_LINES = 3
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` ends a line."""


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    text: str
    truncated: bool
    """There are more changes than are shown."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines `before[start:end]` are replaced by `after[new_start:new_end]`."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified_diff(before: str, after: str, before_name: str, after_name: str) -> UnifiedDiff:
    longest = max(_line_count(before), _line_count(after))
    if longest > DIFF_LINES_MAX:
        raise LimitExceeded(
            f"A side has {longest} lines; differences are shown up to {DIFF_LINES_MAX}. "
            "Read both revisions instead.",
            lines_max=DIFF_LINES_MAX,
        )
    old, new = before.splitlines(), after.splitlines()
    lines: list[str] = []
    left_chars = DIFF_CHARS_MAX
    for line in _hunk_lines(old, new, changed_blocks(old, new)):
        left_chars -= len(line) + 1
        if left_chars < 0:
            return UnifiedDiff(_joined(before_name, after_name, lines), truncated=True)
        lines.append(line)
    return UnifiedDiff(_joined(before_name, after_name, lines) if lines else "", truncated=False)


def _joined(before_name: str, after_name: str, lines: Sequence[str]) -> str:
    return "\n".join((f"--- {before_name}", f"+++ {after_name}", *lines))


def _line_count(text: str) -> int:
    """As many as `splitlines` gives, or one more, without making them."""
    ends = _LINE_ENDS if not text.isascii() else _LINE_ENDS[:7]
    return sum(map(text.count, ends)) - text.count("\r\n") + 1


def changed_blocks(old: Sequence[str], new: Sequence[str]) -> list[_Block]:
    """What is between the lines that stay, in order."""
    blocks: list[_Block] = []
    at = new_at = 0
    for line, new_line in (*_kept_pairs(old, new), (len(old), len(new))):
        if line > at or new_line > new_at:
            blocks.append(_Block(at, line, new_at, new_line))
        at, new_at = line + 1, new_line + 1
    return blocks


def _kept_pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Numbers of the lines that are on both sides, in order."""
    shortest = min(len(old), len(new))
    head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    room = shortest - head
    tail = next((n for n in range(room) if old[-1 - n] != new[-1 - n]), room)
    # Lines that only one side has cannot stay; without them the rest is often short.
    common = set(old[head : len(old) - tail]) & set(new[head : len(new) - tail])
    kept_old = [n for n in range(head, len(old) - tail) if old[n] in common]
    kept_new = [n for n in range(head, len(new) - tail) if new[n] in common]
    middle = _common_subsequence([old[n] for n in kept_old], [new[n] for n in kept_new])
    return [
        *((n, n) for n in range(head)),
        *((kept_old[n], kept_new[m]) for n, m in middle),
        *((len(old) - n, len(new) - n) for n in range(tail, 0, -1)),
    ]


def _common_subsequence(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Places in both of a longest common subsequence.

    After each line of the second side, a row has a bit for each line of the first: 0 where one more
    line is common than up to the line before. The way back needs all rows; only every so many are
    kept, and those between are made a second time.
    """
    places: dict[str, int] = {}
    for number, line in enumerate(first):
        places[line] = places.get(line, 0) | 1 << number
    mask = (1 << len(first)) - 1

    def rows_after(row: int, start: int, end: int) -> Iterator[int]:
        for line in second[start:end]:
            both = row & places.get(line, 0)
            row = ((row + both) | (row - both)) & mask
            yield row

    step = isqrt(len(second)) + 1
    marks = [mask]
    for start in range(0, len(second), step):
        *_, last = rows_after(marks[-1], start, start + step)
        marks.append(last)
    pairs: list[tuple[int, int]] = []
    left = len(first)
    for block in range(len(marks) - 2, -1, -1):
        start = block * step
        rows = [marks[block], *rows_after(marks[block], start, start + step)]
        number = len(rows) - 1
        while left and number:
            bit = 1 << (left - 1)
            if rows[number] & bit:
                left -= 1
            elif rows[number - 1] & bit:
                number -= 1
                left -= 1
                pairs.append((left, start + number))
            else:
                number -= 1
    return pairs[::-1]


def _hunk_lines(old: Sequence[str], new: Sequence[str], blocks: Sequence[_Block]) -> Iterator[str]:
    """Changes with their context, those close together in one hunk."""
    for hunk in _hunks(blocks):
        start = max(hunk[0].start - _CONTEXT_LINES, 0)
        new_start = hunk[0].new_start - (hunk[0].start - start)
        end = min(hunk[-1].end + _CONTEXT_LINES, len(old))
        new_end = hunk[-1].new_end + (end - hunk[-1].end)
        yield f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@"
        at = start
        for block in hunk:
            yield from (f" {line}" for line in old[at : block.start])
            yield from (f"-{line}" for line in old[block.start : block.end])
            yield from (f"+{line}" for line in new[block.new_start : block.new_end])
            at = block.end
        yield from (f" {line}" for line in old[at:end])


def _hunks(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    hunk: list[_Block] = []
    for block in blocks:
        if hunk and block.start - hunk[-1].end > 2 * _CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(block)
    if hunk:
        yield hunk


def _range(start: int, end: int) -> str:
    """Lines from 1; of none, the line before."""
    match end - start:
        case 0:
            return f"{start},0"
        case 1:
            return f"{start + 1}"
        case length:
            return f"{start + 1},{length}"
