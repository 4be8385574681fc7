"""Cut a document into chunks that are found, shown and embedded on their own.

Here a body is cut at every place where a chunk may begin: headings, blank lines, and inside of
what is too long lines, sentences, words. `borders` says which of these places are taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zibaldone.limits import (
    CHUNK_CHARS_MAX,
    CHUNK_CHARS_TARGET,
    HEADING_CHARS_MAX,
    HEADINGS_MAX,
)
from zibaldone.model.chunking import Chunking
from zibaldone.text.borders import Border, Pieces

_HEADING_LEVELS = 6
_INDENT_CHARS_MAX = 64
_CLUSTER_CHARS_MAX = 32
_FINE_CHARS_MAX = 1 << 18
_STEP_CHARS = 1 << 17
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
_NOWHERE = re.compile("(?!)")
_ITEM = re.compile(r"[-*+|>]|\d{1,9}[.)]")
_CLOSER = re.compile(r"[)\]}`~]|end\b")
_STRUCTURE = re.compile(
    r"^(?:[ ]{0,3}(?P<hashes>\#{1,6})(?=[ \t\r\n]|\Z)"
    r"|[ \t]{0,12}(?P<fence>`{3,}+(?=[^`\n]*$)|~{3,}+)"
    r"|[ ]{0,3}(?P<underline>=++|-{2,}+)[ \t\r]*+$)",
    re.MULTILINE,
)
_FRONT_MATTER = re.compile(r"---[ \t\r]*\n(?s:.*?)^---[ \t\r]*$", re.MULTILINE)
_NO_TITLE = re.compile(r"\s*(?:[-*+>|#]|\d+[.)])")
_PIECE_CHARS = 1 << 18
_PIECES_OVERLAP_CHARS = 1 << 10
"""A match that begins before this, and for so long has neither matched nor failed, is not found."""
_CODE_KINDS = frozenset(("text/css", "text/csv", "text/javascript", "text/tab-separated-values"))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: `body[start:end] == text`; `heading` is the trail of headings above it."""

    index: int
    start: int
    end: int
    heading: str
    text: str


def cut(body: str, mime: str, chunking: Chunking) -> list[Chunk]:
    """Chunks as the document's source wants them."""
    if chunking.by == "size":
        return chunk_by_size(
            body, chunking.size_chars, chunking.overlap_chars, chunking.minimum_chars
        )
    return chunk_document(body, mime)


def chunk_document(body: str, mime: str = "text/markdown") -> list[Chunk]:
    """Chunks in order; together they hold all of the body but white space between them."""
    cutting = _Cutting(body)
    kind = mime.partition(";")[0].strip().lower()
    if kind in ("text/markdown", "text/x-markdown"):
        _cut_markdown(body, cutting)
    elif kind.startswith(("text/x-", "application/")) or kind in _CODE_KINDS:
        cutting.add_code(0, len(body))
    else:
        cutting.add_paragraphs(0, len(body))
    return cutting.chunks()


