"""The worker: leases jobs of the kind `vectors`, embeds what is new and sets documents `ready`.

A job is leased, not removed: after a crash at any point another worker does it again, and
embeds only what still lacks a vector. Vectors and the status `ready` are written in one
transaction, and only for the revision that was read. A transaction may run twice or fail at its
commit, so it only returns outcomes; they are logged and counted afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from zibaldone.embed.port import Embedder
from zibaldone.errors import ZibaldoneError
from zibaldone.index.embedding import Embedded, Task, embed, keep_vectors
from zibaldone.index.ownership import Ownership
from zibaldone.index.summary import Outcome, Summary
from zibaldone.index.sweep import enqueue_missing
from zibaldone.limits import (
    INDEX_BATCH_CHUNKS,
    INDEX_BATCH_DOCUMENTS,
    INDEX_LEASE_SECONDS,
    INDEX_RENEW_SECONDS,
    INDEX_TRIES_MAX,
    INDEX_UNAVAILABLE_SECONDS_MAX,
    JOB_CRASHES_MAX,
)
from zibaldone.model.instant import now_us
from zibaldone.model.job import VECTORS, LeasedJob, Setback, new_lease_owner
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Claim, DocumentState, Upkeep

_log = logging.getLogger("zibaldone.index")

_IDLE_SECONDS = 0.5
"""How soon a change made by another process is noticed."""

_TROUBLE_SECONDS_MAX = 10.0
"""The longest pause while the store cannot be used."""

_SECOND_US = 1_000_000

_BEING_WRITTEN_SECONDS = 0.5
_BEING_WRITTEN = "The document was being written."
"""Why one is looked at again so much later. Its writer adds a job of its own if it succeeds."""

_ENDED = "The server ended each time this document was being embedded."


@dataclass(frozen=True, slots=True)
class Batch:
    """What one round did."""

    documents: int = 0
    chunks: int = 0
    """Embedded, not merely looked at."""
    failed: int = 0
    unavailable: str | None = None
    """Why the model was unavailable, if it was; its documents wait and are not counted above."""


@dataclass(frozen=True, slots=True)
class _Leased:
    count: int
    """Documents that were taken, those with nothing left to do included."""
    tasks: Sequence[tuple[LeasedJob, Task]] = ()
    outcomes: Sequence[Outcome] = ()
    """Of those that nothing was left to do for."""

    @property
    def jobs(self) -> list[LeasedJob]:
        return [job for job, _ in self.tasks]


class IndexWorker:
    def __init__(
        self, store: Store, embedder: Embedder, *, clock: Callable[[], int] = now_us
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._model_id: int | None = None
        self._ownership = Ownership(store, clock)
        self._summary = Summary()
        self._wake = asyncio.Event()
        self._pause_s = 0.0
        self._paused_until_us = 0

    def wake(self) -> None:
        """A write was acknowledged in this process: look at once."""
        self._wake.set()

    @property
    def rival(self) -> str | None:
        """The model that other processes index with, while this one stands by with its own."""
        return self._ownership.rival

    async def run(self) -> None:
        """Until cancelled. A failure is logged, and the loop goes on."""
        try:
            await self._run()
        finally:
            self._summary.tell(is_idle=True, is_last=True)
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
                _log.exception("the index worker failed and goes on")
                trouble_s = min(_TROUBLE_SECONDS_MAX, trouble_s * 2 + _IDLE_SECONDS)
            self._summary.tell(is_idle=not busy)
            if trouble_s:
                await asyncio.sleep(trouble_s)
            elif not busy:
                # Not wait_for: it loses a cancellation that comes together with the waking.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_IDLE_SECONDS):
                        await self._wake.wait()

    async def _step(self) -> bool:
        """Whether there was something to do."""
        if self._ownership.is_new:
            await self._sweep()
        return await self._is_due() and (await self.drain_once()).documents > 0

    async def _sweep(self) -> None:
        """Queue what was missed, or done with another model, before this worker's turn."""
        self._ownership.is_new = False
        try:
            async with self._holding():  # of a large store it takes minutes
                await enqueue_missing(self._store, await self.model_id())
        except BaseException:
            self._ownership.is_new = True
            raise

    async def resign(self) -> None:
        """Give up the turn: workers with another model need not wait for this one."""
        await self._ownership.resign()

    async def _is_due(self) -> bool:
        at_us, until_us = self._clock(), self._lease_end_us()
        return await self._store.upkeep(
            lambda work: work.queue.has_due(VECTORS, now_us=at_us, until_us=until_us), write=False
        )

    async def model_id(self) -> int:
        if self._model_id is None:
            identity, dimensions = self._embedder.identity, self._embedder.dimensions
            self._model_id = await self._store.upkeep(
                lambda work: work.models.id(identity, dimensions, now_us())
            )
        return self._model_id

    async def drain(self) -> Batch:
        """Deal with everything that is due now."""
        documents = chunks = failed = 0
        try:
            while (done := await self.drain_once()).documents:
                documents += done.documents
                chunks += done.chunks
                failed += done.failed
        finally:
            self._summary.tell(is_idle=True, is_last=True)
            await self.resign()
        return Batch(documents, chunks, failed)

    async def drain_once(self) -> Batch:
        """Deal with a few documents; none: there was nothing to do."""
        if self._clock() < self._paused_until_us:
            return Batch()
        model_id = await self.model_id()
        until_us, owner = self._lease_end_us(), new_lease_owner()
        # One is enough to see whether the model is back; and if it is the document that makes the
        # model unavailable, the others are not held up by it.
        limit = 1 if self._pause_s else INDEX_BATCH_DOCUMENTS

        def lease(work: Upkeep) -> tuple[Claim, _Leased]:
            claim = self._ownership.claim(work, model_id)
            if claim.rival is not None:
                return claim, _Leased(0)
            return claim, _lease(work, model_id, limit, owner, self._clock(), until_us)

        claim, leased = await self._leased(lease)
        self._ownership.note(claim)
        self._summary.add(leased.outcomes)
        if not leased.tasks:
            return Batch(leased.count)
        async with self._holding(leased.jobs):
            embedded = await embed(self._embedder, [task for _, task in leased.tasks])
        wait_s = self._rest(embedded)
        by_job = list(zip(leased.jobs, embedded, strict=True))

        def keep(work: Upkeep) -> tuple[Claim, list[Outcome]]:
            claim = self._ownership.claim(work, model_id)
            if claim.rival is None:
                return claim, _keep(work, model_id, by_job, self._clock(), wait_s)
            # It was asleep for so long that others took over: queue and status are theirs.
            keep_vectors(work, model_id, embedded)
            return claim, []

        claim, outcomes = await self._store.upkeep(keep)
        self._ownership.note(claim)
        self._summary.add(outcomes)
        return _batch(leased.count, embedded)

    async def _leased(
        self, lease: Callable[[Upkeep], tuple[Claim, _Leased]]
    ) -> tuple[Claim, _Leased]:
        """Lease documents; a worker that is stopped meanwhile gives them back.

        A transaction that has begun ends by itself: its leases would keep others waiting.
        """
        leasing = asyncio.ensure_future(self._store.upkeep(lease))
        try:
            return await asyncio.shield(leasing)
        except asyncio.CancelledError:
            with contextlib.suppress(ZibaldoneError):
                _, leased = await leasing
                await self._store.upkeep(
                    lambda work: work.queue.release(leased.jobs, now_us=self._clock())
                )
            raise

    def _rest(self, outcomes: Sequence[Embedded]) -> float:
        """How long documents wait for a model that is unavailable; 0 if it is not.

        The worker itself is back in half the time, so that others get a turn before those do.
        """
        waiting = [outcome for outcome in outcomes if outcome.unavailable]
        if not waiting:
            if any(outcome.vectors is not None for outcome in outcomes):
                self._pause_s = 0.0
            return 0.0
        self._pause_s = min(self._pause_s * 2 or 2.0, INDEX_UNAVAILABLE_SECONDS_MAX)
        asked_s = max(outcome.wait_seconds for outcome in waiting)
        rest_s = max(self._pause_s / 2, asked_s)
        self._paused_until_us = self._clock() + int(rest_s * _SECOND_US)
        return max(self._pause_s, asked_s)

    def _lease_end_us(self) -> int:
        return self._clock() + int(INDEX_LEASE_SECONDS * _SECOND_US)

    @contextlib.asynccontextmanager
    async def _holding(self, jobs: Sequence[LeasedJob] = ()) -> AsyncIterator[None]:
        """While it takes long, leases and claim are renewed; a worker that stops gives back."""
        renewing = asyncio.create_task(self._renew(jobs))
        try:
            yield
        except asyncio.CancelledError:
            with contextlib.suppress(ZibaldoneError):
                await self._store.upkeep(
                    lambda work: work.queue.release(jobs, now_us=self._clock())
                )
            raise
        finally:
            renewing.cancel()

    async def _renew(self, jobs: Sequence[LeasedJob]) -> None:
        def renew(work: Upkeep) -> Claim:
            claim = self._ownership.claim(work, model_id)
            until_us = self._lease_end_us()
            if jobs and claim.rival is None:
                work.queue.renew(jobs, until_us)
            return claim

        model_id = await self.model_id()
        while True:
            await asyncio.sleep(INDEX_RENEW_SECONDS)
            try:
                self._ownership.note(await self._store.upkeep(renew))
            except ZibaldoneError as error:
                _log.warning("leases were not renewed: %s [%s]", error.message, error.code)


