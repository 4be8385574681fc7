"""A sync as a job: queued once for each source, run by whichever process is free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zibaldone.errors import Conflict, InvalidArgument, SourceUnavailable
from zibaldone.jobs.runner import JobContext, JobFailed, JobKind
from zibaldone.jobs.schedule import new_schedule
from zibaldone.limits import SYNC_CONCURRENCY, SYNC_KEPT_SECONDS, SYNC_LEASE_SECONDS
from zibaldone.model.instant import now_us
from zibaldone.model.job import NewJob, Schedule
from zibaldone.model.source import PULLED, SourceDefinition
from zibaldone.pull.destination import Destination
from zibaldone.pull.sync import sync
from zibaldone.store.port import SourceRecord, Store
from zibaldone.store.upkeep import Source, Upkeep

SYNC = "sync"
"""The kind of job."""


def sync_job(
    source: Source | SourceRecord, *, is_full: bool = False, allow_deletes: bool = False
) -> NewJob:
    payload: dict[str, Any] = {"source_id": source.source_id, "source": source.name}
    if is_full:
        payload["full"] = True
    if allow_deletes:
        payload["allow_deletes"] = True
    return NewJob(
        SYNC, subject=source.name, payload=payload, unique_key=unique_key(source.source_id)
    )


def unique_key(source_id: int) -> str:
    return f"{SYNC}:{source_id}"


def queue_sync(
    upkeep: Upkeep,
    source: Source | SourceRecord,
    *,
    is_full: bool = False,
    allow_deletes: bool = False,
) -> str:
    """Queue a sync in this transaction; its job id, or that of the one that waits or runs already.

    A tenant's own transaction does the same with `writer.queue.add([sync_job(source)])`.
    """
    job = sync_job(source, is_full=is_full, allow_deletes=allow_deletes)
    (job_id,) = upkeep.queue.add(source.namespace, [job])
    return job_id


def sync_schedule(source_id: int, definition: SourceDefinition) -> Schedule | None:
    """The schedule of a source; None: it has none."""
    if not definition.schedule or not definition.enabled:
        return None
    job: Mapping[str, Any] = {
        "source_id": source_id,
        "source": definition.name,
        "unique_key": unique_key(source_id),
        "subject": definition.name,
    }
    return new_schedule(
        schedule_name(definition),
        definition.schedule,
        SYNC,
        namespace=definition.namespace,
        payload=job,
        after_us=now_us(),
    )


def schedule_name(definition: SourceDefinition) -> str:
    prefix = "" if definition.namespace == "default" else f"{definition.namespace}/"
    return f"{SYNC}:{prefix}{definition.name}"


def sync_kind(
    store: Store, destination: Destination[Any], environment: Mapping[str, str] | None = None
) -> JobKind:
    """What the job runner needs to run syncs."""

    async def handle(context: JobContext) -> dict[str, Any]:
        source_id, name = context.payload.get("source_id"), context.payload.get("source")
        source = await store.read(
            context.tenant,
            lambda reader: reader.sources.get(source_id) if isinstance(source_id, int) else None,
        )
        if source is None or source.name != name or source.kind != PULLED:
            raise JobFailed(f"There is no source {name!r} any more.")
        try:
            definition = SourceDefinition.from_stored(
                source.name, source.namespace, source.definition
            )
            result = await sync(
                store,
                destination,
                source.source_id,
                definition,
                environment=environment,
                is_full=bool(context.payload.get("full")),
                allow_deletes=bool(context.payload.get("allow_deletes")),
                on_progress=lambda done, total: context.progress(done, total, "rows"),
                check=context.check,
            )
        except (Conflict, InvalidArgument) as error:
            raise JobFailed(f"{error.message} [{error.code}]") from error
        except SourceUnavailable as error:
            context.check()
            if error.details.get("reason") in ("refused", "timeout"):
                raise JobFailed(f"{error.message} [{error.code}]") from error
            raise
        return result.as_dict()

    return JobKind(
        handle,
        concurrency=SYNC_CONCURRENCY,
        lease_seconds=SYNC_LEASE_SECONDS,
        keep_done_seconds=SYNC_KEPT_SECONDS,
    )
