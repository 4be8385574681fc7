"""What may be done to a job from outside: look, cancel, retry."""

from __future__ import annotations

from dataclasses import replace

from zibaldone.errors import Conflict, NotFound, TooManyRequests
from zibaldone.limits import JOBS_OPEN_PER_KEY_MAX
from zibaldone.model.job import Job, NewJob, new_secret_job_id
from zibaldone.store.port import Reader, Writer


def get(reader: Reader | Writer, job_id: str) -> Job:
    return _require(reader.jobs.get(job_id), job_id)


def cancel(writer: Writer, job_id: str, now_us: int) -> Job:
    """End a job that waits or failed, or ask a running one to stop. Conflict: it is done."""
    job = _require(writer.queue.cancel(job_id, now_us), job_id)
    if job.state == "done":
        raise Conflict(
            f"Job {job_id} is done; there is nothing left to cancel.",
            job_id=job_id,
            state=job.state,
        )
    return job


def add_own(writer: Writer, job: NewJob, key_id: str) -> Job:
    """Queue a job that belongs to one caller. TooManyRequests: the caller has too many open."""
    if writer.jobs.open_of(key_id, JOBS_OPEN_PER_KEY_MAX) >= JOBS_OPEN_PER_KEY_MAX:
        raise TooManyRequests(
            f"This key has {JOBS_OPEN_PER_KEY_MAX} jobs that wait or run; wait until some are "
            "done, or cancel them.",
            jobs_max=JOBS_OPEN_PER_KEY_MAX,
        )
    (job_id,) = writer.queue.add([replace(job, key_id=key_id, job_id=new_secret_job_id())])
    return _require(writer.jobs.get(job_id), job_id)


def get_own(reader: Reader | Writer, job_id: str, key_id: str) -> Job | None:
    """A job of this caller; None: there is none, or it is not the caller's."""
    job = reader.jobs.get(job_id)
    return None if job is None or job.key_id != key_id else job


def head_own(reader: Reader, job_id: str, key_id: str) -> Job | None:
    """The same without payload and result."""
    job = reader.jobs.head(job_id)
    return None if job is None or job.key_id != key_id else job


def cancel_own(writer: Writer, job_id: str, key_id: str, now_us: int) -> Job | None:
    """The same; one that waits or runs is cancelled, one that has ended stays as it ended."""
    job = get_own(writer, job_id, key_id)
    if job is None or job.state not in ("queued", "running"):
        return job
    return writer.queue.cancel(job_id, now_us)


def retry(writer: Writer, job_id: str) -> Job:
    """Queue a job again that failed, was cancelled or waits for its next attempt."""
    job = _require(writer.queue.retry(job_id), job_id)
    if job.state in ("running", "done"):
        raise Conflict(
            f"Job {job_id} is {job.state}; only parked, cancelled and waiting jobs can be retried.",
            job_id=job_id,
            state=job.state,
        )
    if job.state != "queued":
        raise Conflict(
            f"Job {job_id} was not retried: another job does the same work already.",
            job_id=job_id,
            state=job.state,
        )
    return job


def _require(job: Job | None, job_id: str) -> Job:
    if job is None:
        raise NotFound(f"There is no job {job_id!r}.", job_id=job_id)
    return job
