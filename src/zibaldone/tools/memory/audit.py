"""audit_memory: what is wrong with the memory. For the operator's own process only."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.find import memory_audit
from zibaldone.find.memory_audit import Read, read_episode
from zibaldone.limits import (
    MEMORY_AUDIT_BATCH,
    MEMORY_AUDIT_EPISODES_MAX,
    MEMORY_AUDIT_SAMPLE_MAX,
    MEMORY_AUDIT_SECONDS_MAX,
    MEMORY_AUDIT_SHOWN_MAX,
    MEMORY_READ_CHARS_MAX,
)
from zibaldone.model.instant import now_us, to_iso
from zibaldone.model.memory import EpisodeHead, StoredFact
from zibaldone.store.port import Reader
from zibaldone.tools.memory.fields import GroupIds, groups_of
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_DAY_US = 86_400_000_000


class AuditMemory(Arguments):
    group_ids: GroupIds = Field(None, description="Default: all groups")
    stale_days: int = Field(365, ge=1, le=100_000)


class Audit(TypedDict):
    """Each list shows the first of what was found; the numbers count all of it."""

    groups: dict[str, int]
    episodes: int
    """Looked at."""
    truncated: bool
    """There are more episodes than were looked at."""
    counts: dict[str, int]
    duplicates: list[list[str]]
    near_duplicates: list[dict[str, Any]]
    contradicted: list[dict[str, Any]]
    stale: list[dict[str, Any]]
    secrets: list[dict[str, Any]]
    never_recalled: list[str]
    looked_for: int
    """Episodes that were searched for by their own words."""


async def handle(call: Call, given: AuditMemory) -> Audit:
    store, tenant = call.runtime.store, call.principal.tenant
    known = await store.read(tenant, lambda reader: reader.memory.groups())
    wanted = list(known) if given.group_ids is None else groups_of(given.group_ids)
    groups = {name: known.get(name, 0) for name in wanted}
    heads = await store.read(
        tenant, lambda reader: reader.memory.latest(wanted, limit=MEMORY_AUDIT_EPISODES_MAX)
    )
    episodes: list[Read] = []
    facts: list[StoredFact] = []
    lost: list[str] = []
    step = max(1, len(heads) // MEMORY_AUDIT_SAMPLE_MAX)
    for start in range(0, len(heads), MEMORY_AUDIT_BATCH):
        batch = heads[start : start + MEMORY_AUDIT_BATCH]

        def look(reader: Reader, batch: list[EpisodeHead] = batch) -> tuple[Any, ...]:
            parts = [
                reader.documents.peek(head.document_id, MEMORY_READ_CHARS_MAX) for head in batch
            ]
            read = [
                read_episode(head, part.title, part.beginning)
                for head, part in zip(batch, parts, strict=True)
                if part is not None
            ]
            stated = reader.memory.facts_of(head.document_id for head in batch)
            return read, stated, memory_audit.never_found(reader, read[::step])

        read, stated, missing = await store.read(tenant, look, seconds_max=_BATCH_SECONDS_MAX)
        episodes += read
        facts += stated
        lost += missing
        await call.progress(len(episodes), len(heads), "episodes")
    same = memory_audit.duplicates(episodes)
    near = await asyncio.to_thread(memory_audit.near_duplicates, episodes)
    ended = memory_audit.contradicted(facts)
    old = memory_audit.stale(facts, now_us() - given.stale_days * _DAY_US)
    secrets = [
        {"document_id": one.head.document_id, "kinds": list(one.secrets)}
        for one in episodes
        if one.secrets
    ]
    shown = MEMORY_AUDIT_SHOWN_MAX
    return {
        "groups": groups,
        "episodes": len(episodes),
        "truncated": sum(groups.values()) > len(heads),
        "counts": {
            "duplicates": sum(len(documents) - 1 for documents in same),
            "near_duplicates": len(near),
            "contradicted": len(ended),
            "stale": len(old),
            "secrets": len(secrets),
            "never_recalled": len(lost),
        },
        "duplicates": same[:shown],
        "near_duplicates": [
            {"one": one, "two": two, "share": share} for one, two, share in near[:shown]
        ],
        "contradicted": [_described(stored) for stored in ended[:shown]],
        "stale": [_described(stored) for stored in old[:shown]],
        "secrets": secrets[:shown],
        "never_recalled": lost[:shown],
        "looked_for": len(range(0, len(heads), step)),
    }


_BATCH_SECONDS_MAX = 60.0


def _described(stored: StoredFact) -> dict[str, Any]:
    described: dict[str, Any] = {
        "document_id": stored.document_id,
        "fact": stored.fact.text,
        "valid_at": to_iso(stored.fact.valid_at_us),
    }
    if stored.invalid_at_us is not None:
        described["invalid_at"] = to_iso(stored.invalid_at_us)
        described["replaced_by"] = stored.replaced_by
        described["replaced_in"] = stored.replaced_in
    return described


TOOL = ToolSpec(
    name="audit_memory",
    title="Audit the memory",
    description=(
        "Duplicates, near-duplicates, contradicted and stale facts, secrets, and episodes that are "
        "not found by their own words."
    ),
    arguments=AuditMemory,
    result=Audit,
    effect="read",
    handler=handle,
    seconds_max=MEMORY_AUDIT_SECONDS_MAX,
    is_local=True,
    reports_progress=True,
)
