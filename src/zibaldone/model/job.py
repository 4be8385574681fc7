"""Jobs: work that is done later, outlives a restart, and can be watched and cancelled."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any, Literal

from zibaldone.model.instant import now_us

JobState = Literal["queued", "running", "parked", "done", "cancelled"]
STATES: tuple[JobState, ...] = ("queued", "running", "parked", "done", "cancelled")

VECTORS = "vectors"
"""The kind that embeds what changed in a document."""

EXTRACT = "extract"
"""The kind that lets a model read an episode of memory."""

DOCUMENT_KINDS = frozenset({VECTORS, EXTRACT})
"""Kinds whose subject is a document's storage key; people are shown the document's id instead."""


def new_job_id() -> str:
    """A new public id. Later ids sort after earlier ones, to the millisecond.

    Sorted ids make a list of jobs its own cursor, and are cheap to index.
    """
    return f"{time.time_ns() // 1_000_000:011x}{getrandbits(60):015x}"


def new_secret_job_id() -> str:
    """A new public id that cannot be guessed, for jobs that belong to one caller."""
    return f"{time.time_ns() // 1_000_000:011x}{secrets.randbits(60):015x}"


def new_lease_owner() -> str:
    """A token for one call of `lease`. Only its holder can touch the jobs leased with it."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class NewJob:
    kind: str
    subject: str | None = None
    """What it is about. Kinds that merge by subject run once for all queued jobs of a subject in a
    namespace."""
    payload: Mapping[str, Any] | None = None
    unique_key: str | None = None
    """While a job of the kind with this key is queued or running, another is not added."""
    not_before_us: int = 0
    created_at_us: int = field(default_factory=now_us)
    job_id: str = field(default_factory=new_job_id)
    key_id: str | None = None
    """The caller that it belongs to: no other key is shown its payload and its result. None: it
    belongs to the namespace."""


@dataclass(frozen=True, slots=True)
class Progress:
    done: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its namespace sees it."""

    job_id: str
    kind: str
    state: JobState
    subject: str | None
    """The document's id where the kind is about documents."""
    created_at_us: int
    not_before_us: int
    started_at_us: int | None
    """When the last attempt began."""
    finished_at_us: int | None
    attempts: int
    """Attempts that failed."""
    crashes: int
    """Attempts whose worker ended, or went silent, without saying what became of them."""
    cancel_requested: bool
    progress: Progress | None
    payload: Mapping[str, Any]
    result: Any
    error: str | None
    key_id: str | None = None
    """The caller that it belongs to; None: the namespace."""


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """A job that a worker holds for a while. Its work is done as the tenant that added it."""

    job_key: int
    job_id: str
    kind: str
    namespace: str
    prefix: str
    """The prefix of the tenant that added the job; its work must stay under it."""
    subject: str | None
    payload: Mapping[str, Any]
    attempts: int
    """Attempts that failed before this one."""
    crashes: int
    """Attempts before this one that nobody reported on, one after another."""
    owner: str
    keys: tuple[int, ...]
    """The jobs it stands for: itself, and older ones of its subject where the kind merges them."""
    key_id: str | None = None
    """The caller that it belongs to; None: the namespace."""


@dataclass(frozen=True, slots=True)
class Setback:
    """An attempt that did not succeed, and why."""

    lease: LeasedJob
    error: str
    not_before_us: int = 0
    """When to try again; at most JOB_BACKOFF_SECONDS_MAX from now."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Adds a job of its kind again and again."""

    name: str
    cron: str
    """Five fields, in UTC."""
    kind: str
    namespace: str
    payload: Mapping[str, Any]
    next_run_at_us: int
    last_run_at_us: int | None = None
