"""rag.admin.stats, rag.admin.sync and rag.fetch_from_source: sources and what they hold."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import NotConfigured
from zibaldone.limits import RAG_IDS_MAX, RAG_SECONDS_MAX
from zibaldone.model.instant import to_iso
from zibaldone.tools.rag.fields import CallStats, Clock, DocId, Words
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class AdminStats(Arguments):
    pass


class AdminSync(Arguments):
    source_names: Words = []


class FetchLimits(Arguments):
    max_rows: int = Field(10, ge=1, le=RAG_IDS_MAX)
    max_bytes: int = Field(200_000, ge=1, le=5_000_000)


class FetchFromSource(Arguments):
    doc_ids: list[DocId] = Field(min_length=1, max_length=RAG_IDS_MAX)
    columns: Words = []
    limits: FetchLimits = FetchLimits()


class SourceStats(TypedDict):
    source_id: int
    source_name: str
    enabled: bool
    docs: int
    chunks: int
    last_sync: str | None


class IndexStats(TypedDict):
    sources: list[SourceStats]
    truncated: bool
    stats: CallStats


class NotOffered(TypedDict):
    """These tools have no answer yet: no database can be a source."""


async def handle_stats(call: Call, given: AdminStats) -> IndexStats:
    del given
    clock = Clock()
    sources = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: reader.sources.counts(),
        seconds_max=RAG_SECONDS_MAX,
    )
    return {
        "sources": [
            {
                "source_id": source.source_id,
                "source_name": source.name,
                "enabled": source.enabled,
                "docs": source.documents,
                "chunks": source.chunks,
                "last_sync": None
                if source.last_sync_at_us is None
                else to_iso(source.last_sync_at_us),
            }
            for source in sources
        ],
        "truncated": False,
        "stats": {"ms": clock.ms},
    }


async def handle_sync(call: Call, given: AdminSync) -> NotOffered:
    del call, given
    raise NotConfigured("No database is set up as a source, so there is nothing to sync.")


async def handle_fetch(call: Call, given: FetchFromSource) -> NotOffered:
    del call, given
    raise NotConfigured("No database is set up as a source, so there is no row to fetch.")


STATS = ToolSpec(
    name="rag.admin.stats",
    title="What the index holds",
    description="Documents, chunks and last sync of each source.",
    arguments=AdminStats,
    result=IndexStats,
    effect="read",
    handler=handle_stats,
    seconds_max=RAG_SECONDS_MAX,
)
SYNC = ToolSpec(
    name="rag.admin.sync",
    title="Sync sources",
    description="Read sources again, all or those named.",
    arguments=AdminSync,
    result=NotOffered,
    effect="admin",
    handler=handle_sync,
    seconds_max=RAG_SECONDS_MAX,
)
FETCH = ToolSpec(
    name="rag.fetch_from_source",
    title="Rows from the source",
    description="The authoritative row behind a document, read from its database by primary key.",
    arguments=FetchFromSource,
    result=NotOffered,
    effect="read",
    handler=handle_fetch,
    seconds_max=RAG_SECONDS_MAX,
)
