"""sync_sources: bring sources up to date, and wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict, NotConfigured, NotFound
from zibaldone.jobs.runner import JobRunner
from zibaldone.model.instant import now_us
from zibaldone.model.job import Job, JobState
from zibaldone.pull import registry
from zibaldone.pull.job import SYNC, queue_sync, sync_kind
from zibaldone.store.port import Store
from zibaldone.store.upkeep import SourceRecord
from zibaldone.tools.jobs.ids import shown_id
from zibaldone.tools.spec import Arguments, Call, Runtime, ToolSpec

_LOOK_SECONDS = 0.1
_TAKEN_UP_SECONDS = 1.2
"""A server looks for jobs twice a second; if none has begun by then, there is none."""

_SEEN_SECONDS_MAX = 30.0
"""For a job that was added to be seen, where reads go to a replica of the store."""

_ROUNDS = 3
"""A job that was there already may do less than is asked for; then another one follows it."""

_ENDED: tuple[JobState, ...] = ("done", "parked", "cancelled")
_COUNTS = ("created", "updated", "deleted", "unchanged", "failed")


class SyncSources(Arguments):
    sources: list[str] = Field([], description="Default: all that are enabled")
    namespace: str | None = None
    full: bool = Field(False, description="Compare every row whole")
    allow_deletes: bool = Field(False, description="However many documents that deletes")


class SourceOutcome(TypedDict):
    source: str
    namespace: str
    job_id: str
    state: JobState
    created: int
    updated: int
    deleted: int
    unchanged: int
    failed: int
    problems: list[Any]
    seconds: float
    error: str | None


class SyncOutcome(TypedDict):
    sources: list[SourceOutcome]


async def handle(call: Call, given: SyncSources) -> SyncOutcome:
    runtime = call.runtime
    chosen = _chosen(await registry.all_records(runtime.store), given)
    outcomes: dict[int, SourceOutcome] = {}
    left = chosen
    for _ in range(_ROUNDS):
        followed = await _queue(runtime.store, left, given)
        await _follow(call, followed)
        outcomes |= {one.record.source_id: one.outcome() for one in followed}
        left = [one.record for one in followed if not one.is_as_asked(given)]
        if not left:
            break
    return {"sources": [outcomes[record.source_id] for record in chosen]}


async def _queue(
    store: Store, records: Sequence[SourceRecord], given: SyncSources
) -> list[_Followed]:
    job_ids = await store.upkeep(
        lambda upkeep: [
            queue_sync(upkeep, record, is_full=given.full, allow_deletes=given.allow_deletes)
            for record in records
        ]
    )
    return [
        _Followed(store, record, job_id) for record, job_id in zip(records, job_ids, strict=True)
    ]


def _chosen(records: Sequence[SourceRecord], given: SyncSources) -> list[SourceRecord]:
    if not records:
        raise NotConfigured(
            "No database is set up as a source; 'zibaldone sources add URL TABLE' adds one."
        )
    if given.sources:
        names = dict.fromkeys(given.sources)
        chosen = [registry.find(records, name, given.namespace) for name in names]
        if disabled := [record.name for record in chosen if not record.enabled]:
            raise Conflict(
                f"The source {disabled[0]!r} is disabled; 'zibaldone sources enable "
                f"{disabled[0]}' enables it.",
                sources=disabled,
            )
        return chosen
    chosen = [r for r in records if r.enabled and given.namespace in (None, r.namespace)]
    if not chosen:
        raise NotFound("There is no source that is enabled.")
    return chosen


class _Followed:
    """A job that somebody waits for."""

    def __init__(self, store: Store, record: SourceRecord, job_id: str) -> None:
        self._store = store
        self._tenant = Tenant(record.namespace)
        self.record = record
        self.job_id = job_id
        self.job: Job | None = None
        self._is_seen = False
        self._seen_until_s = time.monotonic() + _SEEN_SECONDS_MAX

    async def look(self) -> None:
        self.job = await self._store.read(
            self._tenant, lambda reader: reader.jobs.get(self.job_id), is_small=True
        )
        self._is_seen = self._is_seen or self.job is not None

    async def cancel(self) -> None:
        at_us = now_us()
        await self._store.write(
            self._tenant, lambda writer: writer.queue.cancel(self.job_id, at_us)
        )

    @property
    def is_waiting(self) -> bool:
        return self.job is not None and self.job.state == "queued"

    @property
    def has_ended(self) -> bool:
        """Also after an attempt that failed: a server may try again, but nobody waits for that."""
        if self.job is None:  # a replica may not have it yet
            return self._is_seen or time.monotonic() > self._seen_until_s
        return self.job.state in _ENDED or self.has_failed

    @property
    def has_failed(self) -> bool:
        return self.is_waiting and self.job is not None and self.job.attempts > 0

    @property
    def progress(self) -> tuple[float, float]:
        progress = None if self.job is None else self.job.progress
        if progress is None:
            return 0.0, 0.0
        return progress.done, max(progress.done, progress.total or 0.0)

    def is_as_asked(self, given: SyncSources) -> bool:
        """Whether the job does what is asked for: it may be one that was there already."""
        if self.job is None or self.job.state not in _ENDED:
            return True
        payload = self.job.payload
        return all(
            payload.get(name) or not wanted
            for name, wanted in (("full", given.full), ("allow_deletes", given.allow_deletes))
        )

    def outcome(self) -> SourceOutcome:
        job, record = self.job, self.record
        result = job.result if job is not None and isinstance(job.result, dict) else {}
        counts = {name: int(result.get(name, 0)) for name in _COUNTS}
        return {
            "source": record.name,
            "namespace": record.namespace,
            "job_id": shown_id(self.job_id, SYNC),
            "state": "done" if job is None else job.state,
            "created": counts["created"],
            "updated": counts["updated"],
            "deleted": counts["deleted"],
            "unchanged": counts["unchanged"],
            "failed": counts["failed"],
            "problems": list(result.get("problems", ())),
            "seconds": float(result.get("seconds", 0.0)),
            "error": None if job is None else job.error,
        }


async def _follow(call: Call, followed: Sequence[_Followed]) -> None:
    """Until all have ended. If no server takes them up, they are run here."""
    started_s = time.monotonic()
    is_running = False
    async with contextlib.AsyncExitStack() as stack:
        # Where whoever waits gives up: what runs here, or nowhere yet, is not wanted any more. A
        # server tries again what has failed; nobody would here.
        stack.push_async_callback(
            lambda: _cancel(
                [one for one in followed if is_running or (one.is_waiting and not one.has_failed)]
            )
        )
        while True:
            for one in followed:
                if one.job is None or not one.has_ended:
                    await one.look()
            if all(one.has_ended for one in followed):
                return
            done, total = map(sum, zip(*(one.progress for one in followed), strict=True))
            if total:
                await call.progress(done, total, "syncing")
            is_left = time.monotonic() - started_s > _TAKEN_UP_SECONDS
            if not is_running and is_left and any(one.is_waiting for one in followed):
                await stack.enter_async_context(_running(call.runtime))
                is_running = True
            await asyncio.sleep(_LOOK_SECONDS)


@contextlib.asynccontextmanager
async def _running(runtime: Runtime) -> AsyncIterator[None]:
    """Syncs are run in this process."""
    if runtime.pulled is None:
        raise NotConfigured("Sources cannot be synced in this process.")
    runner = JobRunner(runtime.store, {SYNC: sync_kind(runtime.store, runtime.pulled)})
    task = asyncio.create_task(runner.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _cancel(followed: Sequence[_Followed]) -> None:
    """Those that have ended stay as they are."""
    for one in followed:
        if one.job is not None and one.job.state not in _ENDED:
            await one.cancel()


TOOL = ToolSpec(
    name="sync_sources",
    title="Sync sources and wait",
    description="Bring sources up to date with their databases, and wait until that is done.",
    arguments=SyncSources,
    result=SyncOutcome,
    effect="admin",
    handler=handle,
    seconds_max=math.inf,
    reports_progress=True,
    is_local=True,
)
