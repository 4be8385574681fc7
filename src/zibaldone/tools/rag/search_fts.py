"""rag.search_fts: keyword search over passages."""

from __future__ import annotations

from pydantic import Field

from zibaldone.find.fusion import word_relevance
from zibaldone.find.parse import checked_query, left_out
from zibaldone.limits import (
    LIST_OFFSET_MAX,
    RAG_SECONDS_MAX,
    SEARCH_LIMIT_DEFAULT,
    SNIPPET_CHARS_MAX,
)
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Query
from zibaldone.store.port import Reader, Scored
from zibaldone.text.snippet import snippet
from zibaldone.tools.rag.fields import (
    Clock,
    RagFilters,
    SearchReturn,
    WantedHits,
    hits_wanted,
    search_answer,
    shown_hit,
    shown_words,
)
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec


class SearchFts(Arguments):
    query: str
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    offset: int = Field(0, ge=0, le=LIST_OFFSET_MAX)
    filters: RagFilters = RagFilters()
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


async def handle(call: Call, given: SearchFts) -> Answer:
    clock = Clock()
    query = checked_query(given.query)
    where = given.filters.as_filter()
    least = given.filters.min_relevance or 0.0
    k = hits_wanted(given.k)

    def search(reader: Reader) -> tuple[list[Scored], dict[int, ChunkView]]:
        # One more than asked for tells whether the cap left something out.
        scored = reader.lexical.search(query, limit=k + 1, offset=given.offset, wanted=where)
        found = [(key, score) for key, score in scored if word_relevance(score) >= least]
        return found, reader.chunks.views(key for key, _ in found[:k])

    found, views = await call.runtime.store.read(
        call.principal.tenant, search, seconds_max=clock.left_s
    )
    hits = [
        _shown(views[key], score, given.return_, query) for key, score in found[:k] if key in views
    ]
    more = len(found) > k
    return search_answer(hits, k=given.k, more=more, clock=clock, notes=left_out(query))


def _shown(view: ChunkView, score: float, include: SearchReturn, query: Query) -> Answer:
    text = None
    if include.include_snippets:
        text, _ = snippet(view.text, query, SNIPPET_CHARS_MAX)
    scores = {"score_fts": shown_words(score), "score_fts_raw": score}
    return shown_hit(view, scores, include, text)


TOOL = ToolSpec(
    name="rag.search_fts",
    title="Keyword search",
    description="Keyword search over passages: ids and scores (higher is better), no bodies.",
    arguments=SearchFts,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
