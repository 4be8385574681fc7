"""Documents that say something about the title of another."""

from __future__ import annotations

from typing_extensions import TypedDict

from zibaldone.limits import RELATED_MAX, RELATED_SNIPPET_CHARS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.document import DocumentFields
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader
from zibaldone.text.query import parse_query
from zibaldone.text.snippet import snippet
from zibaldone.text.words import fold_case, lexemes

_CHUNKS_LOOKED_AT = 30
"""Enough for three documents, unless one of them has the words in most of its chunks."""


class Related(TypedDict):
    document_id: str
    title: str
    snippet: str


def related(reader: Reader, document: DocumentFields) -> list[Related]:
    query = _words_of(document.title or document.document_id.rpartition("/")[2])
    return [
        {
            "document_id": view.document_id,
            "title": view.title,
            "snippet": snippet(view.text, query, RELATED_SNIPPET_CHARS_MAX)[0],
        }
        for view in _best_of_each(reader, query, document.document_id)
    ]


def _words_of(title: str) -> Query:
    """A title's quotes, minus signs and colons are its author's, not operators of a search."""
    return parse_query(" ".join(lexemes(fold_case(title))).replace("title:", "title "))


def _best_of_each(reader: Reader, query: Query, but: str) -> list[ChunkView]:
    """The best chunks of other documents, one of each."""
    best: dict[str, ChunkView] = {}
    for _ in range(RELATED_MAX):  # at least one more each time
        wanted = Filter(without_ids=(but, *best))
        scored = reader.lexical.search(query, limit=_CHUNKS_LOOKED_AT, wanted=wanted)
        views = reader.chunks.views(key for key, _ in scored)
        for key, _ in scored:
            if key in views and len(best) < RELATED_MAX:
                best.setdefault(views[key].document_id, views[key])
        if len(scored) < _CHUNKS_LOOKED_AT or len(best) == RELATED_MAX:
            break
    return list(best.values())
