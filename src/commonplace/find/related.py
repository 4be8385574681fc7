"""Documents that say something about the title of another."""

from __future__ import annotations

from typing import Any

from commonplace.limits import RELATED_MAX, RELATED_SNIPPET_CHARS_MAX
from commonplace.model.document import Document
from commonplace.store.port import Reader
from commonplace.text.tokens import parse_query, snippet


def related(reader: Reader, document: Document) -> list[dict[str, Any]]:
    title = document.title or document.document_id.rpartition("/")[2]
    query = parse_query(title)
    hits = reader.lexical.search(query, limit=RELATED_MAX * 5)
    found: dict[str, dict[str, Any]] = {}
    for hit in hits:
        if hit.document_id == document.document_id or hit.document_id in found:
            continue
        text, _ = snippet(hit.text, query, RELATED_SNIPPET_CHARS_MAX)
        found[hit.document_id] = {
            "document_id": hit.document_id,
            "title": hit.title,
            "snippet": text,
        }
        if len(found) == RELATED_MAX:
            break
    return list(found.values())
