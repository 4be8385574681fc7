"""search_knowledge: one hit for each document, with its best passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.find.candidates import Meaning, Wanted, gather
from commonplace.find.fusion import Fused, weighted_scores
from commonplace.model.query import Filter
from commonplace.store.port import PassageView, Reader
from commonplace.text.tokens import Query

CANDIDATES_PER_LEG = 100
"""The measured optimum on the retrieval sets; more costs time and brings nothing."""

VECTOR_WEIGHT = 0.5
"""Of the fused score, for a text in a language the model knows (docs/explain/finding.md)."""

_PASSAGES_PER_DOCUMENT = 2


@dataclass(frozen=True, slots=True)
class DocumentHit:
    score: float
    passages: list[PassageView]


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[DocumentHit]
    reason: str | None
    """Why it was found by keywords alone, if vectors could have been used."""


def search_documents(
    reader: Reader,
    query: Query,
    where: Filter,
    meaning: Meaning | None,
    *,
    vector_weight: float,
    similarity_min: float,
    limit: int,
) -> Found:
    wanted = Wanted(
        query,
        where,
        lexical_max=CANDIDATES_PER_LEG,
        vector_max=CANDIDATES_PER_LEG,
        similarity_min=similarity_min,
    )
    found = gather(reader, wanted, meaning)
    fused = weighted_scores(
        found.lexical,
        found.vector,
        found.word_scores,
        found.similarities,
        vector_weight=vector_weight if found.similarities else 0.0,
    )
    return Found(_by_document(reader, fused, limit), found.reason)


def _by_document(reader: Reader, fused: Sequence[Fused], limit: int) -> list[DocumentHit]:
    views = reader.lexical.passages(one.chunk_key for one in fused)
    hits: dict[str, DocumentHit] = {}
    for one in fused:
        view = views.get(one.chunk_key)
        if view is None:
            continue
        hit = hits.get(view.document_id)
        if hit is None:
            if len(hits) < limit:
                hits[view.document_id] = DocumentHit(one.score, [view])
        elif len(hit.passages) < _PASSAGES_PER_DOCUMENT:
            hit.passages.append(view)
    return list(hits.values())
