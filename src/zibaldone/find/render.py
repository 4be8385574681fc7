"""What is shown of the documents that were found, within a number of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

import orjson
from typing_extensions import TypedDict

from zibaldone.find.documents import DocumentHit
from zibaldone.limits import HIT_LABEL_CHARS_MAX, SNIPPET_CHARS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.instant import to_iso
from zibaldone.model.query import Query
from zibaldone.text.snippet import Match, cut, matches, spans

_VIEWS = ((SNIPPET_CHARS_MAX, 160), (SNIPPET_CHARS_MAX,), (200,), (120,), (60,))
"""How many characters of each chunk are shown, from the fullest view to the shortest."""

_MATCHES_MAX = 8


class ShownChunk(TypedDict):
    snippet: str
    start: int
    """Of the snippet in the body, in characters."""
    heading: NotRequired[str]
    matches: NotRequired[list[list[int]]]
    """Start and end in the snippet of each word that was found."""


class ShownHit(TypedDict):
    document_id: str
    title: str
    score: float
    """Ranks the hits of this answer."""
    relevance: float
    """From 0 to 1; compares across answers."""
    updated_at: str
    passages: list[ShownChunk]


def render_hits(hits: Sequence[DocumentHit], query: Query, bytes_max: int) -> list[ShownHit]:
    """All hits where possible: a long list shows less of each before it leaves one out."""
    rendered: list[ShownHit] = []
    left_bytes = bytes_max
    for position, hit in enumerate(hits):
        share_bytes = left_bytes // (len(hits) - position)
        places = [matches(chunk.text, query) for chunk in hit.chunks]
        for view in _VIEWS:
            item = _render_hit(hit, places, view)
            size_bytes = len(orjson.dumps(item)) + 1
            if size_bytes <= share_bytes:
                break
        if size_bytes > left_bytes:
            break
        rendered.append(item)
        left_bytes -= size_bytes
    return rendered


def _render_hit(
    hit: DocumentHit, places: Sequence[Sequence[Match]], view: Sequence[int]
) -> ShownHit:
    first = hit.chunks[0]
    return {
        "document_id": first.document_id,
        "title": _label(first.title),
        "score": round(hit.score, 4),
        "relevance": round(hit.relevance.value, 3),
        "updated_at": to_iso(first.updated_at_us),
        "passages": [
            _render_chunk(chunk, words, chars_max)
            for chunk, words, chars_max in zip(hit.chunks, places, view, strict=False)
        ],
    }


def _render_chunk(chunk: ChunkView, words: Sequence[Match], chars_max: int) -> ShownChunk:
    text, start = cut(chunk.text, words, chars_max)
    shown: ShownChunk = {"snippet": text, "start": chunk.start + start}
    if chunk.heading:
        shown["heading"] = _label(chunk.heading)
    if inside := spans(words, start, start + len(text)):
        shown["matches"] = [[begin, end] for begin, end in inside[:_MATCHES_MAX]]
    return shown


def _label(text: str) -> str:
    return text if len(text) <= HIT_LABEL_CHARS_MAX else text[: HIT_LABEL_CHARS_MAX - 1] + "…"
