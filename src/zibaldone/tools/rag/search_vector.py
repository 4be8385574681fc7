"""rag.search_vector: chunks nearest in meaning."""

from __future__ import annotations

import base64
import binascii

from pydantic import Field

from zibaldone.embed.port import Embedder, Vectors
from zibaldone.errors import EmbeddingFailed, InvalidArgument, NotConfigured
from zibaldone.find.parse import checked_text
from zibaldone.find.relevance import Measure, calibration_of
from zibaldone.limits import RAG_SECONDS_MAX, SEARCH_LIMIT_DEFAULT, SNIPPET_CHARS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.vector import np
from zibaldone.store.port import Reader, Scored
from zibaldone.tools.rag.fields import (
    Clock,
    HitParts,
    HitPlace,
    HitRelevance,
    RagFilters,
    SearchAnswer,
    SearchReturn,
    WantedHits,
    hit_parts,
    hit_place,
    hits_wanted,
    index_notes,
    require_sources,
    rounded_cosine,
    search_answer,
)
from zibaldone.tools.spec import Arguments, Call, ToolSpec

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


class VectorHit(HitPlace, HitRelevance, HitParts):
    score_vec: float
    distance_raw: float


async def handle(call: Call, given: SearchVector) -> SearchAnswer[VectorHit]:
    clock = Clock()
    embedder = _embedder(call, given.embedding)
    vector = await _vector(call, given, embedder)
    where = given.filters.as_filter()
    least = -1.0 if given.filters.min_relevance is None else given.filters.min_relevance
    k = hits_wanted(given.k)

    def search(reader: Reader) -> tuple[list[Scored], dict[int, ChunkView], list[str]]:
        require_sources(reader, given.filters)
        # One more than asked for tells whether the cap left something out.
        near = reader.vectors.search(embedder.identity, vector, k + 1, where)
        scored = [(key, cosine) for key, cosine in near if cosine >= least]
        views = reader.chunks.views(key for key, _ in scored[:k])
        return scored, views, index_notes(reader, embedder.identity)

    scored, views, notes = await call.runtime.store.read(
        call.principal.tenant, search, seconds_max=clock.left_s
    )
    measure = Measure(None, calibration_of(embedder.identity))
    hits = [
        _render(views[key], cosine, measure, given.return_)
        for key, cosine in scored[:k]
        if key in views
    ]
    return search_answer(
        hits,
        k=given.k,
        more=len(scored) > k,
        is_judged=measure.calibration is not None,
        clock=clock,
        notes=notes,
    )


def _render(view: ChunkView, cosine: float, measure: Measure, include: SearchReturn) -> VectorHit:
    score = rounded_cosine(cosine)
    text = view.text[:SNIPPET_CHARS_MAX] if include.include_snippets else None
    return {
        **hit_place(view),
        "score_vec": score,
        "distance_raw": round(1.0 - score, 6),
        "relevance": round(measure.of(cosine, None).value, 3),
        **hit_parts(view, include, text),
    }


def _embedder(call: Call, choice: EmbeddingChoice | None) -> Embedder:
    embedder = call.runtime.query_vectors.embedder
    if embedder is None:
        raise NotConfigured("There is no embedding model; rag.search_fts works without.")
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
    text = checked_text(given.query_text, "query_text")
    embedded = await call.runtime.query_vectors.of(text, RAG_SECONDS_MAX * _EMBED_SHARE)
    if embedded.vector is None:
        raise EmbeddingFailed(embedded.reason or "The query could not be embedded.")
    return embedded.vector


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
    peak = float(np.abs(vector).max()) if np.isfinite(vector).all() else 0.0
    if peak == 0.0:
        raise InvalidArgument(
            "values_b64 holds a value that is not a number, or only zeros.",
            field=f"{field}.values_b64",
        )
    # The squares of very large or small values are beyond float32, and so may the quotient be.
    scaled = vector.astype(np.float64) / peak
    unit: Vectors = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return unit


TOOL = ToolSpec(
    name="rag.search_vector",
    title="Search by meaning",
    description="Chunks nearest in meaning to a text or to a vector: ids and scores, no bodies.",
    arguments=SearchVector,
    result=SearchAnswer[VectorHit],
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
