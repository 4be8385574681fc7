"""rag.search_vector: passages nearest in meaning."""

from __future__ import annotations

import base64
import binascii

from pydantic import Field

from commonplace.embed.port import Embedder, Vectors
from commonplace.errors import EmbeddingFailed, InvalidArgument, NotConfigured
from commonplace.find.parse import checked_query
from commonplace.limits import RAG_SECONDS_MAX, SNIPPET_CHARS_MAX
from commonplace.model.vector import np
from commonplace.store.port import PassageView, Reader, Scored
from commonplace.tools.rag.fields import (
    SEARCH_LIMIT_DEFAULT,
    Clock,
    RagFilters,
    SearchReturn,
    WantedHits,
    hits_wanted,
    search_answer,
    shown_hit,
)
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec

_DIMENSIONS_MAX = 8192
_EMBED_SHARE = 0.75
"""Of the budget: what is left is for the search itself."""


class QueryEmbedding(Arguments):
    dim: int = Field(ge=1, le=_DIMENSIONS_MAX)
    values_b64: str = Field(max_length=_DIMENSIONS_MAX * 6, description="float32, little endian")


class EmbeddingChoice(Arguments):
    model: str


class SearchVector(Arguments):
    query_text: str | None = None
    query_embedding: QueryEmbedding | None = Field(
        None, description="Used instead of query_text when both are given"
    )
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    filters: RagFilters = RagFilters()
    embedding: EmbeddingChoice | None = None
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


async def handle(call: Call, given: SearchVector) -> Answer:
    clock = Clock()
    embedder = _embedder(call, given.embedding)
    vector = await _vector(call, given, embedder)
    wanted = given.filters.as_filter()
    k = hits_wanted(given.k)

    def search(reader: Reader) -> tuple[list[Scored], dict[int, PassageView]]:
        found = reader.vectors.search(embedder.identity, vector, k + 1, wanted)
        return found, reader.lexical.passages(key for key, _ in found[:k])

    found, views = await call.runtime.store.read(
        call.principal.scope, search, seconds_max=RAG_SECONDS_MAX
    )
    least = given.filters.min_relevance
    include = given.return_
    hits = [
        shown_hit(
            views[key],
            {"score_vec": round(score, 6), "distance_raw": round(1.0 - score, 6)},
            include,
            views[key].text[:SNIPPET_CHARS_MAX] if include.include_snippets else None,
        )
        for key, score in found[:k]
        if key in views and (least is None or score >= least)
    ]
    return search_answer(hits, k=given.k, cut=given.k > k < len(found), clock=clock)


def _embedder(call: Call, choice: EmbeddingChoice | None) -> Embedder:
    embedder = call.runtime.query_vectors.embedder
    if embedder is None:
        raise NotConfigured("No embedding model is installed; rag.search_fts works without.")
    if choice is not None and choice.model not in (embedder.name, embedder.identity):
        raise InvalidArgument(
            f"The model {choice.model[:100]!r} is not in use here; {embedder.name!r} is.",
            field="embedding.model",
            model=embedder.name,
        )
    return embedder


async def _vector(call: Call, given: SearchVector, embedder: Embedder) -> Vectors:
    if given.query_embedding is not None:
        return _unpacked(given.query_embedding, embedder)
    if given.query_text is None:
        raise InvalidArgument("Give query_text or query_embedding.", field="query_text")
    checked_query(given.query_text, "query_text")
    seconds_max = RAG_SECONDS_MAX * _EMBED_SHARE
    found = await call.runtime.query_vectors.of(given.query_text, seconds_max)
    if found.vector is None:
        raise EmbeddingFailed(found.reason or "The query could not be embedded.")
    return found.vector


def _unpacked(given: QueryEmbedding, embedder: Embedder) -> Vectors:
    field = "query_embedding"
    if given.dim != embedder.dimensions:
        raise InvalidArgument(
            f"dim is {given.dim}; {embedder.name} has {embedder.dimensions}.", field=f"{field}.dim"
        )
    try:
        raw = base64.b64decode(given.values_b64, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgument("values_b64 is not base64.", field=f"{field}.values_b64") from None
    if len(raw) != given.dim * 4:
        raise InvalidArgument(
            f"values_b64 holds {len(raw)} bytes; {given.dim} float32 are {given.dim * 4}.",
            field=f"{field}.values_b64",
        )
    vector = np.frombuffer(raw, np.dtype("<f4")).astype(np.float32)
    norm = float(np.linalg.norm(vector)) if np.isfinite(vector).all() else 0.0
    if not 0.0 < norm < float("inf"):
        raise InvalidArgument(
            "values_b64 holds a value that is not a number, or only zeros.",
            field=f"{field}.values_b64",
        )
    unit: Vectors = vector / norm
    return unit


TOOL = ToolSpec(
    name="rag.search_vector",
    title="Search by meaning",
    description="Passages nearest in meaning to a text or to a vector: ids and scores, no bodies.",
    arguments=SearchVector,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
