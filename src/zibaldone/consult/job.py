"""A turn as a job: it outlives its client and the server, and is never sent again once answered."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from zibaldone import errors
from zibaldone.access.principal import Tenant, has_stored_key
from zibaldone.consult.answer import ChatAnswer, StoredAnswer
from zibaldone.consult.turn import Consulting, SessionBusy, TurnRequest, Watch
from zibaldone.errors import (
    Internal,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    Unauthenticated,
    ZibaldoneError,
)
from zibaldone.jobs.runner import JobContext, JobFailed, JobKind, JobPostponed
from zibaldone.limits import (
    CONSULT_CONCURRENCY,
    CONSULT_KEPT_SECONDS,
    CONSULT_LEASE_SECONDS,
    CONSULT_PER_KEY,
)
from zibaldone.model.consult import SessionKey
from zibaldone.model.job import Job, NewJob
from zibaldone.pack.build import Ask

CONSULT = "consult"
"""The kind of job."""

_BUSY_SECONDS = 0.5
_WITH_CODE = re.compile(r"(.*) \[([A-Z_]+)\]", re.DOTALL)

StoreAnswer = Callable[[Tenant, str, Mapping[str, Any], ChatAnswer], Awaitable[StoredAnswer | None]]
"""Writes the answer as a document, if the payload asks for it: tenant, key id, payload, answer."""


def consult_job(payload: Mapping[str, Any]) -> NewJob:
    """`payload`: the checked arguments of a chat, with the assistant's name and the effects of the
    caller. Its subject says nothing: every key of the namespace is shown it."""
    return NewJob(CONSULT, payload=payload)


def turn_request(job_id: str, owner: str, payload: Mapping[str, Any]) -> TurnRequest:
    return TurnRequest(
        turn_id=job_id,
        key=SessionKey(owner, payload["assistant"], payload["session_id"]),
        ask=ask_of(payload),
        output_schema=payload.get("structured_output_schema"),
        reasoning_effort=payload.get("reasoning_effort"),
        may_read="read" in payload.get("effects", ()),
    )


def ask_of(payload: Mapping[str, Any]) -> Ask:
    return Ask(
        instructions=payload["instructions"],
        output_format=payload.get("output_format", ""),
        context=tuple(payload.get("context", ())),
        attachments=tuple(payload.get("attachments", ())),
        priority_context=tuple(payload.get("priority_context", ())),
    )


def consult_kind(consulting: Consulting, store_answer: StoreAnswer) -> JobKind:
    """What the job runner needs to run turns."""

    async def handle(context: JobContext) -> dict[str, Any]:
        if context.key_id is None:
            raise JobFailed("The job says not whose it is.")
        told = 0

        async def on_progress(message: str) -> None:
            nonlocal told
            told += 1
            await context.progress(told, None, message)

        await _require_valid_key(consulting, context)
        request = turn_request(context.job_id, context.key_id, context.payload)
        watch = Watch(on_progress=on_progress, check=context.check)
        try:
            answer = await consulting.take_turn(context.tenant, request, watch)
            stored = await store_answer(context.tenant, context.key_id, context.payload, answer)
        except SessionBusy:
            raise JobPostponed("Another turn runs.", _BUSY_SECONDS) from None
        except (StorageUnavailable, StorageFull, StorageReadOnly):
            raise  # tried again: nothing is lost by it
        except ZibaldoneError as error:
            raise JobFailed(f"{error.message} [{error.code}]") from error
        more = {} if stored is None else {"stored": stored}
        return {**answer, "job_id": context.job_id, **more}

    return JobKind(
        handle,
        concurrency=CONSULT_CONCURRENCY,
        per_key=CONSULT_PER_KEY,
        lease_seconds=CONSULT_LEASE_SECONDS,
        keep_done_seconds=CONSULT_KEPT_SECONDS,
    )


async def _require_valid_key(consulting: Consulting, context: JobContext) -> None:
    """A turn may have waited for long; its key may have ended meanwhile."""
    keys = await consulting.store.read(context.tenant, lambda reader: reader.api_keys.all())
    key = next((key for key in keys if key.key_id == context.key_id), None)
    is_deleted = key is None and has_stored_key(context.key_id or "")
    if is_deleted or (key is not None and not key.is_valid(consulting.clock())):
        error = Unauthenticated("The key has ended; nothing was sent.")
        raise JobFailed(f"{error.message} [{error.code}]")


def error_of(job: Job) -> ZibaldoneError:
    """The error that a parked job ended with."""
    described = _WITH_CODE.fullmatch(job.error or "")
    if described is None:
        return Internal(job.error or "The job failed.", job_id=job.job_id)
    message, code = described.groups()
    kind = _BY_CODE.get(code, Internal)
    return kind(message, job_id=job.job_id)


_BY_CODE: dict[str, type[ZibaldoneError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ZibaldoneError)
    if "code" in vars(kind)
}
