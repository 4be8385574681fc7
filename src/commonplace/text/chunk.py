"""Cut a document into passages that are found, shown and embedded on their own.

A body is first cut at every place where a passage could begin (headings, blank lines, and inside
what is too long lines, sentences, words). Then neighbours are joined again, the closest kin first:
words of a sentence, lines of a list, paragraphs of a section, small sections. Among equals the
order is a hash of the text that follows, not the position, so what is joined depends on the text
nearby and an edit changes the passages around it only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from zlib import crc32

from commonplace.limits import (
    CHUNK_CHARS_MAX,
    CHUNK_CHARS_MIN,
    CHUNK_CHARS_TARGET,
    HEADING_CHARS_MAX,
    HEADINGS_MAX,
    MIB,
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: `body[start:end] == text`; `heading` is the trail of headings above it."""

    index: int
    start: int
    end: int
    heading: str
    text: str


class _Kin(IntEnum):
    """How close two neighbouring pieces are: the lower, the sooner they are joined."""

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


_HEADING_LEVELS = 6
_INDENT_CHARS_MAX = 64
_HASHED_CHARS = 64
_CLUSTER_CHARS_MAX = 32
_ZERO_WIDTH_JOINER = "\u200d"

_BLANK_LINES = re.compile(r"\n(?:[ \t\r\f\v]*+\n)++")
_CODE_LINE = re.compile(r"\n(?:[ \t\r\f\v]*+\n)*+")
# Closing quotes and brackets stay with their sentence; Chinese and Japanese need no space after.
_SENTENCE_OR_LINE = re.compile(
    "[.!?\u2026][\"'\u2019\u201d\u00bb)\\]*_`]*+\\s++"
    "|[\u3002\uff01\uff1f\uff1b\uff61][\"'\u2019\u201d\u00bb\u300d\u300f\uff09\\]]*+\\s*+"
    "|\n\\s*+"
)
_WORD = re.compile("\\s++|(?<=[,;\uff0c\u3001])")
_ITEM = re.compile(r"[-*+|>]|\d{1,9}[.)]")
_CLOSER = re.compile(r"[)\]}`~]|end\b")
_STRUCTURE = re.compile(
    r"^(?:(?P<atx>[ ]{0,3}(?P<level>\#{1,6})(?=[ \t\r\n]|\Z))"
    r"|(?P<fence>[ \t]{0,12}(?P<ticks>`{3,}+(?=[^`\n]*$)|~{3,}+))"
    r"|(?P<setext>[ ]{0,3}(?:=++|-{2,}+)[ \t\r]*+$))",
    re.MULTILINE,
)
_FRONT_MATTER = re.compile(r"---[ \t\r]*\n(?s:.*?)^---[ \t\r]*$", re.MULTILINE)
_NO_TITLE = re.compile(r"\s*(?:[-*+>|#]|\d+[.)])")
_CODE_KINDS = frozenset(("text/css", "text/csv", "text/javascript", "text/tab-separated-values"))


def chunk_document(body: str, mime: str = "text/markdown") -> list[Chunk]:
    """Passages in order; together they hold every character but white space between them."""
    pieces = _Pieces(body)
    kind = mime.partition(";")[0].strip().lower()
    if kind in ("text/markdown", "text/x-markdown"):
        _cut_markdown(pieces)
    elif kind.startswith(("text/x-", "application/")) or kind in _CODE_KINDS:
        pieces.add_code(0, len(body))
    else:
        pieces.add_paragraphs(0, len(body))
    return pieces.joined()


