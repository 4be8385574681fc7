"""The runner: leases jobs of the kinds it knows, runs their handlers and stores the outcomes.

One loop looks for work, renews leases and notices cancellations; each job runs in a task beside it.
A job whose process dies is taken up again when its lease runs out, so a handler may run more than
once for the same job and must be safe to repeat.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.errors import ZibaldoneError
from zibaldone.jobs import metrics
from zibaldone.limits import (
    JOB_BACKOFF_SECONDS_MAX,
    JOB_CANCEL_GRACE_SECONDS,
    JOB_CRASHES_MAX,
    JOB_DONE_KEPT_SECONDS,
    JOB_ERROR_CHARS_MAX,
    JOB_LEASE_SECONDS,
    JOB_PARKED_KEPT_SECONDS,
    JOB_PROGRESS_SECONDS,
    JOB_PURGE_BATCH,
    JOB_PURGE_EVERY_SECONDS,
    JOB_RESULT_BYTES_MAX,
    JOB_TRIES_MAX,
)
from zibaldone.model.instant import now_us
from zibaldone.model.job import (
    VECTORS,
    JobState,
    LeasedJob,
    Progress,
    Setback,
    new_lease_owner,
)
from zibaldone.store.port import Store
from zibaldone.store.upkeep import QueueUpkeep, Upkeep

_log = logging.getLogger("zibaldone.jobs")

T = TypeVar("T")

_IDLE_SECONDS = 0.5
"""How soon a job that another process added, or a cancellation, is noticed."""

_TROUBLE_SECONDS_MAX = 10.0
"""The longest pause while the store cannot be used."""

_SECOND_US = 1_000_000

UNEXPECTED = "An unexpected error; the server's log has it under the job's id."
"""What is kept of a failure that says nothing to a caller."""


class JobCancelled(Exception):
    """Raised by a handler, or by `JobContext.check`, when the job's cancellation is requested."""


class JobFailed(Exception):
    """Raised by a handler when another attempt would fail too: the job is parked at once."""


class JobPostponed(Exception):
    """Raised by a handler that needs something unavailable: later, without counting an attempt."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class JobContext:
    """What a handler is given."""

    def __init__(self, lease: LeasedJob, report: Callable[[Progress], Awaitable[None]]) -> None:
        self.job_id = lease.job_id
        self.payload = lease.payload
        self.subject = lease.subject
        self.key_id = lease.key_id
        """The caller that the job belongs to; None: the namespace."""
        self.tenant = Tenant(lease.namespace, lease.prefix)
        """Whoever added the job: the work must stay within what they can see."""
        self.is_cancelled = False
        """Cancellation is requested, or the job was lost to another process: stop soon."""
        self._report = report

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far the work is. Call it as often as you like: it is written once a second."""
        await self._report(Progress(done, total, message[:JOB_ERROR_CHARS_MAX]))

    def check(self) -> None:
        """Raise JobCancelled if the work is to stop."""
        if self.is_cancelled:
            raise JobCancelled


Handler = Callable[[JobContext], Awaitable[Any]]
"""Does the work and returns its result, which must be JSON. A None result is none."""


@dataclass(frozen=True, slots=True)
class JobKind:
    handler: Handler
    concurrency: int = 1
    """Jobs of the kind that run at the same time, in all processes together."""
    lease_seconds: float = JOB_LEASE_SECONDS
    tries_max: int = JOB_TRIES_MAX
    keep_done_seconds: float = JOB_DONE_KEPT_SECONDS
    per_key: int | None = None
    """The same of one caller; its others stay queued."""
    by_subject: bool = False
    """One run for all queued jobs of a subject: the newest one's payload is what counts."""


