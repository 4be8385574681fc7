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
    """The best documents, each by its best passage; only what is shown of them is read."""
    document_of = reader.lexical.documents_of(one.chunk_key for one in fused)
    best: dict[str, list[Fused]] = {}
    for one in fused:
        document_id = document_of.get(one.chunk_key)
        if document_id is None or (len(best) == limit and document_id not in best):
            continue
        passages = best.setdefault(document_id, [])
        if len(passages) < _PASSAGES_PER_DOCUMENT:
            passages.append(one)
    views = reader.lexical.passages(one.chunk_key for some in best.values() for one in some)
    return [
        DocumentHit(passages[0].score, [views[one.chunk_key] for one in passages])
        for passages in best.values()
    ]
