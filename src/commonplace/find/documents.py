"""One hit for each document, with its best passage."""

from __future__ import annotations

from typing import Any

from commonplace.limits import SNIPPET_CHARS_MAX
from commonplace.store.port import LexicalHit, Reader
from commonplace.text.tokens import Query, snippet

_PASSAGES_PER_DOCUMENT = 5
"""How many passages are looked at for each hit wanted: long documents match in many places."""


def search_documents(
    reader: Reader, query: Query, *, limit: int, prefix: str = ""
) -> list[dict[str, Any]]:
    hits = reader.lexical.search(query, limit=limit * _PASSAGES_PER_DOCUMENT, prefix=prefix)
    best: dict[str, LexicalHit] = {}
    for hit in hits:
        best.setdefault(hit.document_id, hit)
    return [_shown(hit, query) for hit in list(best.values())[:limit]]


def _shown(hit: LexicalHit, query: Query) -> dict[str, Any]:
    text, start = snippet(hit.text, query, SNIPPET_CHARS_MAX)
    return {
        "document_id": hit.document_id,
        "title": hit.title,
        "score": round(hit.score, 4),
        "snippet": text,
        "start": hit.start + start,
    }
