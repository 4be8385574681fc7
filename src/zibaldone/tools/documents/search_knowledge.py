"""search_knowledge: find documents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.embed.port import Embedder
from zibaldone.errors import InvalidArgument
from zibaldone.find.documents import DocumentHits, newest_first, search_documents
from zibaldone.find.judge import WEAK_NOTE
from zibaldone.find.meaning import meaning_of
from zibaldone.find.missing import notes_of, parts_of
from zibaldone.find.parse import checked_query, query_notes
from zibaldone.find.parse import meant as meant_text
from zibaldone.find.render import ShownHit, render_hits
from zibaldone.keep.nearest import nothing_under
from zibaldone.limits import (
    FILTER_VALUES_MAX,
    KNOWLEDGE_RESPONSE_BYTES,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader
from zibaldone.text import normalize
from zibaldone.text.facets import folded_tags
from zibaldone.tools.fields import LeftOut, instant_us
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_BYTES_PER_HIT = KNOWLEDGE_RESPONSE_BYTES // SEARCH_LIMIT_DEFAULT
"""Beyond the default limit the answer grows with the number of hits asked for."""


_LOOKED_AT = 5


class SearchKnowledge(Arguments):
    query: str = Field(
        description='Words or a question; +"a phrase" must be there, -without, title:word, prefix*'
    )
    limit: int = Field(SEARCH_LIMIT_DEFAULT, ge=1, le=SEARCH_LIMIT_MAX)
    prefix: str = Field("", description="Only paths that start so")
    tags: list[str] = Field([], max_length=FILTER_VALUES_MAX, description="Only with all of these")
    sort: Literal["relevance", "recent"] = Field(
        "relevance", description="recent: newest first among the good matches"
    )
    updated_after: str | None = Field(None, description="Written then or later, e.g. 2026-01-31")
    updated_before: str | None = None


class Hits(TypedDict):
    results: list[ShownHit]
    count: int
    truncated: bool
    left_out: NotRequired[LeftOut]
    note: NotRequired[str]
    read_on: NotRequired[str]
    weak: NotRequired[bool]
    """No hit is good."""


_READ_ON = "get_document with from_char = a passage's start"


async def handle(call: Call, given: SearchKnowledge) -> Hits:
    query = checked_query(given.query)
    where = Filter(
        prefix=normalize.prefix(given.prefix),
        tags_all=_tags(given.tags),
        updated_after_us=instant_us(given.updated_after, "updated_after"),
        updated_before_us=instant_us(given.updated_before, "updated_before"),
    )
    query_vectors = call.runtime.query_vectors
    meant = await meaning_of(query_vectors, given.query, query)
    by_time = given.sort == "recent"

    def find(reader: Reader, limit: int) -> tuple[DocumentHits, list[str]]:
        hits = search_documents(reader, query, where, meant.meaning, limit=limit)
        hits = replace(hits, missing=(*meant.missing, *hits.missing))
        notes = _index_notes(reader, query_vectors.embedder)
        if not hits.hits and (nowhere := nothing_under(reader, where.prefix)):
            notes.append(nowhere.rstrip("."))
        return hits, notes

    def search(reader: Reader) -> Hits:
        hits, notes = find(reader, SEARCH_LIMIT_MAX if by_time else given.limit)
        if by_time:
            hits = newest_first(hits, given.limit)
        # Here too: to find the words in what is shown takes as long as the search.
        return _answer(hits, query, given.limit, notes)

    store, tenant, reranking = call.runtime.store, call.principal.tenant, call.runtime.reranking
    if reranking is None or by_time:
        return await store.read(tenant, search)
    limit = max(given.limit, reranking.candidates_max)
    hits, notes = await store.read(tenant, lambda reader: find(reader, limit))
    if hits.quoting != "first":  # what holds a quotation stays first
        reordered = await reranking.reorder(meant_text(given.query, query), hits.hits)
        missing = (*hits.missing, *reordered.missing)
        hits = replace(hits, hits=reordered.hits, missing=missing)
    is_cut = hits.is_cut and len(hits.hits) < given.limit
    hits = replace(hits, hits=hits.hits[: given.limit], is_cut=is_cut)
    return await asyncio.to_thread(_answer, hits, query, given.limit, notes)


def _tags(given: list[str]) -> tuple[str, ...] | None:
    if not given:
        return None
    tags = normalize.tags(given)
    if not tags:  # no filter at all is not what was meant
        raise InvalidArgument("The tags are blank.", field="tags")
    return folded_tags(tags)


def _index_notes(reader: Reader, embedder: Embedder | None) -> list[str]:
    if embedder is None:
        return []
    coverage = reader.vectors.coverage(embedder.identity)
    notes = [coverage.note] if coverage.note else []
    if coverage.pending:
        documents = (
            "1 document is" if coverage.pending == 1 else f"{coverage.pending} documents are"
        )
        notes.append(f"{documents} found by keyword only until the vectors are ready")
    elif not coverage.has_model and _have_vectors(reader):
        notes.append(
            "there are vectors of another embedding model only, so documents are found by keyword; "
            "'zibaldone reindex' makes those of this model"
        )
    return notes


def _have_vectors(reader: Reader) -> bool:
    """Have documents vectors, of whatever model? The first ones tell."""
    heads = reader.documents.heads("", limit=_LOOKED_AT)
    parts = (reader.documents.peek(head.document_id, 1) for head in heads)
    return any(part is not None and part.vector_status == "ready" for part in parts)


def _answer(hits: DocumentHits, query: Query, limit: int, index_notes: list[str]) -> Hits:
    missing = hits.missing
    notes = [*notes_of(missing), *index_notes, *query_notes(query, hits.quoting)]
    if hits.is_weak and hits.hits:
        notes.append(WEAK_NOTE)
    answer: Hits = {"results": [], "count": len(hits.hits), "truncated": False}
    if missing:
        answer["left_out"] = parts_of(missing)
    if hits.is_weak:
        answer["weak"] = True
    if notes:
        answer["note"] = "; ".join(notes)
    if hits.hits:
        answer["read_on"] = _READ_ON
    bytes_max = max(KNOWLEDGE_RESPONSE_BYTES, _BYTES_PER_HIT * limit)
    results = render_hits(hits.hits, query, bytes_max - len(orjson.dumps(answer)))
    answer["results"] = results
    answer["count"] = len(results)
    answer["truncated"] = hits.is_cut or len(results) < len(hits.hits)
    return answer


TOOL = ToolSpec(
    name="search_knowledge",
    title="Search the knowledge base",
    description=(
        "Find documents by meaning and by words; one hit for each document with its best passages. "
        "score ranks the hits; relevance (0 to 1) tells how good each is, and weak: true that none "
        "is."
    ),
    arguments=SearchKnowledge,
    result=Hits,
    effect="read",
    handler=handle,
)
