"""HTML to Markdown: what a reader reads, without the furniture of the page.

The converter (markdownify) recurses over the tree and has patterns that are quadratic in runs of
blanks, so the tree is made harmless while it is built: bounded in depth, without long blank runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from zibaldone import extras
from zibaldone.errors import PayloadTooLarge
from zibaldone.limits import (
    HTML_BLANK_RUN_CHARS_MAX,
    HTML_BYTES_MAX,
    HTML_DEPTH_MAX,
    HTML_LIST_NUMBERED_MAX,
)

# fmt: off
_FURNITURE = frozenset({
    "base", "button", "canvas", "embed", "iframe", "input", "link", "meta", "nav", "noscript",
    "object", "script", "select", "style", "svg", "template", "textarea", "title",
})
_PARAGRAPH_ENDERS = frozenset({
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu", "nav",
    "ol", "p", "pre", "section", "table", "ul",
})
# fmt: on
_PERMALINK_CLASSES = frozenset({"headerlink", "anchor-link", "anchorjs-link", "hash-link"})
_HEADED = ["h1", "h2", "h3", "h4", "h5", "h6", "dt", "caption", "figcaption"]
_PERMALINK_MARKS = frozenset({"\u00b6", "#", "\u00a7", "\U0001f517"})
_CELLS = frozenset({"td", "th"})
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_DEFINITIONS = frozenset({"dt", "dd"})
_BLOCKS = (_PARAGRAPH_ENDERS - {"p"}) | _CELLS | _DEFINITIONS | {"li", "caption"}
_COLSPAN_DIGITS_MAX = 2
_BLANK_RUN = re.compile(rf"[ \t\r\n]{{{HTML_BLANK_RUN_CHARS_MAX},}}")

# An opening tag → the open elements it ends, and the elements beyond which it does not look.
# HTML lets authors leave these end tags out; without them a list would nest in its own items.
_IMPLIED_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    **{name: (frozenset({"p"}), _BLOCKS) for name in _PARAGRAPH_ENDERS},
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    **{name: (_DEFINITIONS, frozenset({"dl"})) for name in _DEFINITIONS},
    **{name: (_CELLS, frozenset({"table", "tr"})) for name in _CELLS},
    "tr": (_CELLS | {"tr"}, frozenset({"table"})),
    **{name: (_CELLS | {"tr"} | _ROW_GROUPS, frozenset({"table"})) for name in _ROW_GROUPS},
}


@dataclass(frozen=True, slots=True)
class Page:
    text: str
    title: str
    """The page's title, else its first top heading, else empty."""


def page_to_markdown(markup: str) -> Page:
    if len(markup) > HTML_BYTES_MAX:
        raise PayloadTooLarge(
            f"The page has more than {HTML_BYTES_MAX} characters of markup.",
            chars_max=HTML_BYTES_MAX,
        )
    # The parser warns of markup without tags and of XML; a root element up front settles both.
    tree = _tree_class()("<html>" + markup, "html.parser")
    for link in tree.find_all("a"):
        if _is_permalink(link):
            link.decompose()
    titled = tree.find("title") or tree.find("h1")
    title = titled.get_text(" ", strip=True) if titled else ""
    mains = tree.find_all("main")
    text = _markdown(mains[0]) if len(mains) == 1 else ""
    return Page(text=text or _markdown(tree), title=" ".join(title.split()))


def _is_permalink(link: Any) -> bool:
    """A mark beside a heading that links to the heading itself, as Sphinx and others write it."""
    if not (link.get("href") or "").startswith("#"):
        return False
    if _PERMALINK_CLASSES.intersection(link.get("class") or ()):
        return True
    is_mark = link.get_text(strip=True) in _PERMALINK_MARKS
    return is_mark and link.find_parent(_HEADED) is not None


def _markdown(root: Any) -> str:
    converter = _converter_class()(
        heading_style="atx",
        bullets="-",
        # An escaped name (`snake\_case`) would no longer be found by its spelling.
        escape_asterisks=False,
        escape_underscores=False,
        code_language_callback=_code_language,
        strip_pre=None,
    )
    text: str = converter.convert_soup(root)
    return text.strip()


def _code_language(pre: Any) -> str:
    """`<pre><code class="language-python">`, the form highlighters agree on."""
    for element in (pre, pre.code):
        for word in (element.get("class") or ()) if element else ():
            if word.startswith("language-"):
                return str(word.removeprefix("language-"))
    return ""


@cache
def _tree_class() -> Any:
    base: Any = extras.require("ingest", "bs4").BeautifulSoup

    class BoundedTree(base):  # type: ignore[misc]  # known only where the extra is installed
        def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Any:
            _make_room(self, name)
            tag = super().handle_starttag(name, *args, **kwargs)
            # A cell becomes one column mark for each column it spans.
            if tag is not None and len(tag.get("colspan", "")) > _COLSPAN_DIGITS_MAX:
                del tag["colspan"]
            return tag

        def endData(self, *args: Any) -> None:  # noqa: N802 - the name is the library's
            if self.current_data:
                self.current_data[:] = [_BLANK_RUN.sub(_one_blank, "".join(self.current_data))]
            super().endData(*args)

    return BoundedTree


def _make_room(tree: Any, name: str) -> None:
    """End the open elements that an opening tag of this name ends, and those that nest too deep."""
    closes, barrier = _IMPLIED_ENDS.get(name, (frozenset(), frozenset()))
    open_max = HTML_DEPTH_MAX
    if closes:
        for position in range(len(tree.tagStack) - 1, 0, -1):
            if tree.tagStack[position].name in closes:
                open_max = position
            elif tree.tagStack[position].name in barrier:
                break
    while len(tree.tagStack) > open_max:
        tree.handle_endtag(tree.currentTag.name)


def _one_blank(run: re.Match[str]) -> str:
    return "\n" if "\n" in run[0] else " "


@cache
def _converter_class() -> Any:
    base: Any = extras.require("ingest", "markdownify").MarkdownConverter
    unread_string: Any = extras.require("ingest", "bs4.element").PreformattedString

    class ReadersConverter(base):  # type: ignore[misc]  # known only where the extra is installed
        def process_tag(self, node: Any, parent_tags: Any = None) -> Any:
            if (
                node.name in _FURNITURE
                or node.get("role") == "navigation"
                or node.has_attr("hidden")
            ):
                return ""
            if node.name == "ol" and len(node.contents) > HTML_LIST_NUMBERED_MAX:
                node.name = "ul"
            return super().process_tag(node, parent_tags)

        def process_text(self, el: Any, parent_tags: Any = None) -> Any:
            # Comments, declarations and `<?php … ?>` are strings to the parser, not to a reader.
            return "" if isinstance(el, unread_string) else super().process_text(el, parent_tags)

        def convert_pre(self, el: Any, text: str, parent_tags: Any) -> Any:
            return super().convert_pre(el, text.strip("\n"), parent_tags)

        def convert_a(self, el: Any, text: str, parent_tags: Any) -> Any:
            if _scheme(el.get("href")) in ("javascript", "data"):
                return text
            return super().convert_a(el, text, parent_tags)

        def convert_img(self, el: Any, text: str, parent_tags: Any) -> Any:
            # An inlined picture is megabytes of base64; one without words says nothing in a text.
            if not el.get("alt") or _scheme(el.get("src")) == "data":
                return el.get("alt") or ""
            return super().convert_img(el, text, parent_tags)

    return ReadersConverter


def _scheme(url: str | None) -> str:
    return (url or "").partition(":")[0].strip().lower()
