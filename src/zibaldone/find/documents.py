"""search_knowledge: one hit for each document, with its best passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zibaldone.find.candidates import Candidates, Meaning, Wanted, gather, joined
from zibaldone.find.fusion import Fused, weighted_scores
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader

CANDIDATES_PER_LEG = 100
"""The measured optimum on the retrieval sets; more costs time and brings nothing."""

VECTOR_WEIGHT = 0.5
"""Of the fused score, for a text in a language the model knows (docs/explain/finding.md)."""

_PASSAGES_PER_DOCUMENT = 2

_ROUNDS_MAX = 4
"""Searches for one answer. Where long documents take all places with their many passages, another
one without them finds what stands behind."""


@dataclass(frozen=True, slots=True)
class DocumentHit:
    score: float
    passages: list[ChunkView]


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[DocumentHit]
    reason: str | None
    """Why it was found by keywords alone, if vectors could have been used."""
    is_cut: bool
    """There may be more documents that match, though fewer than asked for were found."""


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
    found, document_of, is_full = _gathered(reader, wanted, meaning, limit)
    fused = weighted_scores(
        found.lexical,
        found.vector,
        found.word_scores,
        found.similarities,
        vector_weight=vector_weight if found.similarities else 0.0,
    )
    hits = _by_document(reader, fused, document_of, limit)
    return Found(hits, found.reason, is_cut=len(hits) < limit and is_full)


def _gathered(
    reader: Reader, wanted: Wanted, meaning: Meaning | None, limit: int
) -> tuple[Candidates, dict[int, str], bool]:
    """Candidates of as many documents as are asked for, if there are, and the document of each.

    Also whether there can be more of them.
    """
    found = latest = gather(reader, wanted, meaning)
    document_of = _documents_of(reader, latest)
    for _ in range(_ROUNDS_MAX - 1):
        seen = tuple(dict.fromkeys(document_of.values()))
        if len(seen) >= limit or not _is_full(latest, wanted):
            break
        unseen = replace(wanted.where, without_ids=seen)
        latest = gather(reader, replace(wanted, where=unseen), meaning)
        found = joined(found, latest)
        document_of |= _documents_of(reader, latest)
    return found, document_of, _is_full(latest, wanted)


def _documents_of(reader: Reader, found: Candidates) -> dict[int, str]:
    return reader.chunks.documents_of({key for key, _ in (*found.lexical, *found.vector)})


def _is_full(found: Candidates, wanted: Wanted) -> bool:
    """Did a leg bring as much as it may? Then there can be more."""
    return len(found.lexical) >= wanted.lexical_max or len(found.vector) >= wanted.vector_max


def _by_document(
    reader: Reader, fused: Sequence[Fused], document_of: Mapping[int, str], limit: int
) -> list[DocumentHit]:
    """The best documents, each by its best passage; only what is shown of them is read."""
    best: dict[str, list[Fused]] = {}
    for one in fused:
        document_id = document_of.get(one.chunk_key)
        if document_id is None or (len(best) == limit and document_id not in best):
            continue
        passages = best.setdefault(document_id, [])
        if len(passages) < _PASSAGES_PER_DOCUMENT:
            passages.append(one)
    views = reader.chunks.views(one.chunk_key for some in best.values() for one in some)
    return [
        DocumentHit(passages[0].score, [views[one.chunk_key] for one in passages])
        for passages in best.values()
    ]
