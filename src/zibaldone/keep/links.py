"""What a document links to, and what links to it."""

from __future__ import annotations

from dataclasses import dataclass

from zibaldone.keep.reads import live_part
from zibaldone.limits import LINKS_MAX
from zibaldone.model.link import Link, LinkedDocument
from zibaldone.store.port import Reader
from zibaldone.text.links import names_of

_EACH = 2
"""Documents of one name that are looked for: the first of them may be the one that links."""


@dataclass(frozen=True, slots=True)
class OutLink:
    target: str
    """As the text means it: a path, or a name."""
    document: LinkedDocument | None
    """None: there is no such document."""


@dataclass(frozen=True, slots=True)
class Linked:
    links: list[OutLink]
    backlinks: list[LinkedDocument]
    truncated: bool


def linked(reader: Reader, document_id: str) -> Linked:
    document = live_part(reader, document_id, 0)
    out = reader.links.out(document)[:LINKS_MAX]
    names = [link.target for link in out if link.kind == "name"]
    named = reader.links.with_names(names, each=_EACH) if names else {}
    links = [OutLink(link.target, _target(reader, link, named, document_id)) for link in out]
    own = names_of(document_id, document.title)
    pointing: list[Link] = [Link("name", name) for name in own]
    pointing += [Link("path", path) for path in _paths(document_id)]
    found = reader.links.pointing(pointing, limit=LINKS_MAX + 2)
    backlinks = [one for one in found if one.document_id != document_id]
    is_cut = len(backlinks) > LINKS_MAX or len(out) == LINKS_MAX
    return Linked(links, backlinks[:LINKS_MAX], is_cut)


def _paths(document_id: str) -> list[str]:
    """Links may leave out the suffix of a Markdown file."""
    is_markdown = document_id.lower().endswith(".md")
    return [document_id, document_id[:-3]] if is_markdown else [document_id]


def _target(
    reader: Reader, link: Link, named: dict[str, list[LinkedDocument]], own_id: str
) -> LinkedDocument | None:
    if link.kind == "name":  # a short text may have its title from a link: it does not mean itself
        others = (one for one in named.get(link.target, ()) if one.document_id != own_id)
        return next(others, None)
    for path in (link.target, f"{link.target}.md"):
        part = reader.documents.peek(path, 0)
        if part is not None and part.is_live:
            return LinkedDocument(part.document_id, part.title)
    return None
