"""search_knowledge: one hit for each document, with its best passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.embed.port import Embedder
from commonplace.find.candidates import Candidates, gather
from commonplace.find.fusion import Fused, weighted_scores
from commonplace.find.query_vector import QueryVector
from commonplace.limits import SNIPPET_CHARS_MAX
from commonplace.model.query import Filter
from commonplace.store.port import PassageView, Reader
from commonplace.text.tokens import Query, highlight_spans, snippet

CANDIDATES_PER_LEG = 100
"""The measured optimum on the retrieval sets; more costs time and brings nothing."""

VECTOR_WEIGHT = 0.5
"""Of the fused score, for a text in a language the model knows (docs/explain/finding.md)."""

_PASSAGES_PER_DOCUMENT = 2
_SECOND_SNIPPET_CHARS = 160


@dataclass(frozen=True, slots=True)
class DocumentHit:
    score: float
    passages: list[PassageView]


def search_documents(
    reader: Reader,
    text: str,
    query: Query,
    wanted: Filter,
    *,
    limit: int,
    embedder: Embedder | None,
    query_vector: QueryVector,
) -> list[DocumentHit]:
    weight, identity = 0.0, ""
    if embedder is not None and query_vector.vector is not None:
        weight, identity = VECTOR_WEIGHT * embedder.vector_weight(text), embedder.identity
    candidates = gather(
        reader,
        query,
        wanted,
        identity=identity,
        vector=query_vector.vector if weight > 0 else None,
        lexical_max=CANDIDATES_PER_LEG,
        vector_max=CANDIDATES_PER_LEG,
    )
    return _by_document(reader, _fused(candidates, weight), limit)


def _fused(candidates: Candidates, weight: float) -> list[Fused]:
    return weighted_scores(
        candidates.lexical, candidates.vector, candidates.similarities, vector_weight=weight
    )


def _by_document(reader: Reader, fused: Sequence[Fused], limit: int) -> list[DocumentHit]:
    views = reader.lexical.passages(one.chunk_key for one in fused)
    hits: dict[str, DocumentHit] = {}
    for one in fused:
        view = views.get(one.chunk_key)
        if view is None:
            continue
        hit = hits.get(view.document_id)
        if hit is None:
            if len(hits) == limit:
                continue
            hits[view.document_id] = DocumentHit(one.score, [view])
        elif len(hit.passages) < _PASSAGES_PER_DOCUMENT:
            hit.passages.append(view)
    return list(hits.values())


def shown(hit: DocumentHit, query: Query) -> dict[str, Any]:
    first = hit.passages[0]
    sizes = (SNIPPET_CHARS_MAX, _SECOND_SNIPPET_CHARS)
    return {
        "document_id": first.document_id,
        "title": first.title,
        "score": round(hit.score, 4),
        "passages": [
            _shown_passage(view, query, chars_max)
            for view, chars_max in zip(hit.passages, sizes, strict=False)
        ],
    }


def _shown_passage(view: PassageView, query: Query, chars_max: int) -> dict[str, Any]:
    text, start = snippet(view.text, query, chars_max)
    shown_passage: dict[str, Any] = {"snippet": text, "start": view.start + start}
    if view.heading:
        shown_passage["heading"] = view.heading
    matches = [[begin, end] for begin, end in highlight_spans(text, query)][:8]
    if matches:
        shown_passage["matches"] = matches
    return shown_passage
