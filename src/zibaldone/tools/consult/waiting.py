"""Waiting for the job of a turn, as long as a client may."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

from zibaldone.consult.job import CONSULT, ask_of, consult_job, error_of
from zibaldone.errors import Conflict, NotFound
from zibaldone.jobs import manage
from zibaldone.limits import CONSULT_POLL_SECONDS_MAX
from zibaldone.model.job import Job, NewJob
from zibaldone.pack.build import require_bounds
from zibaldone.tools.consult.fields import Chat, ChatResult
from zibaldone.tools.spec import Call

_LOOK_SECONDS_MIN = 0.02
_LOOK_SECONDS_MAX = 0.5
_ENDED = ("done", "parked", "cancelled")


def chat_job(call: Call, assistant: str, given: Chat) -> NewJob:
    """The job of a turn, in the name of the caller."""
    payload: dict[str, Any] = given.model_dump(exclude_defaults=True)
    payload.pop("assistants", None)
    payload["assistant"] = assistant
    payload["effects"] = sorted(call.principal.effects)
    require_bounds(ask_of(payload))  # before it is stored: others read the queue
    return consult_job(payload)


async def add(call: Call, job: NewJob) -> Job:
    key_id = call.principal.key_id
    added = await call.runtime.store.write(
        call.principal.tenant, lambda writer: manage.add_own(writer, job, key_id)
    )
    call.runtime.wake()
    return added


async def own_job(call: Call, job_id: str) -> Job:
    """A turn of the caller. NotFound also for one of another key."""
    key_id = call.principal.key_id
    job = await call.runtime.store.read(
        call.principal.tenant, lambda reader: manage.get_own(reader, job_id, key_id)
    )
    if job is None or job.kind != CONSULT:
        raise NotFound(f"There is no job {job_id!r} of this key.", job_id=job_id)
    return job


async def wait(call: Call, job: Job, seconds_max: float) -> Job:
    """The job when it has ended; while it runs, as it was given.

    Looked at without what it was asked: that may be long, and many wait.
    """
    key_id, whole = call.principal.key_id, job
    until_s = time.monotonic() + seconds_max
    pause_s, told = _LOOK_SECONDS_MIN, 0.0
    while job.state not in _ENDED and time.monotonic() < until_s:
        await asyncio.sleep(min(pause_s, max(until_s - time.monotonic(), 0.0)))
        pause_s = min(pause_s * 1.5, _LOOK_SECONDS_MAX)
        head = await call.runtime.store.read(
            call.principal.tenant,
            lambda reader: manage.head_own(reader, whole.job_id, key_id),
            is_small=True,
        )
        if head is None:  # a replica may not have it yet
            continue
        job = head
        progress = job.progress
        if progress is not None and progress.done > told:
            told = progress.done
            await call.progress(progress.done, progress.total, progress.message)
    if job is not whole and job.state in _ENDED:
        return await own_job(call, job.job_id)
    return whole


def chat_result(job: Job) -> ChatResult:
    """Raises what the turn failed with."""
    if job.state == "parked":
        raise error_of(job)
    if job.state == "cancelled":
        raise Conflict("The turn was cancelled.", job_id=job.job_id)
    if job.state == "done":
        return cast("ChatResult", job.result)
    return {
        "status": "running",
        "assistant": str(job.payload.get("assistant", "")),
        "session_id": str(job.payload.get("session_id", "")),
        "job_id": job.job_id,
        "next": f"Call poll_job with this job_id; it waits up to {CONSULT_POLL_SECONDS_MAX:g} s. "
        "cancel_job ends it.",
    }
