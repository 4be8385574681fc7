"""Looking over the whole index: what lacks vectors, what has none to belong to, how far it lags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from commonplace.index import metrics
from commonplace.limits import INDEX_LAG_ALERT_SECONDS
from commonplace.model.instant import now_us
from commonplace.store.port import Maintenance, Store

_PAGE = 500
_SHOWN_MAX = 100
"""Orphans or ghosts named in a report."""


async def enqueue_missing(store: Store, model_id: int) -> int:
    """Queue every document that should have vectors of the model and lacks some."""
    queued, after = 0, 0
    while keys := await store.maintain(
        partial(_lacking, model_id=model_id, after=after), write=False
    ):
        queued += await store.maintain(partial(_enqueue, keys=keys))
        after = keys[-1]
    return queued


def _lacking(work: Maintenance, *, model_id: int, after: int) -> list[int]:
    missing = work.missing_page(model_id, after=after, limit=_PAGE)
    stuck = work.stuck_page(after=after, limit=_PAGE)
    # A full page of one kind ends where it ends: what lies beyond belongs to the next page.
    ends = [page[-1] for page in (missing, stuck) if len(page) == _PAGE]
    return [key for key in sorted({*missing, *stuck}) if not ends or key <= min(ends)]


def _enqueue(work: Maintenance, *, keys: list[int]) -> int:
    return work.enqueue(keys, now_us())


async def reindex_missing(store: Store, model_id: int) -> dict[str, Any]:
    """Also gives what was set aside another chance."""
    await store.maintain(lambda work: work.unpark())
    return {"queued": await enqueue_missing(store, model_id)}


@dataclass(frozen=True, slots=True)
class Lag:
    pending: int
    oldest_seconds: float
    youngest_seconds: float

    @property
    def alert(self) -> bool:
        return self.oldest_seconds > INDEX_LAG_ALERT_SECONDS


async def lag(store: Store) -> Lag:
    found = await store.maintain(lambda work: work.pending_lag(), write=False)
    at_us = now_us()

    def age(instant_us: int | None) -> float:
        return 0.0 if instant_us is None else max(0.0, (at_us - instant_us) / 1e6)

    result = Lag(found.pending, age(found.oldest_us), age(found.youngest_us))
    metrics.LAG.set(result.oldest_seconds)
    metrics.LAG_YOUNGEST.set(result.youngest_seconds)
    metrics.PENDING.set(result.pending)
    metrics.ALERT.set(result.alert)
    return result


async def audit_sync(store: Store, model_id: int, *, heal: bool) -> dict[str, Any]:
    """Vectors without a passage (orphans), documents said to be ready without vectors (ghosts)."""
    orphans, ghosts, counts = await store.maintain(
        lambda work: (
            work.orphan_vectors(_SHOWN_MAX),
            work.ghost_documents(model_id, _SHOWN_MAX),
            work.counts(model_id),
        ),
        write=False,
    )
    healed = None
    if heal:
        healed = {
            "vectors_removed": (await cleanup_orphans(store, dry_run=False))["removed"],
            "documents_queued": await enqueue_missing(store, model_id),
        }
    return {
        "documents": counts.documents,
        "ready": counts.ready,
        "skipped": counts.skipped,
        "failed": counts.failed,
        "chunks": counts.chunks,
        "vectors": counts.vectors,
        "queued": counts.queued,
        "parked": counts.parked,
        "orphans": len(orphans),
        "ghosts": len(ghosts),
        "ghost_documents": [document_id for _, document_id in ghosts],
        "truncated": _SHOWN_MAX in (len(orphans), len(ghosts)),
        "consistent": not orphans and not ghosts,
        "healed": healed,
    }


async def cleanup_orphans(store: Store, *, dry_run: bool) -> dict[str, Any]:
    if dry_run:
        found = await store.maintain(lambda work: work.orphan_vectors(_PAGE), write=False)
        is_cut = len(found) == _PAGE
        return {"dry_run": True, "found": len(found), "removed": 0, "truncated": is_cut}
    removed = 0
    while count := await store.maintain(_remove_orphans):
        removed += count
    return {"dry_run": False, "found": removed, "removed": removed, "truncated": False}


def _remove_orphans(work: Maintenance) -> int:
    found = work.orphan_vectors(_PAGE)
    work.delete_vectors(found)
    return len(found)
