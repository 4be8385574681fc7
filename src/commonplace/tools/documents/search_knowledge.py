"""search_knowledge: find documents."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from commonplace.errors import VectorsLoading
from commonplace.find.documents import DocumentHit, search_documents, shown
from commonplace.find.parse import checked_query
from commonplace.find.query_vector import QueryVector, without
from commonplace.limits import (
    FILTER_VALUES_MAX,
    KNOWLEDGE_RESPONSE_BYTES,
    QUERY_EMBED_SECONDS_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)
from commonplace.model.query import Filter
from commonplace.store.port import Reader
from commonplace.text import normalize
from commonplace.tools.answer import fit_items
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec

_BYTES_PER_HIT = 900
"""Who asks for many hits wants them: beyond the default limit the answer grows with it."""


class SearchKnowledge(Arguments):
    query: str = Field(description='Words; "a phrase", -without, title:word, prefix*')
    limit: int = Field(SEARCH_LIMIT_DEFAULT, ge=1, le=SEARCH_LIMIT_MAX)
    prefix: str = Field("", description="Only paths that start so")
    tags: list[str] = Field([], max_length=FILTER_VALUES_MAX, description="Only with all of these")


async def handle(call: Call, given: SearchKnowledge) -> Answer:
    query = checked_query(given.query)
    wanted = Filter(
        prefix=normalize.prefix(given.prefix),
        tags_all=normalize.tags(given.tags) if given.tags else None,
    )
    vectors = call.runtime.query_vectors
    query_vector = await vectors.of(given.query, QUERY_EMBED_SECONDS_MAX)
    embedder = vectors.embedder

    def hits_by(reader: Reader, used: QueryVector) -> list[DocumentHit]:
        return search_documents(
            reader,
            given.query,
            query,
            wanted,
            limit=given.limit,
            embedder=embedder,
            query_vector=used,
        )

    def search(reader: Reader) -> tuple[list[dict[str, Any]], int, str | None]:
        used = query_vector
        try:
            hits = hits_by(reader, used)
        except VectorsLoading as error:
            used = without(error)
            hits = hits_by(reader, used)
        pending = 0 if embedder is None else reader.vectors.coverage(embedder.identity).pending
        return [shown(hit, query) for hit in hits], pending, used.reason

    results, pending, reason = await call.runtime.store.read(call.principal.scope, search)
    bytes_max = max(KNOWLEDGE_RESPONSE_BYTES, _BYTES_PER_HIT * (given.limit - SEARCH_LIMIT_DEFAULT))
    kept = fit_items(results, bytes_max)
    answer: Answer = {"results": kept, "count": len(kept), "truncated": len(kept) < len(results)}
    notes = [reason] if reason else []
    if pending:
        notes.append(f"{pending} documents are found by keyword only until their vectors are ready")
    if query.ignored:
        notes.append(f"{query.ignored} words of the query were left out")
    if notes:
        answer["note"] = "; ".join(notes)
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