def _batch(documents: int, outcomes: Sequence[Embedded]) -> Batch:
    waiting = [outcome for outcome in outcomes if outcome.unavailable]
    return Batch(
        documents=documents - len(waiting),
        chunks=sum(len(outcome.task.chunks) for outcome in outcomes if outcome.error is None),
        failed=sum(outcome.error is not None for outcome in outcomes) - len(waiting),
        unavailable=waiting[0].error if waiting else None,
    )


def _lease(
    work: Upkeep, model_id: int, limit: int, owner: str, at_us: int, until_us: int
) -> _Leased:
    """Take documents, settle those with nothing to embed, and share the batch among the others."""
    jobs = work.queue.lease(
        VECTORS, limit=limit, now_us=at_us, until_us=until_us, owner=owner, by_subject=True
    )
    states = work.vectors.states(map(_document_key, jobs))
    settled: list[LeasedJob] = []
    given_up: list[tuple[LeasedJob, DocumentState, str]] = []
    to_embed: list[tuple[LeasedJob, DocumentState]] = []
    outcomes: list[Outcome] = []
    for job in jobs:
        state = states.get(_document_key(job))
        if state is None:
            settled.append(job)
        elif not state.is_live or state.vector_status == "skipped":
            settled.append(job)  # its chunks and vectors went with the write that removed it
            outcomes.append(Outcome("skipped" if state.is_live else "removed", state.document_id))
        elif job.crashes >= JOB_CRASHES_MAX:
            given_up.append((job, state, _ENDED))
        else:
            to_embed.append((job, state))
    if settled:
        _finish(work, settled, at_us)
    outcomes += _give_up(work, given_up, at_us)
    keys = [state.document_key for _, state in to_embed]
    chunks = work.vectors.chunks_without_vector(keys, model_id, INDEX_BATCH_CHUNKS) if keys else {}
    tasks = [(job, Task(state, chunks.get(state.document_key, ()))) for job, state in to_embed]
    return _Leased(len(jobs), tasks, outcomes)