def chunk_by_size(body: str, size: int, overlap: int, minimum: int) -> list[Chunk]:
    """Windows of `size` characters, each beginning with the last `overlap` of the one before.

    A last window shorter than `minimum` goes to its predecessor, which then ends with the body.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    if not 0 <= overlap < size:
        raise ValueError(f"overlap must be at least 0 and below size {size}, not {overlap}")
    if not 0 <= minimum <= size:
        raise ValueError(f"minimum must be between 0 and size {size}, not {minimum}")
    if not body.strip():
        return []
    starts = list(range(0, max(len(body) - overlap, 1), size - overlap))
    if len(starts) > 1 and len(body) - starts[-1] < minimum:
        starts.pop()
    ends = [start + size for start in starts[:-1]] + [len(body)]
    return [
        Chunk(index, start, end, "", body[start:end])
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def _cut_markdown(pieces: _Pieces) -> None:
    """Sections by headings; fenced code apart; paragraphs, lists and tables between blank lines."""
    body = pieces.body
    done = at = 0
    if front := _FRONT_MATTER.match(body):
        pieces.add_block(0, front.end())
        done = at = front.end()
    for _ in range(HEADINGS_MAX):
        mark = _STRUCTURE.search(body, at)
        if mark is None:
            break
        start, end = mark.start(), _line_end(body, mark.end())
        if mark["ticks"]:
            end = _fence_end(body, end, mark["ticks"])
            pieces.add_paragraphs(done, start)
            pieces.add_block(start, end)
        elif mark["level"]:
            title = body[mark.end() : end].strip().rstrip("#").rstrip()
            pieces.add_paragraphs(done, start)
            pieces.add_heading(start, end, len(mark["level"]), title)
        elif (line := _title_before(body, done, start)) is not None:
            title = body[line:start].strip()
            pieces.add_paragraphs(done, line)
            pieces.add_heading(line, end, 1 if "=" in mark[0] else 2, title)
        else:
            at = end  # a rule between paragraphs
            continue
        done = at = end
    pieces.add_paragraphs(done, len(body))


def _line_end(body: str, at: int) -> int:
    end = body.find("\n", at)
    return len(body) if end < 0 else end


def _fence_end(body: str, at: int, ticks: str) -> int:
    """The end of the closing fence; a fence that is never closed goes on to the end."""
    closing = re.compile(rf"^[ \t]*+{ticks[0]}{{{len(ticks)},}}+[ \t\r]*+$", re.MULTILINE)
    close = closing.search(body, at)
    return close.end() if close else len(body)


def _title_before(body: str, floor: int, underline: int) -> int | None:
    """Where the line above an underline begins, if that line alone can be a heading."""
    line = body.rfind("\n", floor, max(floor, underline - 1)) + 1 or floor
    title = body[line:underline]
    if not title.strip() or len(title) > HEADING_CHARS_MAX * 2 or _NO_TITLE.match(title):
        return None
    above = body[body.rfind("\n", floor, max(floor, line - 1)) + 1 or floor : line]
    return None if above.strip() else line


class _Pieces:
    """The finest pieces of a body, and how close each is to the one before it."""

    def __init__(self, body: str) -> None:
        self.body = body
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._kin: list[int] = []
        self._section_of: list[int] = []
        self._trails: list[tuple[str, ...]] = [()]
        self._headings: list[tuple[int, str]] = []
        self._after_heading = False
        # No need for finer pieces than this; in a huge body it bounds their number.
        self._grain = 8 if len(body) <= MIB else 32

    def add_heading(self, start: int, end: int, level: int, title: str) -> None:
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title[:HEADING_CHARS_MAX]))
        trail = tuple(title for _, title in self._headings if title)
        if self._after_heading and len(trail) > len(self._trails[-1]):
            self._trails[-1] = trail  # a heading over a heading has no text of its own
        else:
            self._trails.append(trail)
        self._add(start, end, _Kin.SECTIONS + _HEADING_LEVELS - level)
        self._after_heading = True

    def add_paragraphs(self, start: int, end: int) -> None:
        while start < end:
            gap = _BLANK_LINES.search(self.body, start + self._grain, end)
            self._add_whole(start, gap.start() if gap else end, _PROSE)
            start = gap.end() if gap else end

    def add_block(self, start: int, end: int) -> None:
        """Code between fences: in one piece if that is possible."""
        self._add_whole(start, end, _CODE)

    def add_code(self, start: int, end: int) -> None:
        self._add_parts(start, end, _Kin.PARAGRAPHS, _CODE)

    def _add_whole(self, start: int, end: int, cutters: Sequence[_Cutter]) -> None:
        start, end = _trimmed(self.body, start, end)
        if start == end:
            return
        after_colon = bool(self._ends) and self.body[self._ends[-1] - 1] == ":"
        kin = _Kin.COLON_AND_BLOCK if after_colon else _Kin.PARAGRAPHS
        if end - start <= CHUNK_CHARS_MAX:
            self._add(start, end, kin)
        else:
            self._add_parts(start, end, kin, cutters)

    def _add_parts(self, start: int, end: int, kin: int, cutters: Sequence[_Cutter]) -> None:
        """Cut by the first cutter, and what is still too long by the next."""
        pattern, judge = cutters[0]
        while start < end:
            cut = pattern.search(self.body, start + self._grain, end)
            following, next_kin = judge(self.body, cut) if cut else (end, 0)
            first, last = _trimmed(self.body, start, following)
            if last - first <= CHUNK_CHARS_MAX:
                self._add(first, last, kin)
            elif len(cutters) > 1:
                self._add_parts(first, last, kin, cutters[1:])
            else:
                self._add_characters(first, last, kin)
            start, kin = following, next_kin

    def _add_characters(self, start: int, end: int, kin: int) -> None:
        while start < end:
            cut = _between_clusters(self.body, start, min(start + CHUNK_CHARS_TARGET, end))
            self._add(start, cut, kin)
            start, kin = cut, _Kin.CHARACTERS

    def _add(self, start: int, end: int, kin: int) -> None:
        if start == end:
            return
        self._starts.append(start)
        self._ends.append(end)
        self._kin.append(_Kin.HEADING_AND_TEXT if self._after_heading else kin)
        self._section_of.append(len(self._trails) - 1)
        self._after_heading = False

    def joined(self) -> list[Chunk]:
        if not self._starts:
            return []
        firsts = self._with_tails(self._joined_by_kinship())
        lasts = [first - 1 for first in firsts[1:]] + [len(self._starts) - 1]
        return [
            Chunk(
                index,
                self._starts[first],
                self._ends[last],
                " > ".join(self._common_trail(first, last)),
                self.body[self._starts[first] : self._ends[last]],
            )
            for index, (first, last) in enumerate(zip(firsts, lasts, strict=True))
        ]

    def _joined_by_kinship(self) -> list[int]:
        """The first piece of each passage, when the closest neighbours have been joined.

        Each border is looked at once, and goes if what it parts fits together.
        """
        starts, ends, kin = self._starts, self._ends, self._kin
        count = len(starts)
        first_of, last_of = list(range(count)), list(range(count))
        borders = [False] + [True] * (count - 1)
        for right in sorted(range(1, count), key=self._border_order):
            first, last = first_of[right - 1], last_of[right]
            room = CHUNK_CHARS_MAX if kin[right] == _Kin.HEADING_AND_TEXT else CHUNK_CHARS_TARGET
            if ends[last] - starts[first] > room:
                continue
            if kin[right] >= _Kin.SECTIONS and not self._is_whole_sections(first, last):
                continue
            first_of[last], last_of[first] = first, last
            borders[right] = False
        return [0, *(first for first in range(count) if borders[first])]

    def _border_order(self, right: int) -> int:
        start = self._starts[right]
        following = self.body[start : min(start + _HASHED_CHARS, self._ends[right])]
        return self._kin[right] << 32 | crc32(following.encode("utf-8", "surrogatepass"))

    def _is_whole_sections(self, first: int, last: int) -> bool:
        return self._opens_section(first) and (
            last + 1 == len(self._starts) or self._opens_section(last + 1)
        )

    def _opens_section(self, piece: int) -> bool:
        return piece == 0 or self._kin[piece] >= _Kin.SECTIONS

    def _with_tails(self, firsts: list[int]) -> list[int]:
        """A passage that is too short joins the one before it, or after it, in its section."""
        kept: list[int] = []
        lasts = [first - 1 for first in firsts[1:]] + [len(self._starts) - 1]
        waiting = False  # the passage kept last is short, and has none before it
        for first, last in zip(firsts, lasts, strict=True):
            short = self._ends[last] - self._starts[first] < CHUNK_CHARS_MIN
            alone = not kept or self._opens_section(first)
            fits = bool(kept) and self._ends[last] - self._starts[kept[-1]] <= CHUNK_CHARS_MAX
            if (short or waiting) and fits and not alone:
                waiting = False
                continue
            kept.append(first)
            waiting = short
        return kept

    def _common_trail(self, first: int, last: int) -> tuple[str, ...]:
        sections = range(self._section_of[first], self._section_of[last] + 1)
        common = self._trails[sections[0]]
        for section in sections[1:]:
            trail = self._trails[section]
            same = [here == there for here, there in zip(common, trail, strict=False)]
            common = common[: [*same, False].index(False)]
        return common


def _trimmed(body: str, start: int, end: int) -> tuple[int, int]:
    """Without white space around it, but with the indentation of its first line."""
    text = body[start:end]
    end = start + len(text.rstrip())
    if end == start:
        return start, start
    lead = len(text) - len(text.lstrip())
    line = text.rfind("\n", 0, lead) + 1
    at_line = line or start == 0 or body[start - 1] == "\n"
    return start + (line if at_line and lead - line <= _INDENT_CHARS_MAX else lead), end


def _between_clusters(body: str, start: int, cut: int) -> int:
    """The cut, or one a little earlier that does not part a character from its marks."""
    for place in range(cut, max(start, cut - _CLUSTER_CHARS_MAX), -1):
        if place == len(body) or not _belongs_to_left(body[place - 1], body[place]):
            return place
    return cut


def _belongs_to_left(left: str, right: str) -> bool:
    return (
        unicodedata.category(right)[0] == "M"
        or _ZERO_WIDTH_JOINER in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")
    )


def _after_sentence(body: str, cut: re.Match[str]) -> tuple[int, _Kin]:
    line = body.rfind("\n", cut.start(), cut.end()) + 1
    if not line:
        return cut.end(), _Kin.SENTENCES
    indent = cut.end() - line
    following = line if indent <= _INDENT_CHARS_MAX else cut.end()
    if not indent and _ITEM.match(body, line):
        return following, _Kin.ITEMS
    return following, _Kin.LINES if body[cut.start()] == "\n" else _Kin.SENTENCES


def _after_code_line(body: str, cut: re.Match[str]) -> tuple[int, _Kin]:
    after_blank = cut.end() - cut.start() > 1
    if _CLOSER.match(body, cut.end()):
        kin = _Kin.WORDS  # the end of what stands above
    elif body[cut.end() : cut.end() + 1] in (" ", "\t"):
        kin = _Kin.ITEMS if after_blank else _Kin.LINES
    else:
        kin = _Kin.PARAGRAPHS if after_blank else _Kin.SENTENCES
    return cut.end(), kin


def _after_word(_body: str, cut: re.Match[str]) -> tuple[int, _Kin]:
    return cut.end(), _Kin.WORDS


_Cutter = tuple[re.Pattern[str], Callable[[str, re.Match[str]], tuple[int, _Kin]]]
_PROSE: Sequence[_Cutter] = ((_SENTENCE_OR_LINE, _after_sentence), (_WORD, _after_word))
_CODE: Sequence[_Cutter] = ((_CODE_LINE, _after_code_line), (_WORD, _after_word))
