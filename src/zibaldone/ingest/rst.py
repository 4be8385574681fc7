"""reStructuredText to Markdown, line by line: headings, code, links, and what directives hold.

Names that roles and directives mark stay readable; what only steers Sphinx (tables of contents,
labels, comments) is left out.
"""

from __future__ import annotations

import re

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*")
_SHORT_ADORNMENT = 3
_LEVEL_MAX = 6
_DIRECTIVE = re.compile(r"\.\.[ ]+(?:\|[^|]*\|[ ]*)?([A-Za-z][\w:.+-]*?)[ ]*::(?:[ ]+(.*))?$")
_FOOTNOTE = re.compile(r"\.\.[ ]+\[([^\]]{1,80})\][ ]+(.*)")
_OPTION = re.compile(r":[\w-]+:(?:[ ]|$)")
_DOCTEST = ">>>"
_CODE = frozenset({"code", "code-block", "sourcecode", "highlight-block", "literalinclude"})
_DROPPED = frozenset(
    """contents currentmodule default-domain default-role figure-md graphviz highlight image include
    index literalinclude meta only-if raw replace sectionauthor codeauthor tabularcolumns tags
    testcleanup testsetup title toctree unicode""".split()  # noqa: SIM905
)
_NAMED = frozenset(
    """attention caution danger deprecated error hint important note rubric seealso tip todo
    topic versionadded versionchanged versionremoved warning admonition""".split()  # noqa: SIM905
)

_LITERAL = re.compile(r"``(.+?)``")
_ROLE = re.compile(r":[\w:+.-]{1,40}:`([^`]{1,1000})`")
_LINK = re.compile(r"`([^`<>]{1,500})[ \n]<([^<>`\s]{1,2000})>`__?")
_REFERENCE = re.compile(r"`([^`]{1,500})`__?(?!\w)")
_TEXT_ROLES = ("ref", "doc", "term", "abbr", "sup", "sub", "emphasis", "strong", "title")


def rst_to_markdown(text: str) -> str:
    return _Conversion(text.expandtabs(8).split("\n")).run()


