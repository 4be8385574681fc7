"""rag.search_hybrid: keywords and meaning together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from zibaldone.errors import VectorsUnavailable
from zibaldone.find.candidates import Candidates, Meaning, Wanted, gather
from zibaldone.find.documents import VECTOR_WEIGHT
from zibaldone.find.fusion import Fused, by_words, reciprocal_ranks, reranked, weighted_scores
from zibaldone.find.parse import checked_query, left_out, meant
from zibaldone.find.query_vector import QueryVector, keywords_only
from zibaldone.limits import (
    CANDIDATES_MAX,
    QUERY_EMBED_SECONDS_MAX,
    RAG_SECONDS_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
    SNIPPET_CHARS_MAX,
)
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Query
from zibaldone.store.port import Reader
from zibaldone.text.snippet import snippet
from zibaldone.tools.rag.fields import (
    CandidateCount,
    Clock,
    RagFilters,
    SearchReturn,
    WantedHits,
    Weight,
    hits_wanted,
    index_notes,
    search_answer,
    shown_cosine,
    shown_hit,
    shown_words,
)
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec

Mode = Literal["fuse", "fts_then_vec", "convex"]


class Fuse(Arguments):
    fts_k: CandidateCount = 50
    vec_k: CandidateCount = 50
    rrf_k0: float = Field(60, ge=0, le=10_000, allow_inf_nan=False)
    w_fts: Weight = 1.0
    w_vec: Weight = 1.0


class FtsThenVec(Arguments):
    candidates_k: CandidateCount = 200
    rerank_k: CandidateCount = 50
    vec_metric: Literal["cosine"] = "cosine"


class Convex(Arguments):
    fts_k: CandidateCount = 100
    vec_k: CandidateCount = 100
    w_vec: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description=f"Default: {VECTOR_WEIGHT}, less for languages the model does not know",
    )


class SearchHybrid(Arguments):
    query: str
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    filters: RagFilters = RagFilters()
    mode: Mode = Field("fuse", description="convex ranks best; fuse is reciprocal rank fusion")
    fuse: Fuse = Fuse()
    fts_then_vec: FtsThenVec = FtsThenVec()
    convex: Convex = Convex()
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


@dataclass(frozen=True, slots=True)
class Ranked:
    fused: list[Fused]
    lexical_count: int
    vector_count: int
    has_more: bool = False
    """There are matches beyond the candidates that were looked at."""
    score_max: float = 1.0
    """The best score there could be; `min_relevance` is a share of it."""
    reason: str | None = None
    """Why the vectors could not be used."""


async def handle(call: Call, given: SearchHybrid) -> Answer:
    clock = Clock()
    query = checked_query(given.query)
    embedded, meaning = await _meaning(call, given.query, query)
    least = given.filters.min_relevance or 0.0
    k = hits_wanted(given.k)

    def search(reader: Reader) -> tuple[Ranked, list[Fused], dict[int, ChunkView], list[str]]:
        ranked = _ranked(reader, query, given, meaning)
        found = [one for one in ranked.fused if one.score >= least * ranked.score_max]
        views = reader.chunks.views(one.chunk_key for one in found[:k])
        reason = embedded.reason or ranked.reason
        notes = [keywords_only(reason)] if reason else []
        notes += left_out(query)
        if meaning is not None:
            notes += index_notes(reader, meaning.identity)
        return ranked, found, views, notes

    ranked, found, views, notes = await call.runtime.store.read(
        call.principal.tenant, search, seconds_max=clock.left_s
    )
    return search_answer(
        [
            _shown(one, views[one.chunk_key], given.return_, query)
            for one in found[:k]
            if one.chunk_key in views
        ],
        k=given.k,
        more=len(found) > k or (ranked.has_more and not least),
        clock=clock,
        notes=notes,
        mode=given.mode,
        candidates={"fts": ranked.lexical_count, "vec": ranked.vector_count},
    )


async def _meaning(call: Call, text: str, query: Query) -> tuple[QueryVector, Meaning | None]:
    if query.is_empty:
        return QueryVector(None), None
    query_vectors = call.runtime.query_vectors
    embedded = await query_vectors.of(meant(text, query), QUERY_EMBED_SECONDS_MAX)
    embedder = query_vectors.embedder
    if embedder is None or embedded.vector is None:
        return embedded, None
    return embedded, Meaning(embedder.identity, embedded.vector, embedder.vector_weight(text))


def _ranked(reader: Reader, query: Query, given: SearchHybrid, meaning: Meaning | None) -> Ranked:
    match given.mode:
        case "fts_then_vec":
            return _in_two_stages(reader, query, given, meaning)
        case "fuse":
            found = _gathered(reader, query, given, given.fuse, meaning)
            fused = reciprocal_ranks(
                found.lexical,
                found.vector,
                k0=given.fuse.rrf_k0,
                lexical_weight=given.fuse.w_fts,
                vector_weight=given.fuse.w_vec,
            )
            # A leg that could not be asked takes nothing from what can be reached.
            reachable = given.fuse.w_fts + (given.fuse.w_vec if found.vector else 0.0)
            best = reachable / (given.fuse.rrf_k0 + 1)
            return _of_both(fused, found, score_max=best)
        case "convex":
            found = _gathered(reader, query, given, given.convex, meaning)
            fused = weighted_scores(
                found.lexical,
                found.vector,
                found.word_scores,
                found.similarities,
                vector_weight=_weight(given.convex, meaning) if found.similarities else 0.0,
            )
            return _of_both(fused, found)


def _weight(given: Convex, meaning: Meaning | None) -> float:
    if given.w_vec is not None:
        return given.w_vec
    return 0.0 if meaning is None else VECTOR_WEIGHT * meaning.trust


def _gathered(
    reader: Reader,
    query: Query,
    given: SearchHybrid,
    options: Fuse | Convex,
    meaning: Meaning | None,
) -> Candidates:
    wanted = Wanted(
        query,
        given.filters.as_filter(),
        lexical_max=min(options.fts_k, CANDIDATES_MAX),
        vector_max=min(options.vec_k, CANDIDATES_MAX),
    )
    return gather(reader, wanted, meaning)


def _of_both(fused: list[Fused], found: Candidates, score_max: float = 1.0) -> Ranked:
    has_more = len(found.word_scores) > len(found.lexical)
    counts = len(found.lexical), len(found.vector)
    return Ranked(fused, *counts, has_more=has_more, score_max=score_max, reason=found.reason)


def _in_two_stages(
    reader: Reader, query: Query, given: SearchHybrid, meaning: Meaning | None
) -> Ranked:
    """Keyword candidates, then the order of their stored vectors."""
    options = given.fts_then_vec
    lexical = reader.lexical.search(
        query,
        limit=min(options.candidates_k, CANDIDATES_MAX),
        wanted=given.filters.as_filter(),
    )
    # Never more than SEARCH_LIMIT_MAX come back: beyond that, rerank_k leaves nothing out.
    kept = options.rerank_k if options.rerank_k < SEARCH_LIMIT_MAX else len(lexical)
    if meaning is None:
        return Ranked(by_words(lexical)[:kept], len(lexical), 0)
    try:
        keys = (key for key, _ in lexical)
        cosines = reader.vectors.scores(meaning.identity, meaning.vector, keys)
    except VectorsUnavailable as error:
        found = by_words(lexical)[:kept]
        return Ranked(found, len(lexical), 0, reason=error.message)
    return Ranked(reranked(lexical, cosines, kept=kept), len(lexical), len(cosines))


def _shown(one: Fused, view: ChunkView, include: SearchReturn, query: Query) -> Answer:
    text = None
    if include.include_snippets:
        text, _ = snippet(view.text, query, SNIPPET_CHARS_MAX)
    lexical, vector = one.score_lexical, one.score_vector
    scores = {
        "score": one.score,
        "score_fts": None if lexical is None else shown_words(lexical),
        "score_vec": None if vector is None else shown_cosine(vector),
    }
    hit = shown_hit(view, scores, include, text)
    hit["debug"] = {"rank_fts": one.rank_lexical, "rank_vec": one.rank_vector}
    return hit


TOOL = ToolSpec(
    name="rag.search_hybrid",
    title="Search by words and meaning",
    description=(
        "Keyword and vector search fused: ids and scores, no bodies. Goes on with keywords alone, "
        "and says so, when vectors cannot be had in time."
    ),
    arguments=SearchHybrid,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
