"""rag.search_hybrid: keywords and meaning together."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from commonplace.embed.port import Vectors
from commonplace.errors import VectorsLoading
from commonplace.find.candidates import gather
from commonplace.find.documents import VECTOR_WEIGHT
from commonplace.find.fusion import Fused, reciprocal_ranks, weighted_scores
from commonplace.find.parse import checked_query
from commonplace.find.query_vector import without
from commonplace.limits import (
    CANDIDATES_MAX,
    QUERY_EMBED_SECONDS_MAX,
    RAG_SECONDS_MAX,
    SNIPPET_CHARS_MAX,
)
from commonplace.model.query import Filter
from commonplace.store.port import PassageView, Reader
from commonplace.text.tokens import Query, snippet
from commonplace.tools.rag.fields import (
    SEARCH_LIMIT_DEFAULT,
    Clock,
    RagFilters,
    SearchReturn,
    WantedHits,
    Weight,
    hits_wanted,
    normalized_lexical,
    search_answer,
    shown_hit,
)
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec

Mode = Literal["fuse", "fts_then_vec", "convex"]


class Fuse(Arguments):
    fts_k: int = Field(50, ge=1)
    vec_k: int = Field(50, ge=1)
    rrf_k0: float = Field(60, ge=0, le=10_000, allow_inf_nan=False)
    w_fts: Weight = 1.0
    w_vec: Weight = 1.0


class FtsThenVec(Arguments):
    candidates_k: int = Field(200, ge=1)
    rerank_k: int = Field(50, ge=1)
    vec_metric: Literal["cosine"] = "cosine"


class Convex(Arguments):
    fts_k: int = Field(100, ge=1)
    vec_k: int = Field(100, ge=1)
    w_vec: float = Field(VECTOR_WEIGHT, ge=0, le=1)


class SearchHybrid(Arguments):
    query: str
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    filters: RagFilters = RagFilters()
    mode: Mode = Field("fuse", description="convex ranks best; fuse is reciprocal rank fusion")
    fuse: Fuse = Fuse()
    fts_then_vec: FtsThenVec = FtsThenVec()
    convex: Convex = Convex()
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


async def handle(call: Call, given: SearchHybrid) -> Answer:
    clock = Clock()
    query = checked_query(given.query)
    wanted = given.filters.as_filter()
    k = hits_wanted(given.k)
    query_vectors = call.runtime.query_vectors
    embedded = await query_vectors.of(given.query, QUERY_EMBED_SECONDS_MAX)
    identity = "" if query_vectors.embedder is None else query_vectors.embedder.identity

    def search(reader: Reader) -> tuple[list[Fused], dict[int, PassageView], str | None]:
        used = embedded
        try:
            fused = _ranked(reader, query, wanted, given, identity, used.vector)
        except VectorsLoading as error:
            used = without(error)
            fused = _ranked(reader, query, wanted, given, identity, used.vector)
        views = reader.lexical.passages(one.chunk_key for one in fused[:k])
        return fused, views, used.reason

    fused, views, reason = await call.runtime.store.read(
        call.principal.scope, search, seconds_max=RAG_SECONDS_MAX
    )
    least = given.filters.min_relevance or 0.0
    hits = [
        _shown(one, views[one.chunk_key], given.return_, query)
        for one in fused[:k]
        if one.chunk_key in views and one.score >= least
    ]
    answer = search_answer(
        hits, k=given.k, cut=given.k > k < len(fused), clock=clock, mode=given.mode
    )
    if reason is not None:
        answer["note"] = reason
    return answer


def _ranked(
    reader: Reader,
    query: Query,
    wanted: Filter,
    given: SearchHybrid,
    identity: str,
    vector: Vectors | None,
) -> list[Fused]:
    match given.mode:
        case "fts_then_vec":
            return _reranked(reader, query, wanted, given.fts_then_vec, identity, vector)
        case "fuse":
            lexical_max, vector_max = given.fuse.fts_k, given.fuse.vec_k
        case "convex":
            lexical_max, vector_max = given.convex.fts_k, given.convex.vec_k
    found = gather(
        reader,
        query,
        wanted,
        identity=identity,
        vector=vector,
        lexical_max=min(lexical_max, CANDIDATES_MAX),
        vector_max=min(vector_max, CANDIDATES_MAX),
    )
    if given.mode == "convex":
        weight = given.convex.w_vec if vector is not None else 0.0
        return weighted_scores(
            found.lexical, found.vector, found.similarities, vector_weight=weight
        )
    return reciprocal_ranks(
        found.lexical,
        found.vector,
        k0=given.fuse.rrf_k0,
        lexical_weight=given.fuse.w_fts,
        vector_weight=given.fuse.w_vec,
    )


def _reranked(
    reader: Reader,
    query: Query,
    wanted: Filter,
    options: FtsThenVec,
    identity: str,
    vector: Vectors | None,
) -> list[Fused]:
    """Keyword candidates in the order of their stored vectors; those without one come last."""
    lexical = reader.lexical.search(
        query, limit=min(options.candidates_k, CANDIDATES_MAX), wanted=wanted
    )
    cosines = (
        {}
        if vector is None
        else reader.vectors.scores(identity, vector, (key for key, _ in lexical))
    )
    ranks = {key: rank for rank, (key, _) in enumerate(lexical, 1)}
    scores = dict(lexical)
    order = sorted(ranks, key=lambda key: (-cosines.get(key, -2.0), ranks[key]))
    return [
        Fused(
            key,
            round((1.0 + cosines[key]) / 2.0, 9) if key in cosines else 0.0,
            scores[key],
            cosines.get(key),
            ranks[key],
            rank if key in cosines else None,
        )
        for rank, key in enumerate(order[: options.rerank_k], 1)
    ]


def _shown(one: Fused, view: PassageView, include: SearchReturn, query: Query) -> Answer:
    text = None
    if include.include_snippets:
        text, _ = snippet(view.text, query, SNIPPET_CHARS_MAX)
    lexical, vector = one.score_lexical, one.score_vector
    scores = {
        "score": one.score,
        "score_fts": None if lexical is None else normalized_lexical(lexical),
        "score_vec": None if vector is None else round(vector, 6),
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
