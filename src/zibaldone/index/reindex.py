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
    INDEX_BATCH_DOCUMENTS,
    INDEX_BATCH_PASSAGES,
    INDEX_SWEEP_DOCUMENTS,
    VECTOR_CHANGES_KEPT,
)
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Maintenance

_POLL_SECONDS = 0.2


async def catch_up(store: Store, worker: IndexWorker, report: Callable[[int], None]) -> int:
    """For the model in use: queue what is missing and work on it, with any server that does too.

    Ends when all that was queued then is done or was given up; how many passages it embedded.
    `report` is told of them as they are done. Raises EmbedderUnavailable as `fill` does.
    """
    try:
        return await _catch_up(store, worker, report)
    finally:
        await worker.resign()


async def _catch_up(store: Store, worker: IndexWorker, report: Callable[[int], None]) -> int:
    await enqueue_missing(store, await worker.model_id())
    last = await store.maintain(lambda work: work.last_change(), write=False)
    embedded = 0
    while await store.maintain(lambda work: work.queued(last), write=False):
        done = await worker.drain_once()
        embedded += done.passages
        report(done.passages)
        if done.away is not None:
            raise _away(done.away)
        if not done.documents:  # a server has the rest, or it waits for its next try
            await asyncio.sleep(_POLL_SECONDS)
    return embedded


@dataclass(frozen=True, slots=True)
class Filled:
    passages: int
    failed: Mapping[str, str]
    """Documents that could not be embedded, and why."""


async def fill(
    store: Store, embedder: Embedder, model_id: int, report: Callable[[int], None]
) -> Filled:
    """For a model that nobody uses yet: its vectors, beside those that serve.

    The outbox and the documents' status belong to the model in use; this touches neither. What
    changes after its document was passed is made up for by the server that begins to use the model.
    Raises EmbedderUnavailable when the model cannot be had: going on would gain nothing.
    """
    embedded, after = 0, 0
    failed: dict[int, tuple[str, str]] = {}
    while page := await store.maintain(partial(_page, model_id, after), write=False):
        lacking = [key for key, lacks in page if lacks]
        for start in range(0, len(lacking), INDEX_BATCH_DOCUMENTS):
            keys = lacking[start : start + INDEX_BATCH_DOCUMENTS]
            while tasks := await store.maintain(partial(_tasks, model_id, keys), write=False):
                outcomes = await embed(embedder, tasks)
                await store.maintain(partial(_keep, model_id, outcomes))
                done = sum(len(one.task.passages) for one in outcomes if one.error is None)
                embedded += done
                report(done)
                for one in outcomes:
                    if one.error is not None:
                        _require_available(one)
                        failed[one.task.state.document_key] = one.task.state.document_id, one.error
                keys = [key for key in keys if key not in failed]
        after = page[-1][0]
    return Filled(embedded, dict(failed.values()))


def _require_available(failed: Embedded) -> None:
    if failed.unavailable:
        raise _away(failed.error or "")


def _away(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(f"{reason} What is done is kept; the same command goes on.")


def _page(model_id: int, after: int, work: Maintenance) -> list[tuple[int, bool]]:
    return work.lacking_page(model_id, after=after, limit=INDEX_SWEEP_DOCUMENTS)


def _tasks(model_id: int, keys: list[int], work: Maintenance) -> list[Task]:
    tasks: list[Task] = []
    room = INDEX_BATCH_PASSAGES
    for position, key in enumerate(keys):
        state = work.document_state(key)
        if state is not None and state.is_live:
            share = room // (len(keys) - position)
            if passages := work.chunks_without_vector(key, model_id, share):
                room -= len(passages)
                tasks.append(Task(state, passages))
    return tasks


def _keep(model_id: int, outcomes: list[Embedded], work: Maintenance) -> None:
    keep_vectors(work, model_id, outcomes)
    work.trim_changes(VECTOR_CHANGES_KEPT)
