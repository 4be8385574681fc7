"""reindex_missing, audit_sync and cleanup_orphans: the vectors and the documents, compared."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import NotConfigured
from zibaldone.index import sweep
from zibaldone.index.worker import IndexWorker
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_SECONDS_MAX = 120.0
"""A look over everything; at a million chunks it takes seconds."""


class ReindexMissing(Arguments):
    pass


class AuditSync(Arguments):
    heal: bool = Field(False, description="Also mend what is found")


class CleanupOrphans(Arguments):
    dry_run: bool = Field(True, description="Only count; nothing is removed")


class IndexStatus(Arguments):
    pass


def _worker(call: Call) -> IndexWorker:
    if call.runtime.index is None:
        raise NotConfigured("There is no embedding model, so there is no vector index.")
    return call.runtime.index


class Queued(TypedDict):
    queued: int


class Status(sweep.IndexStatus):
    model: str | None


async def handle_reindex(call: Call, given: ReindexMissing) -> Queued:
    del given
    model_id = await _worker(call).model_id()
    return {"queued": await sweep.enqueue_missing(call.runtime.store, model_id)}


async def handle_audit(call: Call, given: AuditSync) -> sweep.SyncAudit:
    model_id = await _worker(call).model_id()
    return await sweep.audit_sync(
        call.runtime.store, model_id, heal=given.heal, shown_to=call.principal.tenant
    )


async def handle_cleanup(call: Call, given: CleanupOrphans) -> sweep.Cleanup:
    return await sweep.cleanup_orphans(call.runtime.store, dry_run=given.dry_run)


async def handle_status(call: Call, given: IndexStatus) -> Status:
    del given
    runtime = call.runtime
    model_id = None if runtime.index is None else await runtime.index.model_id()
    name = None if runtime.embedder is None else runtime.embedder.identity
    return {"model": name, **await sweep.status(runtime.store, model_id)}


REINDEX = ToolSpec(
    name="reindex_missing",
    title="Index what is missing",
    description="Queue every document that lacks vectors, also those that failed before.",
    arguments=ReindexMissing,
    result=Queued,
    effect="admin",
    handler=handle_reindex,
    idempotent=True,
    seconds_max=_SECONDS_MAX,
)
AUDIT = ToolSpec(
    name="audit_sync",
    title="Compare index and documents",
    description="Count vectors without documents and documents without vectors; mend on request.",
    arguments=AuditSync,
    result=sweep.SyncAudit,
    effect="admin",
    handler=handle_audit,
    idempotent=True,
    seconds_max=_SECONDS_MAX,
)
CLEANUP = ToolSpec(
    name="cleanup_orphans",
    title="Remove orphaned vectors",
    description="Remove vectors whose chunk is gone; a dry run by default.",
    arguments=CleanupOrphans,
    result=sweep.Cleanup,
    effect="admin",
    handler=handle_cleanup,
    idempotent=True,
    seconds_max=_SECONDS_MAX,
)
STATUS = ToolSpec(
    name="index_status",
    title="How the index stands",
    description="How much has vectors, by which models, and what waits or failed.",
    arguments=IndexStatus,
    result=Status,
    effect="admin",
    handler=handle_status,
    seconds_max=_SECONDS_MAX,
    is_local=True,
)
