"""MCP tasks, the extension `io.modelcontextprotocol/tasks`: jobs of the queue as clients see them.

A call of a tool that has a job is answered with a task if its request declared the extension. The
task is the job: it is stored before the answer, survives both sides, and only its caller sees it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from zibaldone.jobs import manage
from zibaldone.jobs.runner import UNEXPECTED
from zibaldone.limits import JOB_CRASHES_MAX, JOB_DONE_KEPT_SECONDS, JOB_ID_CHARS_MAX, TASK_POLL_MS
from zibaldone.model.instant import now_us, to_iso
from zibaldone.model.job import Job, JobState
from zibaldone.protocol.constants import CLIENT_CAPABILITIES_META_KEY
from zibaldone.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    Message,
    ProtocolError,
)
from zibaldone.tools.spec import Call, Runtime

EXTENSION = "io.modelcontextprotocol/tasks"

ToResult = Callable[[Any, bool], dict[str, Any]]
"""The result of a call, of an answer and whether it is an error."""

_STATUS: dict[JobState, str] = {
    "queued": "working",
    "running": "working",
    "done": "completed",
    "parked": "completed",
    "cancelled": "cancelled",
}
_WITH_CODE = re.compile(r"(.*) \[([A-Z_]+)\]", re.DOTALL)
"""How the queue keeps an error that has a code."""


def is_declared(message: Message) -> bool:
    """Does the request say that its client knows tasks?"""
    capabilities = message.meta.get(CLIENT_CAPABILITIES_META_KEY)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and isinstance(extensions.get(EXTENSION), dict)


def require_declared(message: Message) -> None:
    if not is_declared(message):
        raise ProtocolError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"The request must declare the extension {EXTENSION} in its capabilities.",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )


def created(job: Job, runtime: Runtime) -> dict[str, Any]:
    """What a call is answered with in place of its result."""
    return {"resultType": "task", **_task(job, runtime)}


async def get(task_id: str, call: Call, to_result: ToResult) -> dict[str, Any]:
    """The task as it is now; with its result or error, once it has one."""
    job = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: manage.get_own(reader, _known(task_id), call.principal.key_id),
    )
    return _detailed(_require(job, task_id), call.runtime, to_result)


async def update(task_id: str, call: Call) -> dict[str, Any]:
    """Take what the client was asked for. No task of ours asks, so there is nothing to keep."""
    job = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: manage.get_own(reader, _known(task_id), call.principal.key_id),
    )
    _require(job, task_id)
    return {}


async def cancel(task_id: str, call: Call) -> dict[str, Any]:
    """Ask the task to stop. One that has ended stays as it ended."""
    job_id, key_id, at_us = _known(task_id), call.principal.key_id, now_us()
    job = await call.runtime.store.write(
        call.principal.tenant, lambda writer: manage.cancel_own(writer, job_id, key_id, at_us)
    )
    _require(job, task_id)
    call.runtime.wake()
    return {}


def _known(task_id: str) -> str:
    """Ids of jobs are short and ASCII: the store is not asked for what cannot be one."""
    if len(task_id) > JOB_ID_CHARS_MAX or not task_id.isascii() or not task_id.isprintable():
        raise _unknown(task_id)
    return task_id


def _require(job: Job | None, task_id: str) -> Job:
    if job is None:
        raise _unknown(task_id)
    return job


def _unknown(task_id: str) -> ProtocolError:
    """The same for a task of another key and for one that never was."""
    return ProtocolError(INVALID_PARAMS, f"Unknown task: {task_id[:JOB_ID_CHARS_MAX]}")


def _task(job: Job, runtime: Runtime) -> dict[str, Any]:
    kept_seconds = (
        JOB_DONE_KEPT_SECONDS if runtime.jobs is None else runtime.jobs.kept_seconds(job.kind)
    )
    updated_us = max(job.created_at_us, job.started_at_us or 0, job.finished_at_us or 0)
    task: dict[str, Any] = {
        "taskId": job.job_id,
        "status": "failed" if _is_broken(job) else _STATUS[job.state],
        "createdAt": to_iso(job.created_at_us),
        "lastUpdatedAt": to_iso(updated_us),
        "ttlMs": max(1, int(kept_seconds * 1000)),
        "pollIntervalMs": TASK_POLL_MS,
    }
    if job.progress is not None and job.progress.message:
        task["statusMessage"] = job.progress.message
    return task


def _is_broken(job: Job) -> bool:
    """Did the server fail, rather than the tool?"""
    if job.state != "parked":
        return False
    return job.error in (None, UNEXPECTED) or job.crashes >= JOB_CRASHES_MAX


def _detailed(job: Job, runtime: Runtime, to_result: ToResult) -> dict[str, Any]:
    task = _task(job, runtime)
    if task["status"] == "failed":
        task["error"] = {"code": INTERNAL_ERROR, "message": job.error or UNEXPECTED}
    elif job.state == "done":
        task["result"] = to_result({} if job.result is None else job.result, False)
    elif job.state == "parked":
        task["result"] = to_result(_failure(job.error or ""), True)
    return task


def _failure(error: str) -> dict[str, str]:
    found = _WITH_CODE.fullmatch(error)
    if found is None:
        return {"code": "JOB_FAILED", "message": error}
    return {"code": found[2], "message": found[1]}
