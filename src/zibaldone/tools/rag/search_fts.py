"""rag.search_fts: keyword search over chunks."""

from __future__ import annotations

from pydantic import Field

from zibaldone.find.candidates import ranked_by_words
from zibaldone.find.fusion import word_relevance
from zibaldone.find.judge import word_reach
from zibaldone.find.parse import checked_query, query_notes
from zibaldone.find.rarest import with_rarest
from zibaldone.find.relevance import Measure
from zibaldone.limits import (
    LIST_OFFSET_MAX,
    RAG_SECONDS_MAX,
    SEARCH_LIMIT_DEFAULT,
    SNIPPET_CHARS_MAX,
)
from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Query
from zibaldone.store.port import Reader
from zibaldone.text.snippet import snippet
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
    require_sources,
    rounded_relevance,
    search_answer,
)
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class SearchFts(Arguments):
    query: str
    k: WantedHits = SEARCH_LIMIT_DEFAULT
    offset: int = Field(0, ge=0, le=LIST_OFFSET_MAX)
    filters: RagFilters = RagFilters()
    return_: SearchReturn = Field(SearchReturn(), validation_alias="return")


class KeywordHit(HitPlace, HitRelevance, HitParts):
    score_fts: float
    score_fts_raw: float


async def handle(call: Call, given: SearchFts) -> SearchAnswer[KeywordHit]:
    clock = Clock()
    query = checked_query(given.query)
    where = given.filters.as_filter()
    least = given.filters.min_relevance or 0.0
    k = hits_wanted(given.k)

    def search(reader: Reader) -> SearchAnswer[KeywordHit]:
        require_sources(reader, given.filters)
        # One more than asked for tells whether the cap left something out.
        ranking = ranked_by_words(reader, query, where, limit=k + 1, offset=given.offset)
        relevant = [(key, score) for key, score in ranking.page if word_relevance(score) >= least]
        views = reader.chunks.views(key for key, _ in relevant[:k])
        measure = Measure(word_reach(reader, with_rarest(reader, query)).score_max)
        # Here too: to find the words in what is shown takes as long as the search.
        hits = [
            _render(views[key], score, measure.of(None, score).value, given.return_, query)
            for key, score in relevant[:k]
            if key in views
        ]
        return search_answer(
            hits,
            k=given.k,
            more=len(relevant) > k,
            is_judged=given.offset == 0,
            clock=clock,
            missing=ranking.candidates.missing,
            notes=query_notes(query, ranking.candidates.quoting_rank),
        )

    return await call.runtime.store.read(call.principal.tenant, search, seconds_max=clock.left_s)


def _render(
    view: ChunkView, score: float, relevance: float, include: SearchReturn, query: Query
) -> KeywordHit:
    text = None
    if include.include_snippets:
        text, _ = snippet(view.text, query, SNIPPET_CHARS_MAX)
    return {
        **hit_place(view),
        "score_fts": rounded_relevance(score),
        "score_fts_raw": score,
        "relevance": round(relevance, 3),
        **hit_parts(view, include, text),
    }


TOOL = ToolSpec(
    name="rag.search_fts",
    title="Keyword search",
    description="Keyword search over chunks: ids and scores (higher is better), no bodies.",
    arguments=SearchFts,
    result=SearchAnswer[KeywordHit],
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
