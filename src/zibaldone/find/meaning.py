"""A query as a vector of the embedding model, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from zibaldone.embed.port import Vectors
from zibaldone.find.missing import Missing
from zibaldone.find.parse import meant
from zibaldone.find.query_vector import FAILED, QueryVectors
from zibaldone.limits import QUERY_EMBED_SECONDS_MAX
from zibaldone.model.query import Query

_UNKNOWN_SCRIPT = Missing("vectors", "The embedding model does not know this script.")


@dataclass(frozen=True, slots=True)
class Meaning:
    """A query as a vector of a model."""

    identity: str
    vector: Vectors
    trust: float = 1.0
    """How well the model knows the query's language, from 0 to 1."""
    similarity_min: float = -1.0
    """Chunks with a smaller cosine have little to do with the query; -1 where that is not known."""


@dataclass(frozen=True, slots=True)
class QueryMeaning:
    meaning: Meaning | None = None
    missing: tuple[Missing, ...] = ()
    """Why there is none; empty for a query that means nothing, such as one of operators alone."""


async def meaning_of(
    vectors: QueryVectors, text: str, query: Query, *, any_language: bool = False
) -> QueryMeaning:
    """`any_language`: also of a query whose language the model does not know at all."""
    embedder = vectors.embedder
    trust = 1.0 if embedder is None else embedder.language_trust(text)
    if trust == 0.0 and not any_language:
        return QueryMeaning(missing=(_UNKNOWN_SCRIPT,))
    if query.is_empty:
        return QueryMeaning()
    embedded = await vectors.of(meant(text, query), QUERY_EMBED_SECONDS_MAX)
    if embedder is None or embedded.vector is None:
        return QueryMeaning(missing=(Missing("vectors", embedded.reason or FAILED),))
    return QueryMeaning(Meaning(embedder.identity, embedded.vector, trust, embedder.similarity_min))
