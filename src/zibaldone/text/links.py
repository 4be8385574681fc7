"""The links in a text: Markdown's, and those of wikis."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from zibaldone.limits import DOCUMENT_ID_BYTES_MAX, LINKS_LOOKED_AT_CHARS, LINKS_MAX
from zibaldone.model.link import Link, Links
from zibaldone.text.words import fold_case

_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]{1,500}`")
_MARKDOWN = re.compile(
    r"(?<!!)\[[^\[\]\n]{0,300}\]\([ \t]{0,9}(?:<([^<>\n]{1,1024})>|([^()\s<>]{1,1024}))"
)
_DEFINED = re.compile(
    r"^[ ]{0,3}\[[^\[\]\n]{1,300}\]:[ \t]{1,9}<?([^<>\s]{1,1024})>?", re.MULTILINE
)
_WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,300})(?:#[^\[\]|\n]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_OWN = "zibaldone:///"


def links_of(document_id: str, title: str, body: str) -> Links:
    """The links from a document, and the names by which others link to it."""
    out: dict[Link, None] = {}
    for link in _links(document_id, body[:LINKS_LOOKED_AT_CHARS]):
        out[link] = None
        if len(out) == LINKS_MAX:
            break
    return Links(tuple(out), names_of(document_id, title))


def names_of(document_id: str, title: str) -> tuple[str, ...]:
    name = document_id.rpartition("/")[2]
    given = (document_id, _without_suffix(document_id), name, _without_suffix(name), title)
    return tuple(dict.fromkeys(_folded(one) for one in given if one.strip()))


def _links(document_id: str, text: str) -> Iterator[Link]:
    if "](" not in text and "[[" not in text and "]:" not in text:
        return
    prose = _CODE.sub(" ", _FENCED.sub("\n", text))
    folder = document_id.rpartition("/")[0]
    for found in _MARKDOWN.finditer(prose):
        yield from _path(folder, found[1] or found[2])
    for found in _DEFINED.finditer(prose):
        yield from _path(folder, found[1])
    for found in _WIKI.finditer(prose):
        if name := _folded(found[1]):
            yield Link("name", name)


def _path(folder: str, written: str) -> Iterator[Link]:
    """The path that a link means; none where it leads elsewhere."""
    if written.startswith(_OWN):
        written = "/" + written[len(_OWN) :]
    elif _SCHEME.match(written):
        return
    plain = unquote(written.partition("#")[0].partition("?")[0])
    if not plain or "\0" in plain:
        return
    path = posixpath.normpath(plain if plain.startswith("/") else f"{folder}/{plain}").lstrip("/")
    if path in ("", ".") or path.startswith("../") or path == "..":
        return
    if len(path.encode(errors="ignore")) <= DOCUMENT_ID_BYTES_MAX and path.isprintable():
        yield Link("path", path)


def _without_suffix(name: str) -> str:
    return name[:-3] if name.lower().endswith(".md") else name


def _folded(name: str) -> str:
    return " ".join(fold_case(name).split())[:DOCUMENT_ID_BYTES_MAX]