def _document_key(job: LeasedJob) -> int:
    return int(job.subject or 0)


def _keep(
    work: Upkeep,
    model_id: int,
    embedded: Sequence[tuple[LeasedJob, Embedded]],
    at_us: int,
    wait_s: float,
) -> list[Outcome]:
    done = [(job, each.task) for job, each in embedded if each.error is None]
    keep_vectors(work, model_id, (each for _, each in embedded))
    outcomes = _settle(work, model_id, done, at_us) if done else []
    failed = [(job, each) for job, each in embedded if each.error is not None]
    waiting = [(job, each) for job, each in failed if each.unavailable]
    if waiting:
        until_us = at_us + int(wait_s * _SECOND_US)
        setbacks = [Setback(job, each.error or "", until_us) for job, each in waiting]
        work.queue.wait(setbacks, now_us=at_us)
        outcomes += (_failed("waits", each) for _, each in waiting)
    return outcomes + _postpone(
        work, [(job, each) for job, each in failed if not each.unavailable], at_us
    )


def _settle(
    work: Upkeep, model_id: int, done: Sequence[tuple[LeasedJob, Task]], at_us: int
) -> list[Outcome]:
    """Documents whose chunks all have vectors are ready; the others are released."""
    held = work.vectors.hold(task.state.document_key for _, task in done)
    being_written = [job for job, task in done if task.state.document_key not in held]
    if being_written:
        until_us = at_us + int(_BEING_WRITTEN_SECONDS * _SECOND_US)
        setbacks = [Setback(job, _BEING_WRITTEN, until_us) for job in being_written]
        work.queue.wait(setbacks, now_us=at_us)
        done = [(job, task) for job, task in done if task.state.document_key in held]
    lacking = work.vectors.lacking(held, model_id)
    ready = [(job, task.state) for job, task in done if task.state.document_key not in lacking]
    if ready:
        work.vectors.set_ready((state.document_key, state.revision) for _, state in ready)
        _finish(work, [job for job, _ in ready], at_us)
    if lacking:  # long, or changed meanwhile: the next round goes on with it
        begun = [job for job, task in done if task.state.document_key in lacking]
        work.queue.release(begun, now_us=at_us, has_progressed=True)
    return [
        Outcome(
            "begun" if task.state.document_key in lacking else "ready",
            task.state.document_id,
            len(task.chunks),
        )
        for _, task in done
    ]


