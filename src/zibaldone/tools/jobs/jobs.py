"""list_jobs, get_job, cancel_job, retry_job: background work of the caller's namespace.

On no smaller MCP profile; /mcp-all, REST and the command line offer them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.access.decide import require_effect
from zibaldone.errors import Conflict, NotFound
from zibaldone.jobs import manage
from zibaldone.limits import (
    JOB_ID_CHARS_MAX,
    JOB_KIND_CHARS_MAX,
    JOB_LIST_LIMIT_DEFAULT,
    JOB_LIST_LIMIT_MAX,
)
from zibaldone.model.instant import now_us, to_iso
from zibaldone.model.job import Job, JobState
from zibaldone.store.port import Writer
from zibaldone.tools.jobs.ids import shown_id, stored_id
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_HIDDEN = "It failed; only the key that the job belongs to is shown why."

JobId = Annotated[str, Field(pattern=r"^[0-9A-Za-z:.-]+$", max_length=JOB_ID_CHARS_MAX)]


class ListJobs(Arguments):
    kind: str | None = Field(
        None,
        max_length=JOB_KIND_CHARS_MAX,
        description="Only jobs of this kind, e.g. 'vectors'",
    )
    state: JobState | None = Field(None, description="Only jobs in this state")
    limit: int = Field(JOB_LIST_LIMIT_DEFAULT, ge=1, le=JOB_LIST_LIMIT_MAX)
    after: str | None = Field(
        None, max_length=JOB_ID_CHARS_MAX, description="next_after of the page before"
    )


class OneJob(Arguments):
    job_id: JobId


class JobProgress(TypedDict):
    done: float
    total: float | None
    message: str


class JobInfo(TypedDict):
    job_id: str
    kind: str
    state: JobState
    subject: str | None
    created_at: str
    not_before: str | None
    started_at: str | None
    finished_at: str | None
    attempts: int
    crashes: int
    cancel_requested: bool
    progress: JobProgress | None
    error: str | None


class JobDetails(JobInfo):
    payload: Mapping[str, Any]
    result: Any


class JobList(TypedDict):
    jobs: list[JobInfo]
    next_after: str | None


def _is_shown(call: Call, job: Job) -> bool:
    """A job that belongs to a caller says to no other what it was asked, says and answered."""
    return call.is_operator or job.key_id in (None, call.principal.key_id)


def _job_info(call: Call, job: Job) -> JobInfo:
    progress, is_shown = job.progress, _is_shown(call, job)
    return {
        "job_id": shown_id(job.job_id, job.kind),
        "kind": job.kind,
        "state": job.state,
        "subject": job.subject,
        "created_at": to_iso(job.created_at_us),
        "not_before": to_iso(job.not_before_us) if job.not_before_us else None,
        "started_at": None if job.started_at_us is None else to_iso(job.started_at_us),
        "finished_at": None if job.finished_at_us is None else to_iso(job.finished_at_us),
        "attempts": job.attempts,
        "crashes": job.crashes,
        "cancel_requested": job.cancel_requested,
        "progress": None
        if progress is None
        else {
            "done": progress.done,
            "total": progress.total,
            "message": progress.message if is_shown else "",
        },
        "error": job.error if is_shown or job.error is None else _HIDDEN,
    }


def _job_details(call: Call, job: Job) -> JobDetails:
    is_shown = _is_shown(call, job)
    return {
        **_job_info(call, job),
        "payload": job.payload if is_shown else {},
        "result": job.result if is_shown else None,
    }


async def handle_list(call: Call, given: ListJobs) -> JobList:
    after = None if given.after is None else stored_id(given.after)
    jobs = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: reader.jobs.page(
            kind=given.kind, state=given.state, limit=given.limit + 1, after=after
        ),
    )
    page = [_job_info(call, job) for job in jobs[: given.limit]]
    return {"jobs": page, "next_after": page[-1]["job_id"] if len(jobs) > given.limit else None}


@contextmanager
def _named(job_id: str) -> Iterator[None]:
    """Errors name the job as the caller did."""
    try:
        yield
    except (Conflict, NotFound) as error:
        message = error.message.replace(stored_id(job_id), job_id)
        raise type(error)(message, **{**error.details, "job_id": job_id}) from None


async def handle_get(call: Call, given: OneJob) -> JobDetails:
    with _named(given.job_id):
        job = await call.runtime.store.read(
            call.principal.tenant, lambda reader: manage.get(reader, stored_id(given.job_id))
        )
    return _job_details(call, job)


async def handle_cancel(call: Call, given: OneJob) -> JobDetails:
    """Whoever may write may cancel a job of their own; for all others it takes an admin."""
    at_us, job_id = now_us(), stored_id(given.job_id)

    def cancel(writer: Writer) -> Job:
        if manage.get(writer, job_id).key_id != call.principal.key_id:
            require_effect(call.principal, "admin")
        return manage.cancel(writer, job_id, at_us)

    with _named(given.job_id):
        job = await call.runtime.store.write(call.principal.tenant, cancel)
    return _job_details(call, job)


async def handle_retry(call: Call, given: OneJob) -> JobDetails:
    with _named(given.job_id):
        job = await call.runtime.store.write(
            call.principal.tenant, lambda writer: manage.retry(writer, stored_id(given.job_id))
        )
    return _job_details(call, job)


LIST = ToolSpec(
    name="list_jobs",
    title="List jobs",
    description="List background jobs, newest first: their state, progress and errors.",
    arguments=ListJobs,
    result=JobList,
    effect="read",
    handler=handle_list,
)
GET = ToolSpec(
    name="get_job",
    title="One job",
    description="Show a background job with its payload and result.",
    arguments=OneJob,
    result=JobDetails,
    effect="read",
    handler=handle_get,
)
CANCEL = ToolSpec(
    name="cancel_job",
    title="Cancel a job",
    description=(
        "Cancel a background job: your own, or as an admin any. One that is running is asked to "
        "stop: its state becomes 'cancelled' when it has."
    ),
    arguments=OneJob,
    result=JobDetails,
    effect="write",
    handler=handle_cancel,
    idempotent=True,
)
RETRY = ToolSpec(
    name="retry_job",
    title="Retry a job",
    description="Queue a background job again that failed, was cancelled, or waits to be retried.",
    arguments=OneJob,
    result=JobDetails,
    effect="admin",
    handler=handle_retry,
    idempotent=True,
)
