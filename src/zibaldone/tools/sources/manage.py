"""show_source, test_source, preview_source, enable_source, remove_source."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict, InvalidArgument, NotConfigured
from zibaldone.limits import SOURCE_PREVIEW_ROWS_DEFAULT, SOURCE_PREVIEW_ROWS_MAX
from zibaldone.model.instant import to_iso
from zibaldone.model.job import Job, JobState
from zibaldone.pull import registry
from zibaldone.pull.definition import check
from zibaldone.pull.job import SYNC
from zibaldone.pull.live import can_notify, trigger_sql
from zibaldone.pull.preview import preview
from zibaldone.pull.remove import remove_source
from zibaldone.store.port import Reader, SourceCounts
from zibaldone.store.upkeep import SourceRecord
from zibaldone.tools.jobs.ids import shown_id
from zibaldone.tools.sources.definitions import RowShown, rows_shown
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_JOBS_LOOKED_AT = 100
_COUNT_SECONDS_MAX = 600.0


class OneSource(Arguments):
    source: str
    namespace: str | None = Field(
        None, description="Needed where several namespaces have a source of that name"
    )


class PreviewSource(OneSource):
    rows: int = Field(SOURCE_PREVIEW_ROWS_DEFAULT, ge=1, le=SOURCE_PREVIEW_ROWS_MAX)


class EnableSource(OneSource):
    enabled: bool


class LastJob(TypedDict):
    job_id: str
    state: JobState
    result: Any
    error: str | None


class SourceDetails(TypedDict):
    source: str
    namespace: str
    source_id: int
    enabled: bool
    origin: str
    definition: Mapping[str, Any]
    documents: int
    chunks: int
    last_sync: str | None
    last_job: LastJob | None
    trigger: str | None
    """SQL that makes the database notify us; None where it cannot."""
    problem: str | None


class SourceTest(TypedDict):
    source: str
    namespace: str
    problems: list[str]


class SourcePreview(TypedDict):
    source: str
    namespace: str
    documents: list[RowShown]
    problems: list[str]
    notes: list[str]


class SourceState(TypedDict):
    source: str
    namespace: str
    enabled: bool


class SourceRemoved(TypedDict):
    source: str
    namespace: str
    documents: int
    """That were deleted."""


async def chosen(call: Call, given: OneSource) -> SourceRecord:
    records = await registry.all_records(call.runtime.store)
    return registry.find(records, given.source, given.namespace)


async def handle_show(call: Call, given: OneSource) -> SourceDetails:
    record = await chosen(call, given)

    def look(reader: Reader) -> tuple[SourceCounts, Job | None]:
        (held,) = [c for c in reader.sources.counts() if c.source_id == record.source_id]
        jobs = reader.jobs.page(kind=SYNC, state=None, limit=_JOBS_LOOKED_AT, after=None)
        latest = next((job for job in jobs if job.subject == record.name), None)
        return held, None if latest is None else reader.jobs.get(latest.job_id)

    held, job = await call.runtime.store.read(
        Tenant(record.namespace), look, seconds_max=_COUNT_SECONDS_MAX
    )
    try:
        definition = registry.definition_of(record)
        trigger = trigger_sql(definition) if can_notify(definition, os.environ) else None
        described, problem = definition.as_dict(), None
    except InvalidArgument as error:
        described, trigger, problem = dict(record.definition.get("pull", {})), None, error.message
    return {
        "source": record.name,
        "namespace": record.namespace,
        "source_id": record.source_id,
        "enabled": record.enabled,
        "origin": registry.origin_of(record),
        "definition": described,
        "documents": held.documents,
        "chunks": held.chunks,
        "last_sync": None if record.last_sync_at_us is None else to_iso(record.last_sync_at_us),
        "last_job": None
        if job is None
        else {
            "job_id": shown_id(job.job_id, SYNC),
            "state": job.state,
            "result": job.result,
            "error": job.error,
        },
        "trigger": trigger,
        "problem": problem,
    }


async def handle_test(call: Call, given: OneSource) -> SourceTest:
    record = await chosen(call, given)
    problems = await asyncio.to_thread(check, registry.definition_of(record))
    return {"source": record.name, "namespace": record.namespace, "problems": problems}


async def handle_preview(call: Call, given: PreviewSource) -> SourcePreview:
    record = await chosen(call, given)
    definition = registry.definition_of(record)
    shown = await asyncio.to_thread(preview, definition, rows=given.rows)
    return {
        "source": record.name,
        "namespace": record.namespace,
        "documents": rows_shown(shown),
        "problems": list(shown.problems),
        "notes": list(shown.notes),
    }


async def handle_enable(call: Call, given: EnableSource) -> SourceState:
    record = await chosen(call, given)
    if registry.origin_of(record) == registry.SETTINGS and given.enabled != record.enabled:
        value = "true" if given.enabled else "false"
        raise Conflict(
            f"The source {record.name!r} is defined in the settings; write enabled = {value} under "
            f"[sources.{record.name}] there.",
            source=record.name,
        )
    await call.runtime.store.upkeep(lambda upkeep: registry.enable(upkeep, record, given.enabled))
    return {"source": record.name, "namespace": record.namespace, "enabled": given.enabled}


async def handle_remove(call: Call, given: OneSource) -> SourceRemoved:
    record = await chosen(call, given)
    if registry.origin_of(record) == registry.SETTINGS and record.enabled:
        raise Conflict(
            f"The source {record.name!r} is defined in the settings; take [sources.{record.name}] "
            "out of them first.",
            source=record.name,
        )
    runtime = call.runtime
    if runtime.pulled is None:
        raise NotConfigured("Sources cannot be removed in this process.")
    # Its documents are not found any more from here on, and its schedule is gone.
    await runtime.store.upkeep(lambda upkeep: registry.enable(upkeep, record, False))
    documents = await remove_source(
        runtime.store, runtime.pulled, record.source_id, record.namespace, record.name
    )
    return {"source": record.name, "namespace": record.namespace, "documents": documents}


SHOW = ToolSpec(
    name="show_source",
    title="Show a source",
    description="Show how a source is defined, what it holds and how its last sync went.",
    arguments=OneSource,
    result=SourceDetails,
    effect="admin",
    handler=handle_show,
    seconds_max=math.inf,
    is_local=True,
)
TEST = ToolSpec(
    name="test_source",
    title="Test a source",
    description="Connect to the database of a source and compare it with the definition.",
    arguments=OneSource,
    result=SourceTest,
    effect="admin",
    handler=handle_test,
    seconds_max=math.inf,
    is_local=True,
)
PREVIEW = ToolSpec(
    name="preview_source",
    title="Preview a source",
    description="Show the first rows of a source as the documents they become.",
    arguments=PreviewSource,
    result=SourcePreview,
    effect="admin",
    handler=handle_preview,
    seconds_max=math.inf,
    is_local=True,
)
ENABLE = ToolSpec(
    name="enable_source",
    title="Enable or disable a source",
    description="Have a source synced and searched, or neither; its documents are kept.",
    arguments=EnableSource,
    result=SourceState,
    effect="admin",
    handler=handle_enable,
    is_local=True,
)
REMOVE = ToolSpec(
    name="remove_source",
    title="Remove a source",
    description="Delete the documents of a source and forget it; its database is not touched.",
    arguments=OneSource,
    result=SourceRemoved,
    effect="admin",
    handler=handle_remove,
    seconds_max=math.inf,
    is_local=True,
)
