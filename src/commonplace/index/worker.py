"""The worker: takes changes from the outbox, embeds what is new, and says when it is done.

A change is leased, not removed, so that a crash at any point only means that somebody does it
again; doing it again embeds only what still lacks a vector. Vectors and the status `ready` are
written in one transaction, and only for the revision that was read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.embed.port import Embedder, Vectors
from commonplace.errors import CommonplaceError
from commonplace.index import metrics
from commonplace.index.sweep import enqueue_missing
from commonplace.limits import (
    INDEX_BATCH_DOCUMENTS,
    INDEX_LEASE_SECONDS,
    INDEX_TRIES_MAX,
    REINDEX_EVERY_SECONDS,
    VECTOR_CHANGES_KEPT,
)
from commonplace.model.instant import now_us
from commonplace.store.port import DocumentState, LeasedChange, Maintenance, Passage, Store

_log = logging.getLogger("commonplace.index")

_IDLE_SECONDS = 0.5
"""How soon a change made by another process is noticed."""

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class _Task:
    change: LeasedChange
    state: DocumentState
    passages: Sequence[Passage]

    def texts(self) -> list[str]:
        return [embedded_text(self.state.title, passage) for passage in self.passages]


@dataclass(frozen=True, slots=True)
class _Outcome:
    task: _Task
    vectors: Vectors | None = None
    error: str | None = None


def embedded_text(title: str, passage: Passage) -> str:
    """A passage alone often does not say what it is about; its title and headings do."""
    return "\n".join(part for part in (title, passage.heading, passage.body) if part)


class IndexWorker:
    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._model_id: int | None = None
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """A write was acknowledged in this process: look at once."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. Nothing that goes wrong ends it."""
        sweep_at_s = 0.0
        loop = asyncio.get_running_loop()
        while True:
            busy = False
            try:
                if loop.time() >= sweep_at_s:
                    sweep_at_s = loop.time() + REINDEX_EVERY_SECONDS
                    await enqueue_missing(self._store, await self.model_id())
                busy = await self.drain_once()
            except CommonplaceError as error:
                _log.warning("the index waits: %s [%s]", error.message, error.code)
            except Exception:
                _log.exception("the index worker stumbled and goes on")
            if not busy:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _IDLE_SECONDS)
                self._wake.clear()

    async def model_id(self) -> int:
        if self._model_id is None:
            identity, dimensions = self._embedder.identity, self._embedder.dimensions
            self._model_id = await self._store.maintain(
                lambda work: work.model_id(identity, dimensions, now_us())
            )
        return self._model_id

    async def drain(self) -> int:
        """Deal with everything that is due; how many batches it took."""
        batches = 0
        while await self.drain_once():
            batches += 1
        return batches

    async def drain_once(self) -> bool:
        """Deal with one batch; False when there was nothing to do."""
        model_id = await self.model_id()
        found, tasks = await self._store.maintain(lambda work: _lease(work, model_id))
        if tasks:
            outcomes = await self._embed(tasks)
            await self._store.maintain(lambda work: _keep(work, model_id, outcomes))
        return found > 0

    async def _embed(self, tasks: Sequence[_Task]) -> list[_Outcome]:
        """Vectors for each task, or why not. One bad document does not spoil its neighbours."""
        texts = [text for task in tasks for text in task.texts()]
        if not texts:
            return [_Outcome(task) for task in tasks]
        try:
            vectors = await asyncio.to_thread(self._embedder.embed, texts)
        except CommonplaceError as error:
            if len(tasks) == 1:
                _log.warning("%s: %s", tasks[0].state.document_id, error.message)
                return [_Outcome(tasks[0], error=error.message)]
            return [outcome for task in tasks for outcome in await self._embed([task])]
        metrics.embedded(len(texts))
        outcomes = []
        start = 0
        for task in tasks:
            end = start + len(task.passages)
            outcomes.append(_Outcome(task, vectors[start:end]))
            start = end
        return outcomes


def _lease(work: Maintenance, model_id: int) -> tuple[int, list[_Task]]:
    """How many documents had changes, and what is to be done for them."""
    at_us = now_us()
    until_us = at_us + int(INDEX_LEASE_SECONDS * _SECOND_US)
    changes = work.lease(limit=INDEX_BATCH_DOCUMENTS, now_us=at_us, leased_until_us=until_us)
    tasks = []
    for change in changes:
        state = work.document_state(change.document_key)
        if state is None or not state.is_live or state.vector_status == "skipped":
            work.finish(change)  # its passages and vectors went with the write that removed it
        else:
            passages = work.chunks_without_vector(change.document_key, model_id)
            tasks.append(_Task(change, state, passages))
    return len(changes), tasks


def _keep(work: Maintenance, model_id: int, outcomes: Sequence[_Outcome]) -> None:
    for outcome in outcomes:
        task = outcome.task
        if outcome.error is not None:
            _postpone(work, task, outcome.error)
            continue
        if outcome.vectors is not None:
            keys = [passage.chunk_key for passage in task.passages]
            work.put_vectors(model_id, keys, outcome.vectors)
        work.set_ready(task.state.document_key, task.state.revision)
        work.finish(task.change)
    work.trim_changes(VECTOR_CHANGES_KEPT)


def _postpone(work: Maintenance, task: _Task, error: str) -> None:
    """Later, and then less and less soon; in the end it is set aside with its reason."""
    if task.change.attempts >= INDEX_TRIES_MAX:
        work.park(task.change, error)
        work.set_error(task.state.document_key, task.state.revision, error)
    else:
        wait_us = 2**task.change.attempts * _SECOND_US
        work.retry(task.change, not_before_us=now_us() + wait_us, error=error)
