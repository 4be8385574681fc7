"""A title for a text that was given none: that of its front matter, its first heading or line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from zibaldone.errors import InvalidArgument
from zibaldone.limits import TITLE_CHARS_MAX
from zibaldone.text import normalize
from zibaldone.text.frontmatter import as_line, read_front_matter

LINE_CHARS_MAX = 100
"""Of a first line that is no heading; a longer one is cut between words."""

_CUT = "\u2026"
"""Ends a line that was cut."""

_LOOKED_AT_CHARS = 8_192
"""A title is looked for at the beginning only."""

_BEGINNING_CHARS = 8 * LINE_CHARS_MAX
"""As far as a first line is compared with a title, with its markup and the line below it."""

_TITLED = frozenset({"text/markdown", "text/plain", "text/x-rst", "text/org"})
"""Other kinds of text, such as JSON or source code, have no line that names them."""

_HEADING = re.compile(r"#{1,6}[ \t]+(?=[^\s#])")
_RULE = re.compile(r"\s*|([=\-*~^#+_])\1+\s*")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)|!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]+)\]\]")
_LEADING = re.compile(r"(?:(?:[>*+|-]|\d{1,3}[.)])[ \t]+){1,3}")
# A run of marks is looked at from its beginning only.
_EMPHASIS = re.compile(r"`+|(?<![\w*])[*_]++(?=\w)|(?<=[^\W_])[*_]++(?!\w)")
_NO_WORDS = re.compile(r"[\W_]*")


def title_of(body: str, mime: str) -> str:
    """The title, or "" where the text has none to offer. Never raises."""
    if mime.partition(";")[0] not in _TITLED:
        return ""
    title = ""
    if mime == "text/markdown":
        title = _front_title(body) or first_heading(body[:_LOOKED_AT_CHARS])
    return _clean(title or _first_line(body[:_LOOKED_AT_CHARS]))


def _front_title(body: str) -> str:
    if not body.startswith(("---", "\ufeff---")):
        return ""
    return as_line(read_front_matter(body, _LOOKED_AT_CHARS).values.get("title"))


def title_beside(title: str, text: str) -> str:
    """What of a title is indexed with a text: "" where it says nothing that the text does not.

    The cut beginning of a paragraph, or a text of one line, would count twice (a loss of .007
    nDCG@10 on chunkeval).
    """
    return "" if title.endswith(_CUT) or title == text.strip() else title


def naming_title(title: str, text: str) -> str:
    """A title that names a subject: "" if it is just where this text begins.

    A first line names it if it is a heading, or stands alone above a blank line or a rule. The
    first line of a paragraph or of a program does not.
    """
    title = title_beside(title, text)
    begin, _, _ = title.partition(" ")
    first, _, rest = text[:_BEGINNING_CHARS].lstrip().partition("\n")
    if not title or begin not in first or _HEADING.match(first) or title != _first_line(first):
        return title
    below, _, _ = rest.partition("\n")
    return title if _RULE.fullmatch(below) else ""


def first_heading(text: str) -> str:
    """The first heading of a Markdown text, past its front matter and outside its code."""
    above = ""
    for line in _lines(text):
        stripped = line.strip()
        if not line.startswith(("    ", "\t")):
            heading = _HEADING.match(stripped)
            if heading:
                return stripped[heading.end() :].rstrip("#").rstrip()
            if above and len(stripped) > 1 and not stripped.strip("="):
                return above
        above = stripped
    return ""


def _first_line(text: str) -> str:
    for line in _lines(text):
        stripped = line.strip()
        if marks := _LEADING.match(stripped):
            stripped = stripped[marks.end() :]
        plain = _LINK.sub(lambda found: found[1] or found[2] or "", stripped.lstrip("#"))
        words = _EMPHASIS.sub("", plain).strip()
        if not _NO_WORDS.fullmatch(words) and not words.startswith("<"):
            return _shortened(words)
    return ""


def _lines(text: str) -> Iterator[str]:
    """The lines past the front matter and outside of fenced code."""
    lines = text.split("\n")
    first = 0
    if lines[0].rstrip() == "---":
        ends = (at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
        first = next(ends, -1) + 1
    fence = ""
    for line in lines[first:]:
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fence = "" if fence == stripped[:3] else fence or stripped[:3]
        elif not fence:
            yield line


def _shortened(line: str) -> str:
    line = " ".join(line[: 4 * LINE_CHARS_MAX].split())
    if len(line) <= LINE_CHARS_MAX:
        return line
    cut = line[: LINE_CHARS_MAX - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.-") + _CUT


def _clean(title: str) -> str:
    """In the form in which titles are kept; "" where it cannot be kept."""
    try:
        return normalize.title(title[:TITLE_CHARS_MAX])
    except InvalidArgument:  # such as a thousand accents on one letter
        return ""
