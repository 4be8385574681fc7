"""What may be done to a job from outside: look, cancel, retry."""

from __future__ import annotations

from zibaldone.errors import Conflict, NotFound
from zibaldone.model.job import Job
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