class _Running:
    """A job that runs here."""

    def __init__(self, lease: LeasedJob, kind: JobKind, renewed_at_s: float) -> None:
        self.lease = lease
        self.kind = kind
        self.context = JobContext(lease, self._note)
        self.renewed_at_s = renewed_at_s
        self.progress: Progress | None = None
        """What is not written yet."""
        self.progress_at_s = 0.0
        self.cancelled_at_s: float | None = None
        self.is_lost = False
        """The lease ran out: the job is no longer ours to say anything about."""
        self.is_settling = False
        """The handler has ended and its outcome is being stored, after which nothing is held."""
        self.task: asyncio.Task[None] | None = None
        self._is_interrupted = False

    async def _note(self, progress: Progress) -> None:
        self.progress = progress
        await asyncio.sleep(0)  # a busy handler lets others run at least here

    def stop_soon(self, now_s: float) -> None:
        self.context.is_cancelled = True
        if self.cancelled_at_s is None:
            self.cancelled_at_s = now_s
        elif now_s - self.cancelled_at_s > JOB_CANCEL_GRACE_SECONDS:
            self._interrupt()

    def lose(self) -> None:
        self.context.is_cancelled = True
        self.is_lost = True
        self._interrupt()

    def _interrupt(self) -> None:
        """Once: interrupted again, a handler could not even clean up."""
        if self.task is not None and not self._is_interrupted:
            self._is_interrupted = True
            self.task.cancel()