def _finish(work: Upkeep, jobs: Sequence[LeasedJob], at_us: int) -> None:
    """Nothing is kept of a job that is done, nor of earlier ones of its document that failed."""
    work.queue.finish(jobs, now_us=at_us, is_kept=False)
    subjects = [(job.namespace, job.subject) for job in jobs if job.subject is not None]
    work.queue.forget_ended(VECTORS, subjects)


def _postpone(
    work: Upkeep, failed: Sequence[tuple[LeasedJob, Embedded]], at_us: int
) -> list[Outcome]:
    """Retry with back-off; after the last attempt, set aside with the reason."""
    retried: list[tuple[Setback, Embedded]] = []
    given_up: list[tuple[LeasedJob, DocumentState, str]] = []
    for job, each in failed:
        attempts, error = job.attempts + 1, each.error or ""
        if attempts >= INDEX_TRIES_MAX:
            given_up.append((job, each.task.state, error))
        else:
            later_us = at_us + int(2.0**attempts * _SECOND_US)
            retried.append((Setback(job, error, later_us), each))
    if retried:
        work.queue.retry([setback for setback, _ in retried], now_us=at_us)
    return [*(_failed("retry", each) for _, each in retried), *_give_up(work, given_up, at_us)]


def _give_up(
    work: Upkeep, failed: Sequence[tuple[LeasedJob, DocumentState, str]], at_us: int
) -> list[Outcome]:
    if not failed:
        return []
    held = work.queue.park([Setback(job, error) for job, _, error in failed], now_us=at_us)
    parked = [(state, error) for job, state, error in failed if job.job_key in held]
    work.vectors.set_error((state.document_key, state.revision, error) for state, error in parked)
    return [Outcome("error", state.document_id, reason=error) for state, error in parked]


def _failed(name: str, embedded: Embedded) -> Outcome:
    return Outcome(name, embedded.task.state.document_id, reason=embedded.error or "")
