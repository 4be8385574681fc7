"""Documents found by words and by meaning: one hit for each, with its best chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zibaldone.errors import DeadlineExceeded
from zibaldone.find.candidates import Candidates, Wanted, gather, joined
from zibaldone.find.evidence import DOCUMENTS_LOOKED_AT, asked_terms, document_score
from zibaldone.find.fusion import Fused, weighted_scores, with_bonus
from zibaldone.find.judge import Judge, judge
from zibaldone.find.meaning import Meaning
from zibaldone.find.missing import Missing
from zibaldone.find.parse import QuotingRank
from zibaldone.find.rarest import with_rarest
from zibaldone.find.relevance import RELEVANT_MIN, Relevance, is_weak
from zibaldone.find.share import vector_share
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader

CANDIDATES_PER_LEG = 100
"""The measured optimum on the retrieval sets; more costs time and brings nothing."""

_CHUNKS_PER_DOCUMENT = 2

_ROUNDS_MAX = 4
"""Searches for one answer. Where long documents take all places with their many chunks, another
search without them finds what stands behind."""


@dataclass(frozen=True, slots=True)
class DocumentHit:
    score: float
    relevance: Relevance
    chunks: list[ChunkView]
    score_last: float = 0.0
    """Of the last of these chunks."""


@dataclass(frozen=True, slots=True)
class DocumentHits:
    hits: list[DocumentHit]
    quoting: QuotingRank | None
    """Where chunks that hold a quotation of the query are; None: it is not known."""
    missing: tuple[Missing, ...]
    """What the search had to do without."""
    is_cut: bool
    """There may be more documents that match, though there are fewer hits than asked for."""

    @property
    def is_weak(self) -> bool:
        """No hit is good."""
        return is_weak(hit.relevance.value for hit in self.hits)


def search_documents(
    reader: Reader, query: Query, where: Filter, meaning: Meaning | None, *, limit: int
) -> DocumentHits:
    wanted = Wanted(
        with_rarest(reader, query),
        where,
        lexical_max=CANDIDATES_PER_LEG,
        vector_max=CANDIDATES_PER_LEG,
        similarity_min=-1.0 if meaning is None else meaning.similarity_min,
    )
    candidates, document_of, is_full = _gathered(reader, wanted, meaning, limit)
    judged = judge(reader, wanted.query, meaning, candidates)
    fused = weighted_scores(
        candidates.lexical,
        candidates.vector,
        candidates.word_scores,
        candidates.similarities,
        vector_share=vector_share(reader, candidates, meaning, judged.word_trust),
        word_trust=judged.word_trust,
    )
    ranked = with_bonus(fused, candidates.quoting, candidates.quoting_bonus)
    looked_at = max(limit, DOCUMENTS_LOOKED_AT)
    hits = _by_document(reader, ranked, document_of, judged, looked_at)
    if candidates.quoting_rank != "first":
        hits = _by_evidence(hits, wanted.query)
    hits = hits[:limit]
    return DocumentHits(
        hits,
        quoting=candidates.quoting_rank,
        missing=candidates.missing,
        is_cut=len(hits) < limit and is_full,
    )


def newest_first(matches: DocumentHits, limit: int) -> DocumentHits:
    """Of the good ones, or of all if none is, those that were written last."""
    good = [hit for hit in matches.hits if hit.relevance.value >= RELEVANT_MIN] or matches.hits
    newest = sorted(good, key=lambda hit: -hit.chunks[0].updated_at_us)  # stable: else best first
    return replace(matches, hits=newest[:limit])


def _gathered(
    reader: Reader, wanted: Wanted, meaning: Meaning | None, limit: int
) -> tuple[Candidates, dict[int, str], bool]:
    """Candidates of as many documents as are asked for, if there are, and the document of each.

    Also whether there can be more of them.
    """
    candidates = latest = gather(reader, wanted, meaning)
    document_of = _documents_of(reader, latest)
    for _ in range(_ROUNDS_MAX - 1):
        seen = tuple(dict.fromkeys(document_of.values()))
        if len(seen) >= limit or not _is_full(latest, wanted):
            break
        unseen = replace(wanted.where, without_ids=seen)
        try:
            latest = gather(reader, replace(wanted, where=unseen), meaning)
        except DeadlineExceeded:
            break  # what there is will do; the answer says that there may be more
        candidates = joined(candidates, latest)
        document_of |= _documents_of(reader, latest)
    return candidates, document_of, _is_full(latest, wanted)


def _documents_of(reader: Reader, candidates: Candidates) -> dict[int, str]:
    keys = {key for key, _ in (*candidates.lexical, *candidates.vector)}
    return reader.chunks.documents_of(keys)


def _is_full(candidates: Candidates, wanted: Wanted) -> bool:
    """Did a leg bring as much as it may? Then there can be more."""
    return (
        len(candidates.lexical) >= wanted.lexical_max or len(candidates.vector) >= wanted.vector_max
    )


def _by_document(
    reader: Reader,
    fused: Sequence[Fused],
    document_of: Mapping[int, str],
    judged: Judge,
    limit: int,
) -> list[DocumentHit]:
    """The best documents, each by its best chunk; only what is shown of them is read."""
    best: dict[str, list[Fused]] = {}
    keys_of: dict[str, list[int]] = {}
    for chunk in fused:
        document_id = document_of.get(chunk.chunk_key)
        if document_id is None or (len(best) == limit and document_id not in best):
            continue
        keys_of.setdefault(document_id, []).append(chunk.chunk_key)
        chunks = best.setdefault(document_id, [])
        if len(chunks) < _CHUNKS_PER_DOCUMENT:
            chunks.append(chunk)
    views = reader.chunks.views(chunk.chunk_key for some in best.values() for chunk in some)
    return [
        DocumentHit(
            chunks[0].score,
            judged.relevance(keys_of[document_id]),
            [views[chunk.chunk_key] for chunk in chunks],
            chunks[-1].score,
        )
        for document_id, chunks in best.items()
    ]


def _by_evidence(hits: Sequence[DocumentHit], query: Query) -> list[DocumentHit]:
    """The first hits in the order of all that speaks for them; the others follow."""
    asked = asked_terms(query)
    first, others = hits[:DOCUMENTS_LOOKED_AT], hits[DOCUMENTS_LOOKED_AT:]
    scores = [document_score(hit.score, hit.score_last, hit.chunks, asked) for hit in first]
    order = sorted(range(len(first)), key=lambda place: -scores[place])
    return [*(replace(first[place], score=min(1.0, scores[place])) for place in order), *others]
