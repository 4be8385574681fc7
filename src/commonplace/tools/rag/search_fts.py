"""rag.search_fts: keyword search over passages."""

from __future__ import annotations

from pydantic import Field

from commonplace.find.parse import checked_query
from commonplace.limits import LIST_OFFSET_MAX, RAG_SECONDS_MAX, SNIPPET_CHARS_MAX
from commonplace.store.port import PassageView, Reader, Scored
from commonplace.text.tokens import snippet
from commonplace.tools.rag.fields import (
    SEARCH_LIMIT_DEFAULT,
    Clock,
    RagFilters,
    SearchReturn,
    WantedHits,
    hits_wanted,
    normalized_lexical,
    search_answer,
    shown_hit,
)
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec


class SearchFts(Arguments):
    query: str
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    offset: int = Field(0, ge=0, le=LIST_OFFSET_MAX)
    filters: RagFilters = RagFilters()
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


async def handle(call: Call, given: SearchFts) -> Answer:
    clock = Clock()
    query = checked_query(given.query)
    wanted = given.filters.as_filter()
    k = hits_wanted(given.k)

    def search(reader: Reader) -> tuple[list[Scored], dict[int, PassageView]]:
        # One more than asked for tells whether the cap left something out.
        found = reader.lexical.search(query, limit=k + 1, offset=given.offset, wanted=wanted)
        return found, reader.lexical.passages(key for key, _ in found[:k])

    found, views = await call.runtime.store.read(
        call.principal.scope, search, seconds_max=RAG_SECONDS_MAX
    )
    include = given.return_
    least = given.filters.min_relevance or 0.0
    hits = []
    for key, score in found[:k]:
        relevance = normalized_lexical(score)
        if key in views and relevance >= least:
            text = None
            if include.include_snippets:
                text, _ = snippet(views[key].text, query, SNIPPET_CHARS_MAX)
            scores = {"score_fts": relevance, "score_fts_raw": score}
            hits.append(shown_hit(views[key], scores, include, text))
    return search_answer(hits, k=given.k, cut=given.k > k < len(found), clock=clock)


TOOL = ToolSpec(
    name="rag.search_fts",
    title="Keyword search",
    description="Keyword search over passages: ids and scores (higher is better), no bodies.",
    arguments=SearchFts,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
