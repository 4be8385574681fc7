"""document_links: what a document links to, and what links to it."""

from __future__ import annotations

from typing_extensions import TypedDict

from zibaldone.keep.links import linked
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class DocumentLinks(Arguments):
    path: DocumentPath


class OutLink(TypedDict):
    target: str
    """As the text means it: a path from the top, or the name in a wiki link."""
    document_id: str | None
    """None: there is no such document."""
    title: str | None


class Backlink(TypedDict):
    document_id: str
    title: str


class LinkedDocuments(TypedDict):
    document_id: str
    links: list[OutLink]
    backlinks: list[Backlink]
    truncated: bool


async def handle(call: Call, given: DocumentLinks) -> LinkedDocuments:
    document_id = normalize.document_id(given.path)
    found = await call.runtime.store.read(
        call.principal.tenant, lambda reader: linked(reader, document_id)
    )
    return {
        "document_id": document_id,
        "links": [
            {
                "target": link.target,
                "document_id": None if link.document is None else link.document.document_id,
                "title": None if link.document is None else link.document.title,
            }
            for link in found.links
        ],
        "backlinks": [
            {"document_id": one.document_id, "title": one.title} for one in found.backlinks
        ],
        "truncated": found.truncated,
    }


TOOL = ToolSpec(
    name="document_links",
    title="Links of a document",
    description=(
        "List the documents that a document links to (Markdown and [[wiki]] links; null where "
        "there is none), and those that link to it."
    ),
    arguments=DocumentLinks,
    result=LinkedDocuments,
    effect="read",
    handler=handle,
)