class JobRunner:
    def __init__(
        self,
        store: Store,
        kinds: Mapping[str, JobKind],
        *,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._clock = clock
        self._running: dict[int, _Running] = {}
        self._wake = asyncio.Event()
        self._purge_at_s = 0.0
        self._is_stopping = False

    def kept_seconds(self, kind: str) -> float:
        """How long a job of the kind can be looked at once it has ended."""
        known = self._kinds.get(kind)
        return JOB_DONE_KEPT_SECONDS if known is None else known.keep_done_seconds

    def wake(self) -> None:
        """Something was queued or cancelled in this process: look at once."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled; then what runs is stopped and given back."""
        trouble_s = 0.0
        self._is_stopping = False
        try:
            while True:
                self._wake.clear()
                try:
                    await self.step()
                    trouble_s = 0.0
                except ZibaldoneError as error:
                    _log.warning("jobs wait: %s [%s]", error.message, error.code)
                    trouble_s = min(_TROUBLE_SECONDS_MAX, trouble_s * 2 + _IDLE_SECONDS)
                if trouble_s:
                    await asyncio.sleep(trouble_s)
                    continue
                # Not wait_for: it loses a cancellation that comes together with the waking.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_IDLE_SECONDS):
                        await self._wake.wait()
        finally:
            await self._stop()

    async def drain(self) -> None:
        """Run everything that is due now, and wait for it."""
        while True:
            is_idle = not self._running
            has_started = await self.step()
            if is_idle and not has_started and not self._running:
                return
            tasks = [job.task for job in self._running.values() if job.task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=_IDLE_SECONDS)

    async def step(self) -> bool:
        """Look after what runs, and start what is due. Whether something was started: it may have
        ended by now."""
        due = await self._look()
        await self._renew()
        has_started = bool(due) and await self._start(due)
        await self._purge()
        return has_started

    # Looking

    async def _look(self) -> list[str]:
        """The kinds that have something to do and room for it."""
        leases = [job.lease for job in self._running.values()]
        at_us = self._clock()

        def look(upkeep: Upkeep) -> tuple[dict[int, bool], list[str]]:
            due = [
                name
                for name, kind in self._kinds.items()
                if self._room(name) > 0
                and upkeep.queue.has_due(
                    name,
                    now_us=at_us,
                    until_us=_until(kind, at_us),
                    per_key=kind.per_key,
                )
            ]
            return upkeep.queue.held(leases) if leases else {}, due

        held, due = await self._store.upkeep(look, write=False)
        self._note_held(leases, held)
        return due

    def _room(self, kind: str) -> int:
        running = sum(job.lease.kind == kind for job in self._running.values())
        return self._kinds[kind].concurrency - running

    def _note_held(self, leases: list[LeasedJob], held: Mapping[int, bool]) -> None:
        """`leases` are those that were asked about; one may have ended meanwhile."""
        now_s = time.monotonic()
        for lease in leases:
            job = self._running.get(lease.job_key)
            if job is None or job.is_settling:
                continue
            if lease.job_key not in held:
                if not job.is_lost:
                    _log.warning("job %s was lost to another process", lease.job_id)
                job.lose()
            elif held[lease.job_key]:
                job.stop_soon(now_s)

    async def _renew(self) -> None:
        """Hold what runs, and write down how far it is."""
        now_s, at_us = time.monotonic(), self._clock()
        due = [
            job
            for job in self._running.values()
            if now_s - job.renewed_at_s >= job.kind.lease_seconds / 3
        ]
        reports = [
            (job.lease, job.progress)
            for job in self._running.values()
            if job.progress is not None and now_s - job.progress_at_s >= JOB_PROGRESS_SECONDS
        ]
        if not due and not reports:
            return

        def renew(upkeep: Upkeep) -> dict[int, bool]:
            held: dict[int, bool] = {}
            for job in due:
                held |= upkeep.queue.renew([job.lease], _until(job.kind, at_us))
            for lease, progress in reports:
                upkeep.queue.progress(lease, progress)
            return held

        held = await self._store.upkeep(renew)
        self._note_held([job.lease for job in due], held)
        for job in due:
            job.renewed_at_s = now_s
        for lease, progress in reports:
            reported = self._running.get(lease.job_key)
            if reported is not None:
                reported.progress_at_s = now_s
                if reported.progress is progress:
                    reported.progress = None

    # Running

    async def _start(self, due: list[str]) -> bool:
        at_us = self._clock()
        room = {name: self._room(name) for name in due}

        def lease(upkeep: Upkeep) -> list[LeasedJob]:
            owner = new_lease_owner()
            leases: list[LeasedJob] = []
            for name in due:
                kind = self._kinds[name]
                leases += upkeep.queue.lease(
                    name,
                    limit=room[name],
                    now_us=at_us,
                    until_us=_until(kind, at_us),
                    owner=owner,
                    by_subject=kind.by_subject,
                    running_max=kind.concurrency,
                    per_key=kind.per_key,
                )
            return leases

        now_s = time.monotonic()
        leases = await self._store.upkeep(lease)
        for leased in leases:
            job = _Running(leased, self._kinds[leased.kind], now_s)
            self._running[leased.job_key] = job
            job.task = asyncio.create_task(self._run_job(job), name=f"job {leased.job_id}")
        if leases:
            self._wake.set()  # an abandoned job comes alone: there may be more
        return bool(leases)

    async def _run_job(self, job: _Running) -> None:
        lease, started_s = job.lease, time.monotonic()
        outcome = "lost"
        try:
            outcome, settle = await self._outcome(job)
            job.is_settling = True
            if not job.is_lost and not await self._settle(job, settle):
                outcome = "lost"
        except asyncio.CancelledError:
            outcome = "released"  # the process stops; `_stop` gives the job back
            raise
        except ZibaldoneError as error:
            _log.warning(
                "job %s: its outcome was not stored, so it runs again: %s [%s]",
                lease.job_id,
                error.message,
                error.code,
            )
        finally:
            if self._running.get(lease.job_key) is job:
                del self._running[lease.job_key]
                self._wake.set()
            metrics.ended(lease.kind, outcome, time.monotonic() - started_s)
            _log.info("job %s (%s): %s", lease.job_id, lease.kind, outcome)

    async def _outcome(self, job: _Running) -> tuple[str, Callable[[QueueUpkeep], set[int]]]:
        """Run the handler. Returns the name of the outcome, and what stores it."""
        lease, kind = job.lease, job.kind
        if lease.crashes >= JOB_CRASHES_MAX:
            error = f"The server ended {lease.crashes} times while it ran this job."
            return "parked", self._park(lease, error, is_attempt=False)
        try:
            result = await kind.handler(job.context)
            if result is not None and len(orjson.dumps(result)) > JOB_RESULT_BYTES_MAX:
                raise JobFailed(f"The result has more than {JOB_RESULT_BYTES_MAX} bytes.")
        except JobCancelled:
            return "cancelled", lambda queue: queue.cancel([lease], now_us=self._clock())
        except asyncio.CancelledError:
            if self._is_stopping:
                raise
            if job.cancelled_at_s is None and not job.is_lost:
                return self._failed(job, RuntimeError("the handler was cancelled from within"))
            return "cancelled", lambda queue: queue.cancel([lease], now_us=self._clock())
        except JobFailed as problem:
            return "parked", self._park(lease, str(problem))
        except JobPostponed as problem:
            setback = self._setback(lease, str(problem), problem.seconds)
            return "postponed", lambda queue: queue.wait([setback], now_us=self._clock())
        except Exception as problem:
            return self._failed(job, problem)
        return "done", lambda queue: queue.finish([lease], now_us=self._clock(), result=result)

    def _failed(
        self, job: _Running, problem: Exception
    ) -> tuple[str, Callable[[QueueUpkeep], set[int]]]:
        lease, failures = job.lease, job.lease.attempts + 1
        if isinstance(problem, ZibaldoneError):
            error = f"{problem.message} [{problem.code}]"
            _log.warning("job %s (%s) failed: %s", lease.job_id, lease.kind, error)
        else:
            error = UNEXPECTED
            _log.error("job %s (%s) failed", lease.job_id, lease.kind, exc_info=problem)
        if failures >= job.kind.tries_max:
            return "parked", self._park(lease, error)
        setback = self._setback(lease, error, 2.0 ** min(failures, 30))
        return "retry", lambda queue: queue.retry([setback], now_us=self._clock())

    def _park(
        self, lease: LeasedJob, error: str, *, is_attempt: bool = True
    ) -> Callable[[QueueUpkeep], set[int]]:
        setback = self._setback(lease, error, 0.0)
        return lambda queue: queue.park([setback], now_us=self._clock(), is_attempt=is_attempt)

    def _setback(self, lease: LeasedJob, error: str, seconds: float) -> Setback:
        wait_us = int(min(seconds, JOB_BACKOFF_SECONDS_MAX) * _SECOND_US)
        return Setback(lease, error[:JOB_ERROR_CHARS_MAX], self._clock() + wait_us)

    async def _settle(self, job: _Running, settle: Callable[[QueueUpkeep], set[int]]) -> bool:
        """Store the outcome, with the last progress. False: the job was no longer ours."""

        def store(upkeep: Upkeep) -> set[int]:
            if job.progress is not None:
                upkeep.queue.progress(job.lease, job.progress)
            return settle(upkeep.queue)

        return job.lease.job_key in await self._persist(store, job.kind.lease_seconds)

    async def _persist(self, work: Callable[[Upkeep], T], seconds_max: float) -> T:
        """A store that is unavailable for a moment must not cost the work that was done."""
        deadline_s, pause_s = time.monotonic() + seconds_max, 0.1
        while True:
            try:
                return await self._store.upkeep(work)
            except ZibaldoneError:
                if time.monotonic() + pause_s > deadline_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 2.0)

    # Ending

    async def _stop(self) -> None:
        self._is_stopping = True
        jobs = list(self._running.values())
        self._running.clear()
        tasks = [job.task for job in jobs if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        leases = [job.lease for job in jobs]
        if leases:
            with contextlib.suppress(ZibaldoneError):
                await self._store.upkeep(
                    lambda upkeep: upkeep.queue.release(leases, now_us=self._clock())
                )

    async def _purge(self) -> None:
        """Forget what ended long ago, some of it at a time."""
        now_s = time.monotonic()
        if now_s < self._purge_at_s:
            return
        at_us = self._clock()
        kept: list[tuple[str, JobState, float]] = [(VECTORS, "cancelled", JOB_DONE_KEPT_SECONDS)]
        for name, kind in self._kinds.items():
            kept += [(name, "done", kind.keep_done_seconds)]
            kept += [(name, "cancelled", kind.keep_done_seconds)]
            kept += [(name, "parked", JOB_PARKED_KEPT_SECONDS)]

        def purge(upkeep: Upkeep) -> int:
            return max(
                upkeep.queue.purge(
                    name, state, before_us=at_us - int(seconds * _SECOND_US), limit=JOB_PURGE_BATCH
                )
                for name, state, seconds in kept
            )

        if await self._store.upkeep(purge) < JOB_PURGE_BATCH:  # else there is more
            self._purge_at_s = now_s + JOB_PURGE_EVERY_SECONDS


def _until(kind: JobKind, at_us: int) -> int:
    return at_us + int(kind.lease_seconds * _SECOND_US)
