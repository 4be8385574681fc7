"""search_knowledge: find documents."""

from __future__ import annotations

from pydantic import Field

from commonplace.find.documents import search_documents
from commonplace.find.parse import checked_query
from commonplace.limits import SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX
from commonplace.text import normalize
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec


class SearchKnowledge(Arguments):
    query: str = Field(description='Words; "a phrase", -without, title:word, prefix*')
    limit: int = Field(SEARCH_LIMIT_DEFAULT, ge=1, le=SEARCH_LIMIT_MAX)
    prefix: str = Field("", description="Only paths that start so")


async def handle(call: Call, given: SearchKnowledge) -> Answer:
    query = checked_query(given.query)
    prefix = normalize.prefix(given.prefix)
    results = await call.runtime.store.read(
        call.principal.scope,
        lambda reader: search_documents(reader, query, limit=given.limit, prefix=prefix),
    )
    return {"results": results, "count": len(results)}


TOOL = ToolSpec(
    name="search_knowledge",
    title="Search the knowledge base",
    description="Find documents by what they say; one hit for each document with its best passage.",
    arguments=SearchKnowledge,
    effect="read",
    handler=handle,
)