def chunk_by_size(body: str, size: int, overlap: int, minimum: int) -> list[Chunk]:
    """Windows of `size` characters, each beginning with the last `overlap` of the one before.

    A last window shorter than `minimum` goes to its predecessor, which then ends with the body.
    A window of nothing but white space is none.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    if not 0 <= overlap < size:
        raise ValueError(f"overlap must be at least 0 and below size {size}, not {overlap}")
    if not 0 <= minimum <= size:
        raise ValueError(f"minimum must be between 0 and size {size}, not {minimum}")
    starts = list(range(0, max(len(body) - overlap, 1), size - overlap))
    if len(starts) > 1 and len(body) - starts[-1] < minimum:
        starts.pop()
    ends = [*(start + size for start in starts[:-1]), len(body)]
    windows = zip(starts, ends, strict=True)
    visible = ((start, end) for start, end in windows if body[start:end].strip())
    return [
        Chunk(index, start, end, "", body[start:end]) for index, (start, end) in enumerate(visible)
    ]


def _cut_markdown(body: str, cutting: _Cutting) -> None:
    """Sections by headings; fenced code apart; paragraphs, lists and tables between blank lines."""
    done = at = 0
    if front := _FRONT_MATTER.match(body):
        done = at = front.end()
        cutting.add_block(0, done)
    for _ in range(HEADINGS_MAX):
        mark = _next_mark(body, at)
        if mark is None:
            break
        start, at = mark.start(), _line_end(body, mark.end())
        if mark["fence"]:
            at = _fence_end(body, at, mark["fence"])
            cutting.add_paragraphs(done, start)
            cutting.add_block(start, at)
        elif mark["hashes"]:
            title = body[mark.end() : at].strip().rstrip("#").rstrip()
            cutting.add_paragraphs(done, start)
            cutting.add_heading(start, at, len(mark["hashes"]), title)
        elif (line := _title_above(body, done, start)) is not None:
            cutting.add_paragraphs(done, line)
            level = 1 if mark["underline"][0] == "=" else 2
            cutting.add_heading(line, at, level, body[line:start].strip())
        else:
            continue  # a rule between paragraphs
        done = at
    cutting.add_paragraphs(done, len(body))


def _next_mark(body: str, at: int) -> re.Match[str] | None:
    """The next heading or fence."""
    return _found_in_lines(_STRUCTURE, body, at)


def _found_in_lines(pattern: re.Pattern[str], body: str, at: int) -> re.Match[str] | None:
    """The first match of a pattern that matches within a line, in steps of whole lines.

    Between two steps other threads run: over ten million lines one search takes a second.
    """
    while at < len(body):
        end = body.find("\n", at + _STEP_CHARS) + 1 or len(body)
        if mark := pattern.search(body, at, end):
            return mark
        at = end
    return None


def _line_end(body: str, at: int) -> int:
    end = body.find("\n", at)
    return len(body) if end < 0 else end


def _fence_end(body: str, at: int, fence: str) -> int:
    """The end of the closing fence; a fence that is never closed goes on to the end."""
    closing = re.compile(rf"^[ \t]*+{fence[0]}{{{len(fence)},}}+[ \t\r]*+$", re.MULTILINE)
    close = _found_in_lines(closing, body, at)
    return close.end() if close else len(body)


def _title_above(body: str, floor: int, underline: int) -> int | None:
    """Where the line above an underline begins, if that line alone can be a heading."""
    line = max(body.rfind("\n", floor, max(floor, underline - 1)) + 1, floor)
    title = body[line:underline]
    if not title.strip() or len(title) > HEADING_CHARS_MAX or _NO_TITLE.match(title):
        return None
    above = max(body.rfind("\n", floor, max(floor, line - 1)) + 1, floor)
    return None if body[above:line].strip() else line


class _Cutting:
    """Takes the parts of a body in order and cuts them as fine as needed."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._pieces = Pieces(body)
        self._section_of: list[int] = []
        self._trails: list[tuple[str, ...]] = [()]
        self._headings: list[tuple[int, str]] = []
        self._after_heading = False
        # Pieces need not be finer than this; in a huge body it bounds their number.
        self._grain_chars = 1 << (len(body) // _FINE_CHARS_MAX).bit_length()

    def add_heading(self, start: int, end: int, level: int, title: str) -> None:
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title[:HEADING_CHARS_MAX]))
        trail = tuple(title for _, title in self._headings if title)
        if self._after_heading and len(trail) > len(self._trails[-1]):
            self._trails[-1] = trail  # a heading right above a heading has no text of its own
        else:
            self._trails.append(trail)
        self._add_parts(start, end, Border.SECTIONS + _HEADING_LEVELS - level, _HEADING)
        self._after_heading = True

    def add_paragraphs(self, start: int, end: int) -> None:
        while start < end:
            gap = _found(_BLANK_LINES, self._body, start + self._grain_chars, end)
            self._add_whole(start, gap.start() if gap else end, _PROSE)
            start = gap.end() if gap else end

    def add_block(self, start: int, end: int) -> None:
        """Code between fences: in one piece where that is possible."""
        self._add_whole(start, end, _CODE)

    def add_code(self, start: int, end: int) -> None:
        self._add_parts(start, end, Border.PARAGRAPHS, _CODE)

    def _add_whole(self, start: int, end: int, cutters: Sequence[_Cutter]) -> None:
        start, end = _trimmed(self._body, start, end)
        if start == end:
            return
        ends = self._pieces.ends
        after_colon = bool(ends) and self._body[ends[-1] - 1] == ":"
        kind = Border.COLON_AND_BLOCK if after_colon else Border.PARAGRAPHS
        if end - start <= CHUNK_CHARS_MAX:
            self._add(start, end, kind)
        else:
            self._add_parts(start, end, kind, cutters)

    def _add_parts(self, start: int, end: int, kind: int, cutters: Sequence[_Cutter]) -> None:
        """Cut by the first cutter, and what is still too long by the next."""
        pattern, judge = cutters[0]
        while start < end:
            cut = _found(pattern, self._body, start + self._grain_chars, end)
            following, next_kind = judge(self._body, cut) if cut else (end, 0)
            first, last = _trimmed(self._body, start, following)
            if last - first <= CHUNK_CHARS_MAX:
                self._add(first, last, kind)
            elif len(cutters) > 1:
                self._add_parts(first, last, kind, cutters[1:])
            else:
                self._add_characters(first, last, kind)
            start, kind = following, next_kind

    def _add_characters(self, start: int, end: int, kind: int) -> None:
        while start < end:
            cut = _between_clusters(self._body, start, min(start + CHUNK_CHARS_TARGET, end))
            self._add(start, cut, kind)
            start, kind = cut, Border.CHARACTERS

    def _add(self, start: int, end: int, kind: int) -> None:
        if start == end:
            return
        self._pieces.add(start, end, Border.HEADING_AND_TEXT if self._after_heading else kind)
        self._section_of.append(len(self._trails) - 1)
        self._after_heading = False

    def chunks(self) -> list[Chunk]:
        if not self._pieces:
            return []
        chunks: list[Chunk] = []
        for first, last in self._pieces.chunks():
            start, end = self._pieces.starts[first], self._pieces.ends[last]
            heading = " > ".join(self._common_trail(first, last))
            chunks.append(Chunk(len(chunks), start, end, heading, self._body[start:end]))
        return chunks

    def _common_trail(self, first: int, last: int) -> tuple[str, ...]:
        sections = range(self._section_of[first], self._section_of[last] + 1)
        common = self._trails[sections[0]]
        for section in sections[1:]:
            same = [a == b for a, b in zip(common, self._trails[section], strict=False)]
            common = common[: [*same, False].index(False)]
        return common


