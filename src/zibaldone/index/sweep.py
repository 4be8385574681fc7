"""Looking over the whole index: what lacks vectors, what has none to belong to, how far it lags.

Everything goes page by page: no step holds a snapshot, the write lock or much memory for long.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

from typing_extensions import TypedDict

from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict
from zibaldone.index import metrics
from zibaldone.limits import INDEX_LAG_ALERT_SECONDS, INDEX_SWEEP_DOCUMENTS
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.store.upkeep import IndexCounts, PendingLag, Upkeep

_WRITTEN_AT_ONCE = 500
"""Rows changed in one transaction: others write in between."""

_DROPPED_AT_ONCE = 5_000
_SHOWN_MAX = 100
"""Orphans or ghosts counted, and documents named, in a report."""


class Counts(TypedDict):
    """`IndexCounts` as an answer: the same names."""

    documents: int
    ready: int
    pending: int
    skipped: int
    failed: int
    chunks: int
    vectors: int
    missing: int
    """Chunks that should have a vector and have none."""
    queued: int
    parked: int


class Failure(TypedDict):
    document_id: str
    reason: str


class ModelState(TypedDict):
    identity: str
    dimensions: int
    vectors: int
    in_use: bool


class IndexStatus(Counts):
    vector_sync_lag_seconds: float
    youngest_pending_seconds: float
    alert: bool
    indexed_by: str | None
    failures: list[Failure]
    models: list[ModelState]


class Healed(TypedDict):
    vectors_removed: int
    documents_queued: int


class SyncAudit(Counts):
    orphans: int
    ghosts: int
    ghost_documents: list[str]
    truncated: bool
    consistent: bool
    healed: Healed | None


class Cleanup(TypedDict):
    dry_run: bool
    found: int
    removed: int
    truncated: bool


def _counts(counts: IndexCounts) -> Counts:
    return cast("Counts", asdict(counts))


async def enqueue_missing(store: Store, model_id: int) -> int:
    """Queue every document that should have vectors of the model and lacks some; how many.

    Also those that failed before: they get another chance. Raises Conflict while other processes
    index with another model: the queue and the documents' status are that one's.
    """
    queued, after = 0, 0
    while page := await store.upkeep(partial(_unqueued, model_id, after), write=False):
        wanted = [key for key, should_be in page if should_be]
        for start in range(0, len(wanted), _WRITTEN_AT_ONCE):
            keys = wanted[start : start + _WRITTEN_AT_ONCE]
            queued += await store.upkeep(partial(_enqueue, model_id, keys))
        after = page[-1][0]
    return queued


def _unqueued(model_id: int, after: int, work: Upkeep) -> list[tuple[int, bool]]:
    _require_turn(work, model_id)
    return work.consistency.unqueued_page(model_id, after=after, limit=INDEX_SWEEP_DOCUMENTS)


def _enqueue(model_id: int, keys: list[int], work: Upkeep) -> int:
    _require_turn(work, model_id)
    return work.vectors.enqueue_missing(keys, model_id, now_us())


def _require_turn(work: Upkeep, model_id: int) -> None:
    in_use = work.models.in_use(now_us())
    if in_use is not None and in_use.model_id != model_id:
        raise Conflict(f"Another process indexes with {in_use.identity}, this one with another.")


@dataclass(frozen=True, slots=True)
class Lag:
    pending: int
    failed: int
    """Could not be embedded; they no longer wait, so they count in no age."""
    oldest_seconds: float
    youngest_seconds: float

    @property
    def alert(self) -> bool:
        return self.oldest_seconds > INDEX_LAG_ALERT_SECONDS


async def lag(store: Store) -> Lag:
    return measured_lag(await store.upkeep(lambda work: work.consistency.lag(), write=False))


def measured_lag(waiting: PendingLag) -> Lag:
    """The lag as ages; the metrics show it too."""
    at_us = now_us()

    def age(instant_us: int | None) -> float:
        if instant_us is None or not waiting.pending:
            return 0.0
        return max(0.0, (at_us - instant_us) / 1e6)

    result = Lag(waiting.pending, waiting.failed, age(waiting.oldest_us), age(waiting.youngest_us))
    metrics.LAG.set(result.oldest_seconds)
    metrics.LAG_YOUNGEST.set(result.youngest_seconds)
    metrics.PENDING.set(result.pending)
    metrics.FAILED.set(result.failed)
    metrics.ALERT.set(result.alert)
    return result


async def status(store: Store, model_id: int | None) -> IndexStatus:
    """How much is indexed, by which models, and how much waits for how long."""
    counts, models, failed, in_use = await store.upkeep(
        lambda work: (
            work.consistency.counts(model_id or 0),
            work.models.all(),
            work.consistency.failed_documents(_SHOWN_MAX),
            work.models.in_use(now_us()),
        ),
        write=False,
    )
    late = await lag(store)
    return {
        **_counts(counts),
        "vector_sync_lag_seconds": round(late.oldest_seconds, 3),
        "youngest_pending_seconds": round(late.youngest_seconds, 3),
        "alert": late.alert,
        "indexed_by": None if in_use is None else in_use.identity,
        "failures": [{"document_id": name, "reason": why} for name, why in failed],
        "models": [
            {
                "identity": model.identity,
                "dimensions": model.dimensions,
                "vectors": model.vectors,
                "in_use": model.model_id == model_id,
            }
            for model in models
        ],
    }


async def audit_sync(store: Store, model_id: int, *, heal: bool, shown_to: Tenant) -> SyncAudit:
    """Vectors without a chunk (orphans), documents said to be ready without vectors (ghosts).

    The whole store is looked at, but only documents that the caller can see are named.
    """
    orphans, ghosts, counts = await store.upkeep(
        lambda work: (
            work.consistency.orphan_vectors(_SHOWN_MAX),
            work.consistency.ghost_documents(model_id, _SHOWN_MAX),
            work.consistency.counts(model_id),
        ),
        write=False,
    )
    healed: Healed | None = None
    if heal:
        healed = {
            "vectors_removed": (await cleanup_orphans(store, dry_run=False))["removed"],
            "documents_queued": await enqueue_missing(store, model_id),
        }
    return {
        **_counts(counts),
        "orphans": len(orphans),
        "ghosts": len(ghosts),
        "ghost_documents": [
            document_id
            for namespace, document_id in ghosts
            if namespace == shown_to.namespace and document_id.startswith(shown_to.prefix)
        ],
        "truncated": _SHOWN_MAX in (len(orphans), len(ghosts)),
        "consistent": not orphans and not ghosts,
        "healed": healed,
    }


async def cleanup_orphans(store: Store, *, dry_run: bool) -> Cleanup:
    if dry_run:
        orphans = await store.upkeep(
            lambda work: work.consistency.orphan_vectors(_WRITTEN_AT_ONCE), write=False
        )
        is_cut = len(orphans) == _WRITTEN_AT_ONCE
        return {"dry_run": True, "found": len(orphans), "removed": 0, "truncated": is_cut}
    removed = 0
    while count := await store.upkeep(_remove_orphans):
        removed += count
    return {"dry_run": False, "found": removed, "removed": removed, "truncated": False}


def _remove_orphans(work: Upkeep) -> int:
    orphans = work.consistency.orphan_vectors(_WRITTEN_AT_ONCE)
    work.vectors.delete(orphans)
    return len(orphans)


async def drop_other_models(store: Store, model_id: int) -> int:
    """Remove the vectors of every model but one; how many.

    Those of a model that a process indexes with stay: it would make them all again.
    """
    dropped = 0
    in_use = await store.upkeep(lambda work: work.models.in_use(now_us()), write=False)
    kept = {model_id} | (set() if in_use is None else {in_use.model_id})
    for model in await store.upkeep(lambda work: work.models.all(), write=False):
        if model.model_id not in kept:
            drop = partial(_drop_page, model.model_id)
            while count := await store.upkeep(drop):
                dropped += count
    return dropped


def _drop_page(model_id: int, work: Upkeep) -> int:
    return work.vectors.drop(model_id, _DROPPED_AT_ONCE)
