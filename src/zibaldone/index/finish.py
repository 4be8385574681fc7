"""The vectors that are waiting in the queue, made by whoever wrote, where no server does it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from zibaldone.errors import EmbedderUnavailable
from zibaldone.index.worker import IndexWorker
from zibaldone.model.instant import now_us
from zibaldone.model.job import VECTORS
from zibaldone.store.port import Store


@dataclass(frozen=True, slots=True)
class Finished:
    chunks: int
    """Embedded."""
    pending: int
    """Documents that still wait for their vectors."""
    problem: str | None = None
    """Why the model is unavailable."""


async def pending_documents(store: Store) -> int:
    """How many documents wait for vectors now."""
    at_us = now_us()
    return await store.upkeep(
        lambda work: work.queue.pending(VECTORS, at_us, now_us=at_us), write=False
    )


async def finish_pending(
    store: Store,
    worker: IndexWorker,
    report: Callable[[int], None],
    *,
    seconds_max: float | None = None,
) -> Finished:
    """Deal with what is due now, until nothing is, or for so long.

    `report` is told of documents as they are done. A document that failed is tried again by the
    next run, or by a server.
    """
    until_s = None if seconds_max is None else time.monotonic() + seconds_max
    chunks, problem = 0, None
    try:
        while until_s is None or time.monotonic() < until_s:
            done = await worker.drain_once()
            chunks += done.chunks
            report(done.documents)
            problem = done.unavailable
            if not done.documents or problem is not None:
                break
    except EmbedderUnavailable as error:
        problem = error.message
    finally:
        await worker.resign()
    return Finished(chunks, await pending_documents(store), problem)
