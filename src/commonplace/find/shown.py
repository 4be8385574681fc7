"""What is shown of a document that was found, in as many bytes as there are for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from commonplace.find.documents import DocumentHit
from commonplace.limits import HIT_LABEL_CHARS_MAX, SNIPPET_CHARS_MAX
from commonplace.store.port import PassageView
from commonplace.text.tokens import Query, highlight_spans, snippet

_VIEWS = ((SNIPPET_CHARS_MAX, 160), (SNIPPET_CHARS_MAX,), (200,), (120,), (60,))
"""How many characters of each passage are shown, from the fullest view to the shortest."""

_MATCHES_MAX = 8


def shown_hits(hits: Sequence[DocumentHit], query: Query, bytes_max: int) -> list[dict[str, Any]]:
    """All hits where possible: a long list shows less of each before it leaves one out."""
    shown: list[dict[str, Any]] = []
    left_bytes = bytes_max
    for position, hit in enumerate(hits):
        share_bytes = left_bytes // (len(hits) - position)
        for view in _VIEWS:
            item = _shown(hit, query, view)
            size_bytes = len(orjson.dumps(item)) + 1
            if size_bytes <= share_bytes:
                break
        if size_bytes > left_bytes:
            break
        shown.append(item)
        left_bytes -= size_bytes
    return shown


def _shown(hit: DocumentHit, query: Query, view: Sequence[int]) -> dict[str, Any]:
    first = hit.passages[0]
    return {
        "document_id": first.document_id,
        "title": _label(first.title),
        "score": round(hit.score, 4),
        "passages": [
            _shown_passage(passage, query, chars_max)
            for passage, chars_max in zip(hit.passages, view, strict=False)
        ],
    }


def _shown_passage(passage: PassageView, query: Query, chars_max: int) -> dict[str, Any]:
    text, start = snippet(passage.text, query, chars_max)
    shown: dict[str, Any] = {"snippet": text, "start": passage.start + start}
    if passage.heading:
        shown["heading"] = _label(passage.heading)
    matches = [[begin, end] for begin, end in highlight_spans(text, query)][:_MATCHES_MAX]
    if matches:
        shown["matches"] = matches
    return shown


def _label(text: str) -> str:
    return text if len(text) <= HIT_LABEL_CHARS_MAX else text[: HIT_LABEL_CHARS_MAX - 1] + "…"
