"""Chunks found by words and by meaning, ranked in one of three ways."""

from __future__ import annotations

from dataclasses import dataclass

from zibaldone.find.candidates import Candidates, Wanted, gather, gather_by_words
from zibaldone.find.fusion import (
    Fused,
    by_words,
    reciprocal_ranks,
    reranked,
    weighted_scores,
    with_bonus,
)
from zibaldone.find.judge import Judge, judge
from zibaldone.find.meaning import Meaning
from zibaldone.find.missing import Missing
from zibaldone.find.parse import QuotingRank
from zibaldone.find.rarest import with_rarest
from zibaldone.find.share import vector_share
from zibaldone.limits import CANDIDATES_MAX, SEARCH_LIMIT_MAX
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader


@dataclass(frozen=True, slots=True)
class FuseRanks:
    """Both legs, by reciprocal rank fusion."""

    lexical_max: int
    vector_max: int
    k0: float
    lexical_weight: float
    vector_weight: float


@dataclass(frozen=True, slots=True)
class MixScores:
    """Both legs, by a weighted sum of their scores."""

    lexical_max: int
    vector_max: int
    vector_share: float | None = None
    """None: chosen for the query (`find.share`)."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """Keyword candidates, then the order of their stored vectors."""

    candidates_max: int
    kept_max: int


Mode = FuseRanks | MixScores | Rerank


@dataclass(frozen=True, slots=True)
class Ranking:
    chunks: list[Fused]
    judge: Judge
    lexical_count: int
    vector_count: int
    has_more: bool = False
    """There are matches beyond the candidates that were looked at."""
    score_max: float = 1.0
    """The best score there could be."""
    quoting: QuotingRank | None = None
    """Where chunks that hold a quotation are; None: it is not known."""
    missing: tuple[Missing, ...] = ()


def rank_chunks(
    reader: Reader, query: Query, where: Filter, meaning: Meaning | None, mode: Mode
) -> Ranking:
    query = with_rarest(reader, query)
    match mode:
        case FuseRanks():
            return _fused(reader, query, where, meaning, mode)
        case MixScores():
            return _mixed(reader, query, where, meaning, mode)
        case Rerank():
            return _reranked(reader, query, where, meaning, mode)


def _fused(
    reader: Reader, query: Query, where: Filter, meaning: Meaning | None, mode: FuseRanks
) -> Ranking:
    candidates = gather(reader, _wanted(query, where, mode), meaning)
    chunks = reciprocal_ranks(
        candidates.lexical,
        candidates.vector,
        k0=mode.k0,
        lexical_weight=mode.lexical_weight,
        vector_weight=mode.vector_weight,
    )
    # A leg that could not be asked takes nothing from what can be reached.
    reachable = 0.0 if candidates.lacks_words else mode.lexical_weight
    reachable += mode.vector_weight if candidates.vector else 0.0
    judged = judge(reader, query, meaning, candidates)
    return _ranking(chunks, judged, score_max=reachable / (mode.k0 + 1))


def _mixed(
    reader: Reader, query: Query, where: Filter, meaning: Meaning | None, mode: MixScores
) -> Ranking:
    candidates = gather(reader, _wanted(query, where, mode), meaning)
    judged = judge(reader, query, meaning, candidates)
    share, word_trust = mode.vector_share, 1.0
    if share is None:
        word_trust = judged.word_trust
        share = vector_share(reader, candidates, meaning, word_trust)
    elif candidates.lacks_words:
        share = 1.0
    chunks = weighted_scores(
        candidates.lexical,
        candidates.vector,
        candidates.word_scores,
        candidates.similarities,
        vector_share=share if candidates.similarities else 0.0,
        word_trust=word_trust,
    )
    return _ranking(chunks, judged)


def _reranked(
    reader: Reader, query: Query, where: Filter, meaning: Meaning | None, mode: Rerank
) -> Ranking:
    lexical_max = min(mode.candidates_max, CANDIDATES_MAX)
    candidates = gather_by_words(reader, Wanted(query, where, lexical_max, 0), meaning)
    lexical, cosines = candidates.lexical, candidates.similarities
    # Never more than SEARCH_LIMIT_MAX come back: beyond that, kept_max leaves nothing out.
    kept = mode.kept_max if mode.kept_max < SEARCH_LIMIT_MAX else len(lexical)
    has_vectors = meaning is not None and not candidates.lacks_vectors
    chunks = reranked(lexical, cosines) if has_vectors else by_words(lexical)
    return Ranking(
        _with_bonus(chunks, candidates)[:kept],
        judge(reader, query, meaning, candidates),
        len(lexical),
        len(cosines),
        quoting=candidates.quoting_rank,
        missing=candidates.missing,
    )


def _wanted(query: Query, where: Filter, mode: FuseRanks | MixScores) -> Wanted:
    return Wanted(
        query,
        where,
        lexical_max=min(mode.lexical_max, CANDIDATES_MAX),
        vector_max=min(mode.vector_max, CANDIDATES_MAX),
    )


def _ranking(chunks: list[Fused], judged: Judge, score_max: float = 1.0) -> Ranking:
    candidates = judged.candidates
    return Ranking(
        _with_bonus(chunks, candidates, score_max),
        judged,
        len(candidates.lexical),
        len(candidates.vector),
        has_more=len(candidates.word_scores) > len(candidates.lexical),
        score_max=score_max,
        quoting=candidates.quoting_rank,
        missing=candidates.missing,
    )


def _with_bonus(chunks: list[Fused], candidates: Candidates, score_max: float = 1.0) -> list[Fused]:
    return with_bonus(chunks, candidates.quoting, candidates.quoting_bonus, score_max)
