"""The worker: takes changes from the outbox, embeds what is new, and says when it is done.

A change is leased, not removed, so that a crash at any point only means that somebody does it
again; doing it again embeds only what still lacks a vector. Vectors and the status `ready` are
written in one transaction, and only for the revision that was read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from zibaldone.embed.port import Embedder
from zibaldone.errors import ZibaldoneError
from zibaldone.index import metrics
from zibaldone.index.embedding import Embedded, Task, embed, keep_vectors
from zibaldone.index.ownership import Ownership
from zibaldone.index.sweep import enqueue_missing
from zibaldone.limits import (
    INDEX_AWAY_SECONDS_MAX,
    INDEX_BATCH_DOCUMENTS,
    INDEX_BATCH_PASSAGES,
    INDEX_LEASE_SECONDS,
    INDEX_RENEW_SECONDS,
    INDEX_TRIES_MAX,
    REINDEX_EVERY_SECONDS,
    VECTOR_CHANGES_KEPT,
)
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Claim, LeasedChange, Maintenance

_log = logging.getLogger("zibaldone.index")

_IDLE_SECONDS = 0.5
"""How soon a change made by another process is noticed."""

_TROUBLE_SECONDS_MAX = 10.0
"""The longest pause while the store cannot be used."""

_SECOND_US = 1_000_000

_ENDED = "The server ended each time this document was being embedded."


@dataclass(frozen=True, slots=True)
class Batch:
    """What one round did."""

    documents: int = 0
    passages: int = 0
    """Embedded, not merely looked at."""
    failed: int = 0
    away: str | None = None
    """Why the model could not be had at all; its documents wait and are counted nowhere above."""


@dataclass(frozen=True, slots=True)
class _Leased:
    count: int
    """Documents that were taken, those with nothing left to do included."""
    tasks: Sequence[tuple[LeasedChange, Task]] = ()

    @property
    def changes(self) -> list[LeasedChange]:
        return [change for change, _ in self.tasks]


class IndexWorker:
    def __init__(
        self, store: Store, embedder: Embedder, *, clock: Callable[[], int] = now_us
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._model_id: int | None = None
        self._ownership = Ownership(store, clock)
        self._wake = asyncio.Event()
        self._away_pause_s = 0.0
        self._away_until_us = 0
        self._sweep_at_s = 0.0

    def wake(self) -> None:
        """A write was acknowledged in this process: look at once."""
        self._wake.set()

    @property
    def rival(self) -> str | None:
        """The model that other processes index with, while this one stands by with its own."""
        return self._ownership.rival

    async def run(self) -> None:
        """Until cancelled. Nothing that goes wrong ends it."""
        try:
            await self._run()
        finally:
            await self.resign()

    async def _run(self) -> None:
        trouble_s = 0.0
        while True:
            self._wake.clear()
            busy = False
            try:
                busy = await self._ownership.hold(await self.model_id()) and await self._step()
                trouble_s = 0.0
            except ZibaldoneError as error:
                _log.warning("the index waits: %s [%s]", error.message, error.code)
                trouble_s = min(_TROUBLE_SECONDS_MAX, trouble_s * 2 + _IDLE_SECONDS)
            except Exception:
                _log.exception("the index worker stumbled and goes on")
                trouble_s = min(_TROUBLE_SECONDS_MAX, trouble_s * 2 + _IDLE_SECONDS)
            if trouble_s:
                await asyncio.sleep(trouble_s)
            elif not busy:
                # Not wait_for: it loses a cancellation that comes together with the waking.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_IDLE_SECONDS):
                        await self._wake.wait()

    async def _step(self) -> bool:
        """Whether there was something to do."""
        now_s = time.monotonic()
        if self._ownership.is_new or now_s >= self._sweep_at_s:
            self._ownership.is_new = False
            self._sweep_at_s = now_s  # again, if this one fails
            async with self._holding():  # of a large file it takes minutes
                await enqueue_missing(self._store, await self.model_id())
            self._sweep_at_s = now_s + REINDEX_EVERY_SECONDS
        return await self._is_due() and (await self.drain_once()).documents > 0

    async def resign(self) -> None:
        """This worker ends, or pauses: those with another model need not wait for it."""
        await self._ownership.resign()

    async def _is_due(self) -> bool:
        at_us = self._clock()
        return await self._store.maintain(lambda work: work.has_due(at_us), write=False)

    async def load_vectors(self) -> None:
        """Read the vectors ahead of the first search; without it that search would wait."""
        try:
            await self._store.load_vectors(self._embedder.identity)
        except ZibaldoneError as error:
            _log.warning("the vectors were not read ahead: %s [%s]", error.message, error.code)

    async def model_id(self) -> int:
        if self._model_id is None:
            identity, dimensions = self._embedder.identity, self._embedder.dimensions
            self._model_id = await self._store.maintain(
                lambda work: work.model_id(identity, dimensions, now_us())
            )
        return self._model_id

    async def drain(self) -> Batch:
        """Deal with everything that is due now."""
        documents = passages = failed = 0
        try:
            while (done := await self.drain_once()).documents:
                documents += done.documents
                passages += done.passages
                failed += done.failed
        finally:
            await self.resign()
        return Batch(documents, passages, failed)

    async def drain_once(self) -> Batch:
        """Deal with a few documents; none: there was nothing to do."""
        if self._clock() < self._away_until_us:
            return Batch()
        model_id = await self.model_id()
        until_us = self._lease_end_us()
        # One is enough to see whether the model is back; and if it is the document that makes the
        # model go away, its neighbours do not share its fate.
        limit = 1 if self._away_pause_s else INDEX_BATCH_DOCUMENTS

        def lease(work: Maintenance) -> tuple[Claim, _Leased]:
            claim = self._ownership.claim(work, model_id)
            if claim.rival is not None:
                return claim, _Leased(0)
            return claim, _lease(work, model_id, limit, self._clock(), until_us)

        claim, leased = await self._store.maintain(lease)
        self._ownership.note(claim)
        if not leased.tasks:
            return Batch(leased.count)
        async with self._holding(leased.changes):
            outcomes = await embed(self._embedder, [task for _, task in leased.tasks])
        away_s = self._rest(outcomes)
        kept = list(zip(leased.changes, outcomes, strict=True))

        def keep(work: Maintenance) -> Claim:
            claim = self._ownership.claim(work, model_id)
            if claim.rival is None:
                _keep(work, model_id, kept, self._clock(), away_s)
            else:  # it was asleep for so long that others took over; queue and status are theirs
                keep_vectors(work, model_id, outcomes)
            return claim

        self._ownership.note(await self._store.maintain(keep))
        return _batch(leased.count, outcomes)

    def _rest(self, outcomes: Sequence[Embedded]) -> float:
        """How long documents wait for a model that cannot be had; 0 where it can.

        The worker itself is back in half the time: so others get a turn before those do.
        """
        away = [one for one in outcomes if one.unavailable]
        if not away:
            if any(one.vectors is not None for one in outcomes):
                self._away_pause_s = 0.0
            return 0.0
        self._away_pause_s = min(self._away_pause_s * 2 or 2.0, INDEX_AWAY_SECONDS_MAX)
        asked_s = max(one.wait_seconds for one in away)
        rest_s = max(self._away_pause_s / 2, asked_s)
        self._away_until_us = self._clock() + int(rest_s * _SECOND_US)
        return max(self._away_pause_s, asked_s)

    def _lease_end_us(self) -> int:
        return self._clock() + int(INDEX_LEASE_SECONDS * _SECOND_US)

    @contextlib.asynccontextmanager
    async def _holding(self, changes: Sequence[LeasedChange] = ()) -> AsyncIterator[None]:
        """While it takes long, leases and claim are renewed; a worker that stops gives back."""
        renewing = asyncio.create_task(self._renew(changes))
        try:
            yield
        except asyncio.CancelledError:
            with contextlib.suppress(ZibaldoneError):
                await self._store.maintain(partial(_release, changes))
            raise
        finally:
            renewing.cancel()

    async def _renew(self, changes: Sequence[LeasedChange]) -> None:
        def renew(work: Maintenance) -> Claim:
            claim = self._ownership.claim(work, model_id)
            until_us = self._lease_end_us()
            for change in changes if claim.rival is None else ():
                work.renew(change, until_us)
            return claim

        model_id = await self.model_id()
        while True:
            await asyncio.sleep(INDEX_RENEW_SECONDS)
            try:
                self._ownership.note(await self._store.maintain(renew))
            except ZibaldoneError as error:
                _log.warning("leases were not renewed: %s [%s]", error.message, error.code)


def _release(changes: Sequence[LeasedChange], work: Maintenance) -> None:
    for change in changes:
        work.release(change)


def _batch(documents: int, outcomes: Sequence[Embedded]) -> Batch:
    away = [one for one in outcomes if one.unavailable]
    return Batch(
        documents=documents - len(away),
        passages=sum(len(one.task.passages) for one in outcomes if one.error is None),
        failed=sum(one.error is not None for one in outcomes) - len(away),
        away=away[0].error if away else None,
    )


def _lease(work: Maintenance, model_id: int, limit: int, at_us: int, until_us: int) -> _Leased:
    """Take documents, settle those with nothing to embed, and share the batch among the others."""
    changes = work.lease(limit=limit, now_us=at_us, leased_until_us=until_us)
    tasks: list[tuple[LeasedChange, Task]] = []
    room = INDEX_BATCH_PASSAGES
    for position, change in enumerate(changes):
        state = work.document_state(change.document_key)
        if state is None:
            work.finish(change)
        elif not state.is_live or state.vector_status == "skipped":
            work.finish(change)  # its passages and vectors went with the write that removed it
            _told("skipped" if state.is_live else "removed", state.document_id)
        elif change.attempts > INDEX_TRIES_MAX:
            _give_up(work, change, Task(state, ()), _ENDED)
        else:
            share = room // (len(changes) - position)
            passages = work.chunks_without_vector(change.document_key, model_id, share)
            room -= len(passages)
            tasks.append((change, Task(state, passages)))
    return _Leased(len(changes), tasks)


def _keep(
    work: Maintenance,
    model_id: int,
    outcomes: Sequence[tuple[LeasedChange, Embedded]],
    at_us: int,
    away_s: float,
) -> None:
    for change, embedded in outcomes:
        if embedded.unavailable:
            error = embedded.error or ""
            work.wait(change, not_before_us=at_us + int(away_s * _SECOND_US), error=error)
            _told("waits", embedded.task.state.document_id, reason=error)
            continue
        if embedded.error is not None:
            _postpone(work, change, embedded, at_us)
            continue
        task, state = embedded.task, embedded.task.state
        keep_vectors(work, model_id, [embedded])
        if work.lacks_vectors(state.document_key, model_id):
            work.release(change)  # long, or changed meanwhile: the next round goes on with it
            _told("begun", state.document_id, len(task.passages))
        else:
            work.set_ready(state.document_key, state.revision)
            work.finish(change)
            _told("ready", state.document_id, len(task.passages))
    work.trim_changes(VECTOR_CHANGES_KEPT)


def _postpone(work: Maintenance, change: LeasedChange, failed: Embedded, at_us: int) -> None:
    """Later, and then less and less soon; in the end it is set aside with its reason."""
    error = failed.error or ""
    if change.attempts >= INDEX_TRIES_MAX:
        _give_up(work, change, failed.task, error)
    else:
        wait_us = int(2.0**change.attempts * _SECOND_US)
        work.retry(change, not_before_us=at_us + wait_us, error=error)
        _told("retry", failed.task.state.document_id, reason=error)


def _give_up(work: Maintenance, change: LeasedChange, task: Task, error: str) -> None:
    work.park(change, error)
    work.set_error(task.state.document_key, task.state.revision, error)
    _told("error", task.state.document_id, reason=error)


def _told(outcome: str, document_id: str, passages: int = 0, reason: str = "") -> None:
    """One line for each change that was dealt with: the document and the outcome, no content."""
    metrics.indexed(outcome)
    level = logging.WARNING if reason else logging.INFO
    _log.log(level, "%s: %s, %d embedded %s", document_id, outcome, passages, reason)
