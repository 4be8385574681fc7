"""Documents that say something about the title of another."""

from __future__ import annotations

from typing import Any

from commonplace.limits import RELATED_MAX, RELATED_SNIPPET_CHARS_MAX
from commonplace.model.document import Document
from commonplace.store.port import PassageView, Reader
from commonplace.text.snippet import snippet
from commonplace.text.tokens import parse_query

_PASSAGES_LOOKED_AT = 30
"""The document itself matches its own title in many passages."""


def related(reader: Reader, document: Document) -> list[dict[str, Any]]:
    title = document.title or document.document_id.rpartition("/")[2]
    query = parse_query(title)
    scored = reader.lexical.search(query, limit=_PASSAGES_LOOKED_AT)
    views = reader.lexical.passages(key for key, _ in scored)
    others: dict[str, PassageView] = {}
    for key, _ in scored:
        view = views.get(key)
        if view is not None and view.document_id != document.document_id:
            others.setdefault(view.document_id, view)
    return [
        {
            "document_id": view.document_id,
            "title": view.title,
            "snippet": snippet(view.text, query, RELATED_SNIPPET_CHARS_MAX)[0],
        }
        for view in list(others.values())[:RELATED_MAX]
    ]
