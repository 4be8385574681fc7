"""The job that brings a source up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zibaldone.errors import (
    Conflict,
    InvalidArgument,
    NotConfigured,
    QuotaExceeded,
    SourceUnavailable,
    ZibaldoneError,
)
from zibaldone.jobs.runner import JobContext, JobFailed, JobKind
from zibaldone.limits import SYNC_CONCURRENCY, SYNC_TRIES_MAX
from zibaldone.pull.destination import Destination, Run
from zibaldone.pull.registry import definition_of
from zibaldone.pull.sync import sync
from zibaldone.store.port import Store

_REASONS_FOR_GOOD = frozenset({"refused", "missing"})
"""Why a database cannot be asked, where asking again does not help."""


def sync_kind(
    store: Store,
    destination: Destination[Run],
    environment: Mapping[str, str],
    *,
    on_change: Callable[[], None] = lambda: None,
) -> JobKind:
    """`on_change` is called after a sync that changed documents."""

    async def run(context: JobContext) -> dict[str, Any]:
        source_id = int(context.payload["source_id"])
        record = await store.read(
            context.tenant, lambda reader: reader.sources.get(source_id), is_small=True
        )
        if record is None or not record.enabled:
            raise JobFailed("The source is disabled or was removed.")

        async def report(done: int, total: int | None) -> None:
            await context.progress(done, total, "rows")

        try:
            result = await sync(
                store,
                destination,
                source_id,
                definition_of(record),
                environment=environment,
                is_full=bool(context.payload.get("full")),
                allow_deletes=bool(context.payload.get("allow_deletes")),
                on_progress=report,
                check=context.check,
            )
        except (InvalidArgument, Conflict, QuotaExceeded, NotConfigured) as error:
            raise _failed(error) from error
        except SourceUnavailable as error:
            if error.details.get("reason") in _REASONS_FOR_GOOD:
                raise _failed(error) from error
            raise
        if result.created or result.updated or result.deleted:
            on_change()
        return result.as_dict()

    return JobKind(run, concurrency=SYNC_CONCURRENCY, tries_max=SYNC_TRIES_MAX)


def _failed(error: ZibaldoneError) -> JobFailed:
    """Another attempt would end in the same way."""
    return JobFailed(f"{error.message} [{error.code}]")
