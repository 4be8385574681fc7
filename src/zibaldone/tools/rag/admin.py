"""rag.admin.stats: sources and what they hold."""

from __future__ import annotations

from typing_extensions import TypedDict

from zibaldone.limits import RAG_SECONDS_MAX
from zibaldone.model.instant import to_iso
from zibaldone.tools.rag.fields import CallStats, Clock
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class AdminStats(Arguments):
    pass


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
