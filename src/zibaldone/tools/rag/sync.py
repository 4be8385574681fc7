"""rag.admin.sync: have sources read again, in the background."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import Conflict, Forbidden, NotConfigured
from zibaldone.limits import RAG_SECONDS_MAX
from zibaldone.model.source import PULLED
from zibaldone.pull.job import SYNC, sync_job
from zibaldone.store.port import SourceRecord, Writer
from zibaldone.tools.jobs.ids import shown_id
from zibaldone.tools.rag.fields import CallStats, Clock, Words, unknown_source
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class AdminSync(Arguments):
    source_names: Words = Field([], description="Default: all that are enabled")


class SourceJob(TypedDict):
    source_name: str
    job_id: str


class SyncAccepted(TypedDict):
    accepted: bool
    job_id: str | None
    """That of the first source."""
    jobs: list[SourceJob]
    truncated: bool
    stats: CallStats


async def handle(call: Call, given: AdminSync) -> SyncAccepted:
    clock = Clock()
    tenant = call.principal.tenant
    if tenant.prefix:
        raise Forbidden(
            "A source belongs to the whole namespace; this key is bound to a folder of it.",
            allowed_prefix=tenant.prefix,
        )

    def add(writer: Writer) -> list[SourceJob]:
        chosen = chosen_sources(writer.sources.all(), given.source_names)
        ids = writer.queue.add([sync_job(source) for source in chosen])
        return [
            {"source_name": source.name, "job_id": shown_id(job_id, SYNC)}
            for source, job_id in zip(chosen, ids, strict=True)
        ]

    jobs = await call.runtime.store.write(tenant, add)
    return {
        "accepted": bool(jobs),
        "job_id": jobs[0]["job_id"] if jobs else None,
        "jobs": jobs,
        "truncated": False,
        "stats": {"ms": clock.ms},
    }


def chosen_sources(records: Sequence[SourceRecord], names: Sequence[str]) -> list[SourceRecord]:
    """The sources of these names, each once; without names all that are enabled."""
    pulled = {record.name: record for record in records if record.kind == PULLED}
    if not pulled:
        raise NotConfigured("No database is set up as a source, so there is nothing to sync.")
    if not names:
        enabled = [record for record in pulled.values() if record.enabled]
        if not enabled:
            raise Conflict("Every source is disabled; 'zibaldone sources enable' enables one.")
        return enabled
    if unknown := [name for name in names if name not in pulled]:
        raise unknown_source(unknown[0], pulled, field="source_names")
    chosen = [pulled[name] for name in dict.fromkeys(names)]
    if disabled := [record.name for record in chosen if not record.enabled]:
        raise Conflict(
            f"The source {disabled[0]!r} is disabled; 'zibaldone sources enable {disabled[0]}' "
            "enables it.",
            sources=disabled,
        )
    return chosen


TOOL = ToolSpec(
    name="rag.admin.sync",
    title="Sync sources",
    description=(
        "Read the databases behind the sources again, all or those named, in the background; "
        "get_job tells how far a job is. A source that is being synced keeps its job."
    ),
    arguments=AdminSync,
    result=SyncAccepted,
    effect="admin",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
