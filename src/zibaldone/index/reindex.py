"""Vectors for everything that lacks them, at an operator's request, while servers go on serving.

What is done is in the store, so that a run that was ended goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from zibaldone.embed.port import Embedder
from zibaldone.errors import EmbedderUnavailable
from zibaldone.index.embedding import Embedded, Task, embed, keep_vectors
from zibaldone.index.sweep import enqueue_missing
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import (
    INDEX_BATCH_CHUNKS,
    INDEX_BATCH_DOCUMENTS,
    INDEX_SWEEP_DOCUMENTS,
)
from zibaldone.model.instant import now_us
from zibaldone.model.job import VECTORS
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Upkeep

_POLL_SECONDS = 0.2
_MARGIN_US = 1_000_000


async def catch_up(store: Store, worker: IndexWorker, report: Callable[[int], None]) -> int:
    """For the model in use: queue what is missing and work on it, with any server that does too.

    Ends when all that was queued by then is done or was given up; how many chunks it embedded.
    `report` is told of them as they are done. Raises EmbedderUnavailable as `fill` does.
    """
    try:
        return await _catch_up(store, worker, report)
    finally:
        await worker.resign()


async def _catch_up(store: Store, worker: IndexWorker, report: Callable[[int], None]) -> int:
    await enqueue_missing(store, await worker.model_id())
    through_us = now_us()
    embedded = 0
    while await store.upkeep(partial(_pending, through_us), write=False):
        done = await worker.drain_once()
        embedded += done.chunks
        report(done.chunks)
        if done.unavailable is not None:
            raise _unavailable(done.unavailable)
        if not done.documents:  # a server has the rest, or it waits for its next try
            await asyncio.sleep(_POLL_SECONDS)
    return embedded


def _pending(through_us: int, work: Upkeep) -> int:
    """A job is from the future only if it is so by a margin: others may be written right now."""
    return work.queue.pending(VECTORS, through_us, now_us=now_us() + _MARGIN_US)


@dataclass(frozen=True, slots=True)
class Filled:
    chunks: int
    failed: Mapping[str, str]
    """Documents that could not be embedded, and why."""


async def fill(
    store: Store, embedder: Embedder, model_id: int, report: Callable[[int], None]
) -> Filled:
    """For a model that nobody uses yet: its vectors, beside those that serve.

    The queue and the documents' status belong to the model in use; this touches neither. What
    changes after its document was passed is made up for by the server that begins to use the model.
    Raises EmbedderUnavailable when the model is unavailable: going on would gain nothing.
    """
    embedded, after = 0, 0
    failed: dict[int, tuple[str, str]] = {}
    while page := await store.upkeep(partial(_page, model_id, after), write=False):
        lacking = [key for key, lacks in page if lacks]
        for start in range(0, len(lacking), INDEX_BATCH_DOCUMENTS):
            keys = lacking[start : start + INDEX_BATCH_DOCUMENTS]
            while tasks := await store.upkeep(partial(_tasks, model_id, keys), write=False):
                outcomes = await embed(embedder, tasks)
                await store.upkeep(partial(_keep, model_id, outcomes))
                done = sum(len(each.task.chunks) for each in outcomes if each.error is None)
                embedded += done
                report(done)
                for outcome in outcomes:
                    if outcome.error is not None:
                        _require_available(outcome)
                        state = outcome.task.state
                        failed[state.document_key] = state.document_id, outcome.error
                keys = [key for key in keys if key not in failed]
        after = page[-1][0]
    return Filled(embedded, dict(failed.values()))


def _require_available(failed: Embedded) -> None:
    if failed.unavailable:
        raise _unavailable(failed.error or "")


def _unavailable(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(f"{reason} What is done is kept; the same command goes on.")


def _page(model_id: int, after: int, work: Upkeep) -> list[tuple[int, bool]]:
    return work.vectors.lacking_page(model_id, after=after, limit=INDEX_SWEEP_DOCUMENTS)


def _tasks(model_id: int, keys: list[int], work: Upkeep) -> list[Task]:
    states = work.vectors.states(keys)
    live = [key for key in keys if key in states and states[key].is_live]
    chunks = work.vectors.chunks_without_vector(live, model_id, INDEX_BATCH_CHUNKS)
    return [Task(states[key], chunks[key]) for key in live if key in chunks]


def _keep(model_id: int, outcomes: list[Embedded], work: Upkeep) -> None:
    keep_vectors(work, model_id, outcomes)