def _found(pattern: re.Pattern[str], body: str, start: int, end: int) -> re.Match[str] | None:
    """The first match, looked for piece by piece: a search lets no other thread run meanwhile."""
    while end - start > _PIECE_CHARS:
        cut = pattern.search(body, start, start + _PIECE_CHARS)
        if cut is not None:
            return pattern.match(body, cut.start(), end)  # it may go on after the piece
        start += _PIECE_CHARS - _PIECES_OVERLAP_CHARS
    return pattern.search(body, start, end)


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


def _after_sentence(body: str, cut: re.Match[str]) -> tuple[int, Border]:
    line = body.rfind("\n", cut.start(), cut.end()) + 1
    if not line:
        return cut.end(), Border.SENTENCES
    indent = cut.end() - line
    following = line if indent <= _INDENT_CHARS_MAX else cut.end()
    if not indent and _ITEM.match(body, line):
        return following, Border.ITEMS
    return following, Border.LINES if body[cut.start()] == "\n" else Border.SENTENCES


def _after_code_line(body: str, cut: re.Match[str]) -> tuple[int, Border]:
    after_blank = cut.end() - cut.start() > 1
    if _CLOSER.match(body, cut.end()):
        return cut.end(), Border.WORDS  # the end of what stands above
    if body[cut.end() : cut.end() + 1] in (" ", "\t"):
        return cut.end(), Border.ITEMS if after_blank else Border.LINES
    return cut.end(), Border.PARAGRAPHS if after_blank else Border.SENTENCES


def _after_word(_body: str, cut: re.Match[str]) -> tuple[int, Border]:
    return cut.end(), Border.WORDS


_Cutter = tuple[re.Pattern[str], Callable[[str, re.Match[str]], tuple[int, Border]]]
_PROSE: Sequence[_Cutter] = ((_SENTENCE_OR_LINE, _after_sentence), (_WORD, _after_word))
_CODE: Sequence[_Cutter] = ((_CODE_LINE, _after_code_line), (_WORD, _after_word))
_HEADING: Sequence[_Cutter] = ((_NOWHERE, _after_word), (_WORD, _after_word))
