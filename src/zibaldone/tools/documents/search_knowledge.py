"""search_knowledge: find documents."""

from __future__ import annotations

import orjson
from pydantic import Field

from zibaldone.embed.port import Embedder
from zibaldone.errors import InvalidArgument
from zibaldone.find.candidates import Meaning
from zibaldone.find.documents import VECTOR_WEIGHT, Found, search_documents
from zibaldone.find.parse import checked_query, left_out, meant
from zibaldone.find.query_vector import QueryVector, keywords_only
from zibaldone.find.shown import shown_hits
from zibaldone.limits import (
    FILTER_VALUES_MAX,
    KNOWLEDGE_RESPONSE_BYTES,
    QUERY_EMBED_SECONDS_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader
from zibaldone.text import normalize
from zibaldone.text.facets import folded_tags
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec

_BYTES_PER_HIT = KNOWLEDGE_RESPONSE_BYTES // SEARCH_LIMIT_DEFAULT
"""Who asks for many hits wants them: beyond the default limit the answer grows with it."""

_OTHER_SCRIPT = "The embedding model does not know this script."


class SearchKnowledge(Arguments):
    query: str = Field(description='Words; "a phrase", -without, title:word, prefix*')
    limit: int = Field(SEARCH_LIMIT_DEFAULT, ge=1, le=SEARCH_LIMIT_MAX)
    prefix: str = Field("", description="Only paths that start so")
    tags: list[str] = Field([], max_length=FILTER_VALUES_MAX, description="Only with all of these")


async def handle(call: Call, given: SearchKnowledge) -> Answer:
    query = checked_query(given.query)
    where = Filter(prefix=normalize.prefix(given.prefix), tags_all=_tags(given.tags))
    embedder = call.runtime.query_vectors.embedder
    weight = 0.0 if embedder is None else VECTOR_WEIGHT * embedder.vector_weight(given.query)
    embedded = await _embedded(call, given.query, query, weight)
    meaning = None
    if embedder is not None and embedded.vector is not None:
        meaning = Meaning(embedder.identity, embedded.vector)

    def search(reader: Reader) -> tuple[Found, int]:
        found = search_documents(
            reader,
            query,
            where,
            meaning,
            vector_weight=weight,
            similarity_min=-1.0 if embedder is None else embedder.similarity_min,
            limit=given.limit,
        )
        return found, _pending(reader, embedder)

    found, pending = await call.runtime.store.read(call.principal.tenant, search)
    notes = _notes(embedded.reason or found.reason, pending, query)
    return _answer(found, query, given.limit, notes)


def _tags(given: list[str]) -> tuple[str, ...] | None:
    if not given:
        return None
    tags = normalize.tags(given)
    if not tags:  # no filter at all is not what was meant
        raise InvalidArgument("The tags are blank.", field="tags")
    return folded_tags(tags)


async def _embedded(call: Call, text: str, query: Query, weight: float) -> QueryVector:
    vectors = call.runtime.query_vectors
    if vectors.embedder is not None and weight == 0.0:
        return QueryVector(None, _OTHER_SCRIPT)
    if query.is_empty:
        return QueryVector(None)
    return await vectors.of(meant(text, query), QUERY_EMBED_SECONDS_MAX)


def _pending(reader: Reader, embedder: Embedder | None) -> int:
    return 0 if embedder is None else reader.vectors.coverage(embedder.identity).pending


def _notes(reason: str | None, pending: int, query: Query) -> list[str]:
    notes = [keywords_only(reason)] if reason else []
    if pending:
        notes.append(f"{pending} documents are found by keyword only until their vectors are ready")
    return notes + left_out(query)


def _answer(found: Found, query: Query, limit: int, notes: list[str]) -> Answer:
    answer: Answer = {"results": [], "count": len(found.hits), "truncated": False}
    if notes:
        answer["note"] = "; ".join(notes)
    bytes_max = max(KNOWLEDGE_RESPONSE_BYTES, _BYTES_PER_HIT * limit)
    results = shown_hits(found.hits, query, bytes_max - len(orjson.dumps(answer)))
    is_truncated = found.is_cut or len(results) < len(found.hits)
    answer.update(results=results, count=len(results), truncated=is_truncated)
    return answer


TOOL = ToolSpec(
    name="search_knowledge",
    title="Search the knowledge base",
    description=(
        "Find documents by meaning and by words; one hit for each document with its best passages."
    ),
    arguments=SearchKnowledge,
    effect="read",
    handler=handle,
)
