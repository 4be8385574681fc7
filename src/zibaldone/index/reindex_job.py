"""The job that looks for documents without vectors, and its schedule.

A write queues its own document, so there is usually nothing to find. It makes up for what was lost
by a mishap, and gives documents that failed another chance.
"""

from __future__ import annotations

from typing import Any

from zibaldone.errors import Conflict
from zibaldone.index.sweep import enqueue_missing
from zibaldone.index.worker import IndexWorker
from zibaldone.jobs.runner import JobContext, JobKind, JobPostponed
from zibaldone.jobs.schedule import new_schedule
from zibaldone.limits import INDEX_WORKER_ALIVE_SECONDS, REINDEX_KEPT_SECONDS
from zibaldone.model.job import Schedule
from zibaldone.store.port import Store

REINDEX = "reindex"

_CRON = "*/15 * * * *"


def reindex_kind(store: Store, worker: IndexWorker) -> JobKind:
    async def reindex(context: JobContext) -> dict[str, Any]:
        try:
            queued = await enqueue_missing(store, await worker.model_id())
        except Conflict as error:  # another process has the turn: leave the job to it
            raise JobPostponed(error.message, INDEX_WORKER_ALIVE_SECONDS) from error
        worker.wake()
        return {"queued": queued}

    return JobKind(reindex, keep_done_seconds=REINDEX_KEPT_SECONDS)


def reindex_schedule() -> Schedule:
    return new_schedule("reindex-missing", _CRON, REINDEX)
