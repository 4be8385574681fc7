"""What is shown of a document that was found, in as many bytes as there are for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from zibaldone.find.documents import DocumentHit
from zibaldone.limits import HIT_LABEL_CHARS_MAX, SNIPPET_CHARS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Query
from zibaldone.text.snippet import Match, cut, matches, spans

_VIEWS = ((SNIPPET_CHARS_MAX, 160), (SNIPPET_CHARS_MAX,), (200,), (120,), (60,))
"""How many characters of each passage are shown, from the fullest view to the shortest."""

_MATCHES_MAX = 8


def shown_hits(hits: Sequence[DocumentHit], query: Query, bytes_max: int) -> list[dict[str, Any]]:
    """All hits where possible: a long list shows less of each before it leaves one out."""
    shown: list[dict[str, Any]] = []
    left_bytes = bytes_max
    for position, hit in enumerate(hits):
        share_bytes = left_bytes // (len(hits) - position)
        places = [matches(passage.text, query) for passage in hit.passages]
        for view in _VIEWS:
            item = _shown(hit, places, view)
            size_bytes = len(orjson.dumps(item)) + 1
            if size_bytes <= share_bytes:
                break
        if size_bytes > left_bytes:
            break
        shown.append(item)
        left_bytes -= size_bytes
    return shown


def _shown(
    hit: DocumentHit, places: Sequence[Sequence[Match]], view: Sequence[int]
) -> dict[str, Any]:
    first = hit.passages[0]
    return {
        "document_id": first.document_id,
        "title": _label(first.title),
        "score": round(hit.score, 4),
        "passages": [
            _shown_passage(passage, found, chars_max)
            for passage, found, chars_max in zip(hit.passages, places, view, strict=False)
        ],
    }


def _shown_passage(passage: ChunkView, found: Sequence[Match], chars_max: int) -> dict[str, Any]:
    text, start = cut(passage.text, found, chars_max)
    shown: dict[str, Any] = {"snippet": text, "start": passage.start + start}
    if passage.heading:
        shown["heading"] = _label(passage.heading)
    if inside := spans(found, start, start + len(text)):
        shown["matches"] = [[begin, end] for begin, end in inside[:_MATCHES_MAX]]
    return shown


def _label(text: str) -> str:
    return text if len(text) <= HIT_LABEL_CHARS_MAX else text[: HIT_LABEL_CHARS_MAX - 1] + "…"
