"""The job that lets a model read an episode, in place of the deterministic result.

The write that adds it stores the deterministic result and is answered without waiting. Whatever
goes wrong here, that result stays. What was extracted from a revision is stored only while the
document is still at that revision.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, Protocol

from zibaldone.access.principal import Tenant
from zibaldone.errors import (
    BudgetExceeded,
    DeadlineExceeded,
    ProviderBusy,
    ProviderUnavailable,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    ZibaldoneError,
)
from zibaldone.jobs.runner import JobContext, JobFailed, JobKind, JobPostponed
from zibaldone.keep.episodes import put_extracted
from zibaldone.limits import (
    JOB_BACKOFF_SECONDS_MAX,
    MEMORY_EXTRACT_CONCURRENCY,
    MEMORY_EXTRACT_KEPT_SECONDS,
    MEMORY_EXTRACT_LEASE_SECONDS,
    MEMORY_EXTRACT_TRIES_MAX,
)
from zibaldone.memory.extraction import (
    READ_CHARS_MAX,
    SCHEMA,
    SYSTEM,
    Extraction,
    Malformed,
    extracted_episode,
    material,
    question,
    read_answer,
)
from zibaldone.model.document import DocumentPart
from zibaldone.model.memory import Episode
from zibaldone.store.port import Reader, Store
from zibaldone.text.memory import reference_time_us
from zibaldone.text.secrets import redact

_PASSING = (
    ProviderBusy,
    ProviderUnavailable,
    DeadlineExceeded,
    StorageUnavailable,
    StorageFull,
    StorageReadOnly,
)
"""Errors after which another attempt may succeed."""

OUTDATED = {"outcome": "outdated"}
"""The result of a job whose revision is no longer the document's."""

_BEHIND = "The episode cannot be read yet: what is read from is behind what was written."


class Extractor(Protocol):
    """A model that can be asked."""

    async def ask(
        self, tenant: Tenant, key_id: str, *, system: str, text: str, schema: dict[str, Any]
    ) -> str:
        """What the model answers to `text`, as JSON by the schema if it obeys. Asked once.

        It counts as spent by this key, whatever becomes of the answer. BudgetExceeded: the key may
        not spend that much today; nothing was sent. Other errors: those of providers.
        """
        ...


def extract_kind(store: Store, extractor: Extractor, *, redacts: bool) -> JobKind:
    """`redacts`: what looks like a secret is taken out of the text before it is sent."""

    async def extract(context: JobContext) -> dict[str, Any]:
        revision, key_id = _wanted(context.payload)
        part = await store.read(context.tenant, lambda reader: _part(reader, context.job_id))
        if part is None or not part.is_live or part.revision > revision:
            return OUTDATED
        if part.revision < revision:
            raise StorageUnavailable(_BEHIND)
        text = await asyncio.to_thread(_text, part, redacts)
        await context.progress(0, 1, "asking the model")
        answer = await _ask(extractor, context.tenant, key_id, text)
        context.check()
        try:
            extraction, episode = await asyncio.to_thread(_read, part, answer, text)
        except Malformed as problem:
            raise JobFailed(
                f"The model's answer cannot be used: {problem}. What was extracted without a model "
                "stays."
            ) from None
        if episode is None or not await store.write(
            context.tenant,
            lambda writer: put_extracted(writer, part.document_id, revision, episode),
        ):
            return OUTDATED
        return {
            "outcome": "replaced",
            "entities": len(episode.entities),
            "facts": len(episode.facts),
            "left_out": extraction.left_out,
        }

    return JobKind(
        extract,
        concurrency=MEMORY_EXTRACT_CONCURRENCY,
        lease_seconds=MEMORY_EXTRACT_LEASE_SECONDS,
        tries_max=MEMORY_EXTRACT_TRIES_MAX,
        keep_done_seconds=MEMORY_EXTRACT_KEPT_SECONDS,
        by_subject=True,
    )


def _wanted(payload: Mapping[str, Any]) -> tuple[int, str]:
    revision, key_id = payload.get("revision"), payload.get("key_id")
    if not isinstance(revision, int) or not isinstance(key_id, str):
        raise JobFailed("The job does not say which revision it is about, and for whom.")
    return revision, key_id


def _part(reader: Reader, job_id: str) -> DocumentPart | None:
    """The job's document under the id that it has now."""
    job = reader.jobs.get(job_id)
    if job is None or job.subject is None:
        raise StorageUnavailable(_BEHIND)
    return reader.documents.peek(job.subject, READ_CHARS_MAX)


def _text(part: DocumentPart, redacts: bool) -> str:
    text = material(part.title, part.beginning)
    return redact(text).text if redacts else text


def _read(part: DocumentPart, answer: str, text: str) -> tuple[Extraction, Episode | None]:
    extraction = read_answer(answer, text, reference_time_us(part))
    return extraction, extracted_episode(part, part.beginning, extraction)


async def _ask(extractor: Extractor, tenant: Tenant, key_id: str, text: str) -> str:
    asked = question(text, secrets.token_hex(8))
    try:
        return await extractor.ask(tenant, key_id, system=SYSTEM, text=asked, schema=SCHEMA)
    except BudgetExceeded as error:
        if _is_beyond_any_day(error):
            raise JobFailed(f"{error.message} [{error.code}]") from error
        message = f"The key that wrote the episode has used up its budget of the day [{error.code}]"
        raise JobPostponed(message, JOB_BACKOFF_SECONDS_MAX) from error
    except _PASSING:
        raise  # tried again
    except ZibaldoneError as error:
        raise JobFailed(f"{error.message} [{error.code}]") from error


def _is_beyond_any_day(error: BudgetExceeded) -> bool:
    """One request alone would spend more than the whole budget."""
    return any(
        error.details.get(f"{unit}_needed", 0) > error.details.get(f"{unit}_max", 0)
        for unit in ("tokens", "cost")
    )
