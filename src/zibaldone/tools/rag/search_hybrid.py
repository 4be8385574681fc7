"""rag.search_hybrid: keywords and meaning together."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.find.fusion import Fused
from zibaldone.find.hybrid import FuseRanks, MixScores, Mode, Rerank, rank_chunks
from zibaldone.find.meaning import meaning_of
from zibaldone.find.parse import checked_query, query_notes
from zibaldone.limits import RAG_SECONDS_MAX, SEARCH_LIMIT_DEFAULT, SNIPPET_CHARS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Query
from zibaldone.store.port import Reader
from zibaldone.text.snippet import snippet
from zibaldone.tools.rag.fields import (
    CandidateCount,
    Clock,
    HitParts,
    HitPlace,
    HitRelevance,
    RagFilters,
    SearchAnswer,
    SearchReturn,
    WantedHits,
    Weight,
    hit_parts,
    hit_place,
    hits_wanted,
    index_notes,
    require_sources,
    rounded_cosine,
    rounded_relevance,
    search_answer,
)
from zibaldone.tools.spec import Arguments, Call, ToolSpec


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
        description="Default: chosen for each query",
    )


class SearchHybrid(Arguments):
    query: str
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    filters: RagFilters = RagFilters()
    mode: Literal["fuse", "fts_then_vec", "convex"] = Field(
        "fuse", description="convex ranks best; fuse is reciprocal rank fusion"
    )
    fuse: Fuse = Fuse()
    fts_then_vec: FtsThenVec = FtsThenVec()
    convex: Convex = Convex()
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


class HitRanks(TypedDict):
    rank_fts: int | None
    rank_vec: int | None


class HybridHit(HitPlace, HitRelevance, HitParts):
    score: float
    score_fts: float | None
    score_vec: float | None
    debug: HitRanks


async def handle(call: Call, given: SearchHybrid) -> SearchAnswer[HybridHit]:
    clock = Clock()
    query = checked_query(given.query)
    where = given.filters.as_filter()
    # Whoever asks for a mode chooses how far the vectors count, whatever the language.
    meant = await meaning_of(call.runtime.query_vectors, given.query, query, any_language=True)
    least = given.filters.min_relevance or 0.0
    k = hits_wanted(given.k)

    def search(reader: Reader) -> SearchAnswer[HybridHit]:
        require_sources(reader, given.filters)
        ranking = rank_chunks(reader, query, where, meant.meaning, _mode(given))
        relevant = [chunk for chunk in ranking.chunks if chunk.score >= least * ranking.score_max]
        views = reader.chunks.views(chunk.chunk_key for chunk in relevant[:k])
        notes = query_notes(query, ranking.quoting)
        if meant.meaning is not None:
            notes += index_notes(reader, meant.meaning.identity)
        # Here too: to find the words in what is shown takes as long as the search.
        hits = [
            _render(
                chunk,
                views[chunk.chunk_key],
                ranking.judge.relevance([chunk.chunk_key]).value,
                given.return_,
                query,
            )
            for chunk in relevant[:k]
            if chunk.chunk_key in views
        ]
        return search_answer(
            hits,
            k=given.k,
            more=len(relevant) > k or (ranking.has_more and not least),
            clock=clock,
            missing=(*meant.missing, *ranking.missing),
            notes=notes,
            mode=given.mode,
            candidates={"fts": ranking.lexical_count, "vec": ranking.vector_count},
        )

    return await call.runtime.store.read(call.principal.tenant, search, seconds_max=clock.left_s)


def _mode(given: SearchHybrid) -> Mode:
    match given.mode:
        case "fuse":
            fuse = given.fuse
            return FuseRanks(fuse.fts_k, fuse.vec_k, fuse.rrf_k0, fuse.w_fts, fuse.w_vec)
        case "convex":
            return MixScores(given.convex.fts_k, given.convex.vec_k, given.convex.w_vec)
        case "fts_then_vec":
            return Rerank(given.fts_then_vec.candidates_k, given.fts_then_vec.rerank_k)


def _render(
    chunk: Fused, view: ChunkView, relevance: float, include: SearchReturn, query: Query
) -> HybridHit:
    text = None
    if include.include_snippets:
        text, _ = snippet(view.text, query, SNIPPET_CHARS_MAX)
    lexical, vector = chunk.score_lexical, chunk.score_vector
    return {
        **hit_place(view),
        "score": chunk.score,
        "relevance": round(relevance, 3),
        "score_fts": None if lexical is None else rounded_relevance(lexical),
        "score_vec": None if vector is None else rounded_cosine(vector),
        **hit_parts(view, include, text),
        "debug": {"rank_fts": chunk.rank_lexical, "rank_vec": chunk.rank_vector},
    }


TOOL = ToolSpec(
    name="rag.search_hybrid",
    title="Search by words and meaning",
    description=(
        "Keyword and vector search fused: ids and scores, no bodies. Goes on with keywords alone, "
        "and says so, when vectors are not available in time."
    ),
    arguments=SearchHybrid,
    result=SearchAnswer[HybridHit],
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