class _Conversion:
    def __init__(self, lines: list[str]) -> None:
        self._lines = [line.rstrip() for line in lines]
        self._out: list[str] = []
        self._levels: list[tuple[str, bool]] = []
        """Adornments in the order of their first use: that is what their level is."""
        self._shifts: list[tuple[int, int]] = []
        """Blocks that directives opened: their indentation, and by how much they move left."""

    def run(self) -> str:
        at = 0
        while at < len(self._lines):
            at = self._block(at)
        return "\n".join(self._out).strip("\n") + "\n"

    def _block(self, at: int) -> int:
        """Convert what begins at a line; where the next begins."""
        line = self._lines[at]
        if not line:
            self._blank()
            return at + 1
        if title := self._title(at):
            return title
        stripped = line.lstrip()
        if stripped.startswith(".. ") or stripped == "..":
            return self._explicit(at, stripped)
        if stripped.startswith(_DOCTEST):
            return self._doctest(at)
        moved = self._moved(line)
        if stripped == "::":
            return self._literal(at + 1, _indent(line), "")
        if line.endswith("::"):
            self._out.append(_inline(moved[:-1]))
            return self._literal(at + 1, _indent(line), "")
        self._out.append(_inline(moved))
        return at + 1

    def _title(self, at: int) -> int:
        """Where the text after a title goes on; 0 if there is none."""
        lines = self._lines
        over = _adornment(lines[at])
        if over and at + 2 < len(lines) and lines[at + 1] and lines[at + 2] == lines[at]:
            self._heading(lines[at + 1].strip(), (over, True))
            return at + 3
        if over or lines[at][0] == " " or at + 1 >= len(lines):
            return 0
        under = _adornment(lines[at + 1])
        if not under or (at and lines[at - 1] and not _adornment(lines[at - 1])):
            return 0
        if len(lines[at + 1]) < min(len(lines[at]), _SHORT_ADORNMENT):
            return 0
        self._heading(lines[at], (under, False))
        return at + 2

    def _heading(self, title: str, style: tuple[str, bool]) -> None:
        if style not in self._levels:
            self._levels.append(style)
        level = min(self._levels.index(style) + 1, _LEVEL_MAX)
        self._blank()
        self._out.append(f"{'#' * level} {_inline(title)}")
        self._blank()

    def _blank(self) -> None:
        if self._out and self._out[-1]:
            self._out.append("")

    def _explicit(self, at: int, stripped: str) -> int:
        """A directive, a comment, a target or a footnote."""
        indent = _indent(self._lines[at])
        if footnote := _FOOTNOTE.fullmatch(stripped):
            self._out.append(f"[{footnote[1]}] {_inline(footnote[2])}")
            self._shift_body(at + 1, indent)
            return at + 1
        directive = _DIRECTIVE.fullmatch(stripped)
        if directive is None:
            return self._end_of_body(at + 1, indent)
        name, argument = directive[1].lower(), (directive[2] or "").strip()
        body = at + 1
        while body < len(self._lines) and _OPTION.match(self._lines[body].lstrip()):
            body += 1
        if name in _DROPPED:
            return self._end_of_body(at + 1, indent)
        if name in _CODE:
            return self._literal(body, indent, argument.split(" ")[0])
        if name == "math":
            return self._literal(body, indent, "math")
        if name in _NAMED:
            self._out.append(_inline(f"**{name.capitalize()}:** {argument}".rstrip()))
        elif ":" in name or name in ("function", "class", "method", "data", "option", "envvar"):
            self._out.append(f"`{argument}`" if argument and "`" not in argument else argument)
        elif argument:
            self._out.append(_inline(argument))
        self._shift_body(body, indent)
        return body

    def _shift_body(self, at: int, indent: int) -> None:
        while at < len(self._lines) and not self._lines[at]:
            at += 1
        if at < len(self._lines) and (inner := _indent(self._lines[at])) > indent:
            self._shifts.append((inner, inner - indent + self._shift(indent)))

    def _shift(self, indent: int) -> int:
        while self._shifts and self._shifts[-1][0] > indent:
            self._shifts.pop()
        return self._shifts[-1][1] if self._shifts else 0

    def _moved(self, line: str) -> str:
        return line[self._shift(_indent(line)) :]

    def _end_of_body(self, at: int, indent: int) -> int:
        while at < len(self._lines) and (not self._lines[at] or _indent(self._lines[at]) > indent):
            at += 1
        return at

    def _literal(self, at: int, indent: int, language: str) -> int:
        end = self._end_of_body(at, indent)
        self._fence(self._lines[at:end], language)
        return end

    def _doctest(self, at: int) -> int:
        end = at
        while end < len(self._lines) and self._lines[end]:
            end += 1
        self._fence(self._lines[at:end], "python")
        return end

    def _fence(self, lines: list[str], language: str) -> None:
        filled = [number for number, line in enumerate(lines) if line]
        if not filled:
            return
        lines = lines[filled[0] : filled[-1] + 1]
        margin = min(_indent(line) for line in lines if line)
        self._blank()
        self._out += fenced([line[margin:] for line in lines], language)
        self._blank()


def fenced(lines: list[str], language: str) -> list[str]:
    """The lines as a block of code, fenced by more marks than any of them begins with."""
    longest = max((len(line) - len(line.lstrip("`")) for line in lines), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *lines, fence]


def _adornment(line: str) -> str:
    return line[0] if len(line) > 1 and _ADORNMENT.fullmatch(line) else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _inline(text: str) -> str:
    if "`" not in text:
        return text
    # Literals first and out of the way: what is in them is not markup.
    parts = _LITERAL.split(text)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"`{part}`"
        elif "`" in part:
            linked = _LINK.sub(r"[\1](\2)", _ROLE.sub(_role, part))
            parts[place] = _REFERENCE.sub(r"\1", linked)
    return "".join(parts)


def _role(match: re.Match[str]) -> str:
    name = match[0].partition("`")[0].strip(":").rpartition(":")[2]
    text = match[1]
    if text.endswith(">") and (title := text.rpartition("<")[0].rstrip()):
        return title
    text = text.lstrip("!")
    if name in ("rfc", "pep", "cve"):
        return f"{name.upper()} {text}"
    if text.startswith("~"):
        text = text.rpartition(".")[2].lstrip("~")
    return text if name in _TEXT_ROLES else f"`{text}`"
