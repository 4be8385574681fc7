"""HTML of rows to Markdown, in one pass whose time grows with the length of the text and no more.

Rows of other people's databases hold whatever somebody typed. The converter of `ingest/` builds a
tree, takes a second for a megabyte, and has markup that makes it quadratic, so it runs in a process
of its own. Rows come by the hundred thousand: this one keeps no tree, looks at each character a
bounded number of times, and handles what posts are made of (paragraphs, headings, lists, code,
quotations, links, emphasis, tables as lines).
"""

from __future__ import annotations

import html
import re

# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "html", "main", "nav", "ol", "p", "section", "summary", "table", "tbody", "tfoot",
    "thead", "ul",
})
_HIDDEN = frozenset({
    "head", "iframe", "noscript", "object", "script", "select", "style", "svg", "template",
    "textarea", "title",
})
# fmt: on
_LINES = frozenset({"br", "li", "tr", "caption"})
_CELLS = frozenset({"td", "th"})
_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "del": "~~"}
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)")
_QUOTE_OR_END = re.compile(r"""["'>]""")
_ATTRIBUTE_CHARS_MAX = 8_192
_ATTRIBUTE = re.compile(
    r"""\b(href|src|alt|class)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)
_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_LOOKS_LIKE = re.compile(
    r"</(?:p|div|span|a|ul|ol|li|pre|code|h[1-6]|b|i|em|strong|table|td|blockquote)>|<br ?/?>|<p>",
    re.IGNORECASE,
)
_SAMPLE_CHARS = 4_096
_NESTING_MAX = 20


def looks_like_html(text: str) -> bool:
    """Whether the beginning of a text has an HTML tag that posts have."""
    return "<" in text and _LOOKS_LIKE.search(text, 0, _SAMPLE_CHARS) is not None


def to_markdown(markup: str) -> str:
    if "<" not in markup and "&" not in markup:
        return markup.strip()
    return _Conversion(markup).run()


class _Conversion:
    def __init__(self, markup: str) -> None:
        self._markup = markup
        self._lower = ""
        self._pieces: list[str] = []
        self._line_start = True
        """Nothing but marks of lists and quotations is on the current line."""
        self._wants_blank = False
        self._blank_quotes = 0
        """How deep in quotations the blank line is."""
        self._pre = 0
        self._quotes = 0
        self._lists: list[int | None] = []
        """Open lists: the number of the last item, None where they have bullets."""
        self._links: list[str] = []
        self._no_end: set[str] = set()
        """What was looked for to the end in vain; it is not looked for again."""
        self._quotes_count = True
        """Whether a `>` inside quotes is part of its tag."""
        self._room_chars = len(markup)
        """For marks of nesting: with twenty on each line they could make a text far longer."""

    def run(self) -> str:
        markup, position, end = self._markup, 0, len(self._markup)
        while position < end:
            opening = markup.find("<", position)
            if opening < 0:
                self._text(markup[position:])
                break
            if opening > position:
                self._text(markup[position:opening])
            position = self._tag(opening)
        return _tidy("".join(self._pieces))

    # Tags

    def _tag(self, start: int) -> int:
        """Deal with what begins with a `<`; where the text goes on."""
        markup = self._markup
        if markup.startswith("<!--", start):
            return self._after("-->", start + 4)
        match = _TAG.match(markup, start)
        if match is None:
            if markup.startswith(("<!", "<?"), start):
                return self._after(">", start + 2)
            self._text("<")  # a sign of its own, as in "a < b"
            return start + 1
        closing = self._end_of_tag(match.end())
        if closing < 0:
            self._text("<")
            return start + 1
        name = match[1].lower()
        if markup[start + 1] == "/":
            self._close(name)
        elif name in _HIDDEN:
            return self._after_hidden(name, closing + 1)
        else:
            attributes = markup[match.end() : min(closing, match.end() + _ATTRIBUTE_CHARS_MAX)]
            self._open(name, attributes)
        return closing + 1

    def _end_of_tag(self, position: int) -> int:
        """Where the `>` of a tag is; one inside quotes does not count. -1: it has none.

        Where quotes leave a tag without an end they are wrong: from there on they do not count.
        """
        markup = self._markup
        closing = self._find(">", position)
        if closing < 0 or not self._quotes_count:
            return closing
        while (mark := _QUOTE_OR_END.search(markup, position)) is not None:
            if mark[0] == ">":
                return mark.start()
            partner = self._find(mark[0], mark.end())
            if partner < 0:
                after = markup.find(">", mark.end())
                if after >= 0:
                    return after
                break
            position = partner + 1
        self._quotes_count = False
        return closing

    def _find(self, wanted: str, position: int) -> int:
        if wanted in self._no_end:
            return -1
        found = self._markup.find(wanted, position)
        if found < 0:
            self._no_end.add(wanted)
        return found

    def _after(self, wanted: str, position: int) -> int:
        """Where the text goes on after a comment; one without an end has all the rest."""
        found = self._find(wanted, position)
        return len(self._markup) if found < 0 else found + len(wanted)

    def _after_hidden(self, name: str, position: int) -> int:
        """Behind the end of an element that nobody reads; one without an end is passed over."""
        if not self._lower:
            self._lower = self._markup.lower()
            if len(self._lower) != len(self._markup):  # some letters have longer small forms
                self._lower = self._markup
        wanted = f"</{name}"
        if wanted in self._no_end:
            return position
        found = self._lower.find(wanted, position)
        if found < 0:
            self._no_end.add(wanted)
            return position
        return self._after(">", found)

    def _open(self, name: str, attributes: str) -> None:
        if name in _LINES:
            self._open_line(name)
        elif name in _CELLS:
            if not self._line_start:
                self._put(" | ")
        elif name == "pre":
            self._block()
            self._put("```\n")
            self._line_start = True
            self._pre += 1
        elif not self._pre:
            self._open_text(name, attributes)

    def _open_text(self, name: str, attributes: str) -> None:
        if name == "hr":
            self._block()
            self._put("---")
            self._block()
        elif name == "a":
            href = _attribute(attributes, "href")
            is_link = href and not href.lower().startswith(("javascript:", "data:", "#"))
            self._links.append(href if is_link else "")
            self._put("[" if is_link else "")
        elif name == "img":
            self._put(_attribute(attributes, "alt"))
        elif name in _EMPHASIS:
            self._put(_EMPHASIS[name])
        elif name in _BLOCKS:
            self._open_block(name)

    def _open_line(self, name: str) -> None:
        if name != "li":
            self._newline()
            return
        self._newline()
        if not self._lists:
            self._lists.append(None)
        number = self._lists[-1]
        self._put(self._marks("  ", min(len(self._lists), _NESTING_MAX) - 1))
        if number is None:
            self._put("- ")
        else:
            self._lists[-1] = number + 1
            self._put(f"{number + 1}. ")
        self._line_start = True
        self._wants_blank = False

    def _open_block(self, name: str) -> None:
        if name in ("ul", "ol"):
            if self._lists:
                self._newline()
            else:
                self._block()
            self._lists.append(0 if name == "ol" else None)
            return
        if not (self._lists and self._line_start):
            self._block()
        if name == "blockquote":
            self._quotes = min(self._quotes + 1, _NESTING_MAX)
        elif name in _HEADINGS:
            self._put(_HEADINGS[name] + " ")
            self._line_start = True

    def _close(self, name: str) -> None:
        if name == "pre" and self._pre:
            self._pre -= 1
            if not self._line_start:
                self._raw_newline()
            self._put("```")
            self._block()
        elif not self._pre:
            self._close_text(name)

    def _close_text(self, name: str) -> None:
        if name == "a" and self._links:
            href = self._links.pop()
            self._put(f"]({href})" if href else "")
        elif name in _EMPHASIS:
            self._put(_EMPHASIS[name])
        elif name in ("ul", "ol"):
            del self._lists[-1:]
            if not self._lists:
                self._block()
        elif name in _BLOCKS and not (self._lists and name == "p"):
            if name == "blockquote":
                self._quotes = max(0, self._quotes - 1)
            self._block()

    # Text

    def _text(self, raw: str) -> None:
        text = _unescaped(raw)
        if self._pre:
            self._pre_text(text)
            return
        text = _BLANKS.sub(" ", text)
        if self._line_start:
            text = text.lstrip(" ")
        if text:
            self._put(text)

    def _pre_text(self, text: str) -> None:
        lines = text.replace("\r\n", "\n").split("\n")
        for number, line in enumerate(lines):
            if number:
                self._raw_newline()
            if line:
                self._put(line)

    def _put(self, text: str) -> None:
        if not text:
            return
        if self._wants_blank:
            self._wants_blank = False
            if self._pieces:
                blank = self._marks("> ", min(self._blank_quotes, self._quotes))
                self._pieces.append(f"\n{blank.rstrip()}\n{self._prefix()}")
            elif self._quotes:
                self._pieces.append(self._prefix())
        self._pieces.append(text)
        self._line_start = False

    def _prefix(self) -> str:
        return self._marks("> ", self._quotes)

    def _marks(self, mark: str, count: int) -> str:
        """Marks of nesting, as long as there is room for them."""
        marks = mark * count
        if len(marks) > self._room_chars:
            return ""
        self._room_chars -= len(marks)
        return marks

    def _newline(self) -> None:
        if self._pre or not (self._line_start or self._wants_blank):
            self._raw_newline()

    def _raw_newline(self) -> None:
        self._pieces.append("\n" + self._prefix())
        self._line_start = True

    def _block(self) -> None:
        """What follows stands in a paragraph of its own."""
        if not self._wants_blank:
            self._blank_quotes = self._quotes
        self._blank_quotes = min(self._blank_quotes, self._quotes)
        self._wants_blank = True
        self._line_start = True


def _attribute(attributes: str, name: str) -> str:
    for match in _ATTRIBUTE.finditer(attributes):
        if match[1].lower() == name:
            value = match[2] or match[3] or match[4] or ""
            return " ".join(_unescaped(value).split())
    return ""


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:  # a character reference of thousands of digits
        return text


def _tidy(text: str) -> str:
    lines = [line.rstrip(" ") for line in text.split("\n")]
    return "\n".join(lines).strip("\n ")
