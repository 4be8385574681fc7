"""The runner: a job is run until it is done, within bounds, and told about truthfully."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.store.kept import EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import StorageUnavailable
from zibaldone.jobs import runner
from zibaldone.jobs.runner import (
    JobCancelled,
    JobContext,
    JobFailed,
    JobKind,
    JobPostponed,
    JobRunner,
)
from zibaldone.limits import JOB_BACKOFF_SECONDS_MAX, JOB_CRASHES_MAX, JOB_RESULT_BYTES_MAX
from zibaldone.model.job import Job, NewJob, Progress, new_lease_owner

T = TypeVar("T")

SECOND = 1_000_000
START = 1_800_000_000 * SECOND


class Clock:
    def __init__(self) -> None:
        self.now_us = START

    def __call__(self) -> int:
        return self.now_us

    def forward(self, seconds: float) -> None:
        self.now_us += int(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(runner, "JOB_PROGRESS_SECONDS", 0.0)


def add(kept: Kept, *jobs: NewJob, tenant: Tenant = EVERYTHING) -> list[str]:
    return kept.write(lambda writer: writer.queue.add(jobs), tenant)


def get(kept: Kept, job_id: str, tenant: Tenant = EVERYTHING) -> Job:
    job = kept.read(lambda reader: reader.jobs.get(job_id), tenant)
    assert job is not None
    return job


def made(kept: Kept, clock: Clock, handler: Any, **more: Any) -> JobRunner:
    return JobRunner(kept.store, {"sync": JobKind(handler, **more)}, clock=clock)


def drain(kept: Kept, clock: Clock, handler: Any, **more: Any) -> None:
    asyncio.run(made(kept, clock, handler, **more).drain())


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def job_now(kept: Kept, job_id: str) -> Job:
    job = await kept.store.read(EVERYTHING, lambda reader: reader.jobs.get(job_id))
    assert job is not None
    return job


async def run_while(kept: Kept, ran: JobRunner, work: Callable[[], Awaitable[T]]) -> T:
    """`work` beside a running runner, which is stopped at the end."""
    running = asyncio.create_task(ran.run())
    try:
        return await work()
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def test_a_job_is_run_with_what_it_was_given_and_its_result_is_kept(
    kept: Kept, clock: Clock
) -> None:
    seen: list[JobContext] = []

    async def handler(context: JobContext) -> Any:
        seen.append(context)
        return {"rows": 3}

    tenant = Tenant("home", "team/")
    (job_id,) = add(kept, NewJob("sync", subject="s", payload={"a": 1}), tenant=tenant)
    drain(kept, clock, handler)
    (context,) = seen
    assert (context.job_id, context.subject, context.payload) == (job_id, "s", {"a": 1})
    assert context.tenant == tenant
    job = get(kept, job_id, tenant)
    assert (job.state, job.result, job.finished_at_us) == ("done", {"rows": 3}, START)


def test_a_failing_job_is_retried_ever_later_and_then_parked(kept: Kept, clock: Clock) -> None:
    tries: list[int] = []

    async def handler(context: JobContext) -> None:
        tries.append(clock.now_us)
        raise StorageUnavailable("The shop is closed.")

    (job_id,) = add(kept, NewJob("sync"))
    waits = []
    for _ in range(3):
        drain(kept, clock, handler, tries_max=4)
        job = get(kept, job_id)
        assert job.state == "queued"
        waits.append((job.not_before_us - clock.now_us) // SECOND)
        drain(kept, clock, handler, tries_max=4)  # not before its time
        clock.now_us = job.not_before_us
    assert waits == [2, 4, 8]
    drain(kept, clock, handler, tries_max=4)
    job = get(kept, job_id)
    assert (job.state, job.attempts, len(tries)) == ("parked", 4, 4)
    assert job.error == "The shop is closed. [STORAGE_UNAVAILABLE]"


def test_a_pause_between_attempts_has_a_bound(kept: Kept, clock: Clock) -> None:
    async def handler(context: JobContext) -> None:
        raise StorageUnavailable("no")

    (job_id,) = add(kept, NewJob("sync"))
    for _ in range(14):
        drain(kept, clock, handler, tries_max=99)
        wait_us = get(kept, job_id).not_before_us - clock.now_us
        assert wait_us <= JOB_BACKOFF_SECONDS_MAX * SECOND
        clock.now_us += wait_us
    assert wait_us == JOB_BACKOFF_SECONDS_MAX * SECOND


def test_what_an_unforeseen_failure_says_stays_in_the_log(
    kept: Kept, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(context: JobContext) -> None:
        raise RuntimeError("password=hunter2")

    (job_id,) = add(kept, NewJob("sync"))
    drain(kept, clock, handler)
    assert "hunter2" not in (get(kept, job_id).error or "")
    assert "hunter2" in caplog.text
    assert job_id in caplog.text


def test_a_handler_that_is_cancelled_from_within_has_failed(kept: Kept, clock: Clock) -> None:
    async def handler(context: JobContext) -> None:
        raise asyncio.CancelledError

    (job_id,) = add(kept, NewJob("sync"))
    drain(kept, clock, handler)
    job = get(kept, job_id)
    assert (job.state, job.attempts) == ("queued", 1)


def test_a_handler_can_give_up_at_once(kept: Kept, clock: Clock) -> None:
    async def handler(context: JobContext) -> None:
        raise JobFailed("There is no such table.")

    (job_id,) = add(kept, NewJob("sync"))
    drain(kept, clock, handler)
    job = get(kept, job_id)
    assert (job.state, job.error) == ("parked", "There is no such table.")


def test_a_handler_can_wait_without_an_attempt_being_counted(kept: Kept, clock: Clock) -> None:
    async def handler(context: JobContext) -> None:
        raise JobPostponed("The server asks for a pause.", 30)

    (job_id,) = add(kept, NewJob("sync"))
    for _ in range(8):
        drain(kept, clock, handler, tries_max=2)
        job = get(kept, job_id)
        assert (job.state, job.attempts) == ("queued", 0)
        assert job.not_before_us == clock.now_us + 30 * SECOND
        clock.now_us = job.not_before_us


@pytest.mark.parametrize("result", [object(), {1, 2}, "x" * (JOB_RESULT_BYTES_MAX + 1)])
def test_a_result_that_cannot_be_kept_is_a_failure(kept: Kept, clock: Clock, result: Any) -> None:
    async def handler(context: JobContext) -> Any:
        return result

    (job_id,) = add(kept, NewJob("sync"))
    drain(kept, clock, handler, tries_max=1)
    assert get(kept, job_id).state == "parked"


def test_kills_park_a_job_later_than_failures(kept: Kept, clock: Clock) -> None:
    ran: list[str] = []

    async def handler(context: JobContext) -> None:
        ran.append(context.job_id)

    (job_id,) = add(kept, NewJob("sync"))

    def lease_and_die() -> None:
        kept.upkeep(
            lambda upkeep: upkeep.queue.lease(
                "sync",
                limit=1,
                now_us=clock.now_us,
                until_us=clock.now_us + SECOND,
                owner=new_lease_owner(),
            )
        )
        clock.forward(1)

    for _ in range(JOB_CRASHES_MAX - 1):
        lease_and_die()
    drain(kept, clock, handler, lease_seconds=1)
    assert get(kept, job_id).state == "done"
    (job_id,) = add(kept, NewJob("sync"))
    for _ in range(JOB_CRASHES_MAX):
        lease_and_die()
    drain(kept, clock, handler, lease_seconds=1)
    job = get(kept, job_id)
    assert (job.state, job.attempts) == ("parked", 0)
    assert job.error == f"The server ended {JOB_CRASHES_MAX} times while it ran this job."
    assert len(ran) == 1


def test_no_more_run_at_once_than_the_kind_allows(kept: Kept, clock: Clock) -> None:
    now = most = 0

    async def handler(context: JobContext) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1

    ids = add(kept, *(NewJob("sync") for _ in range(7)))
    drain(kept, clock, handler, concurrency=3)
    assert most == 3
    assert {get(kept, job_id).state for job_id in ids} == {"done"}


def test_two_runners_run_each_job_once(kept: Kept, clock: Clock) -> None:
    ran: list[str] = []

    async def handler(context: JobContext) -> None:
        ran.append(context.job_id)
        await asyncio.sleep(0.001)

    ids = add(kept, *(NewJob("sync") for _ in range(40)))

    async def main() -> None:
        runners = [made(kept, clock, handler, concurrency=4) for _ in range(2)]
        await asyncio.gather(*(one.drain() for one in runners))

    asyncio.run(main())
    assert sorted(ran) == sorted(ids)


def test_progress_is_seen_while_it_runs_and_after(kept: Kept, clock: Clock) -> None:
    (job_id,) = add(kept, NewJob("sync"))
    go_on = asyncio.Event()

    async def handler(context: JobContext) -> None:
        await context.progress(1, 2, "half")
        await go_on.wait()
        await context.progress(2, 2, "all")

    async def watch() -> None:
        async def is_half() -> bool:
            return (await job_now(kept, job_id)).progress == Progress(1.0, 2.0, "half")

        async def is_done() -> bool:
            return (await job_now(kept, job_id)).state == "done"

        await until(is_half)
        go_on.set()
        await until(is_done)

    async def main() -> None:
        await run_while(kept, made(kept, clock, handler), watch)

    asyncio.run(main())
    assert get(kept, job_id).progress == Progress(2.0, 2.0, "all")


def test_a_handler_that_looks_stops_when_it_is_cancelled(kept: Kept, clock: Clock) -> None:
    (job_id,) = add(kept, NewJob("sync"))
    stopped: list[str] = []

    async def handler(context: JobContext) -> None:
        for _ in range(10_000):
            await asyncio.sleep(0.005)
            try:
                context.check()
            except JobCancelled:
                stopped.append("cleanly")
                raise

    asyncio.run(_cancel(kept, made(kept, clock, handler), job_id))
    assert stopped == ["cleanly"]
    assert get(kept, job_id).state == "cancelled"


def test_a_handler_that_does_not_look_is_interrupted_after_a_while(
    kept: Kept, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "JOB_CANCEL_GRACE_SECONDS", 0.05)
    (job_id,) = add(kept, NewJob("sync"))

    async def handler(context: JobContext) -> None:
        await asyncio.Event().wait()

    asyncio.run(_cancel(kept, made(kept, clock, handler), job_id))
    assert get(kept, job_id).state == "cancelled"


async def _cancel(kept: Kept, ran: JobRunner, job_id: str) -> None:
    async def has(state: str) -> bool:
        return (await job_now(kept, job_id)).state == state

    async def work() -> None:
        await until(lambda: has("running"))
        await kept.store.write(EVERYTHING, lambda writer: writer.queue.cancel(job_id, START))
        await until(lambda: has("cancelled"))

    await run_while(kept, ran, work)


def test_a_runner_that_stops_gives_its_jobs_back(kept: Kept, clock: Clock) -> None:
    (job_id,) = add(kept, NewJob("sync"))

    async def handler(context: JobContext) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async def is_running() -> bool:
            return (await job_now(kept, job_id)).state == "running"

        await run_while(kept, made(kept, clock, handler), lambda: until(is_running))

    asyncio.run(main())
    job = get(kept, job_id)
    assert (job.state, job.attempts, job.crashes) == ("queued", 0, 0)


def test_a_long_job_keeps_its_lease(kept: Kept, clock: Clock) -> None:
    """The clock of leases goes on by twice a lease's length while it runs."""
    (job_id,) = add(kept, NewJob("sync"))
    go_on = asyncio.Event()

    async def handler(context: JobContext) -> None:
        await go_on.wait()

    async def work() -> None:
        async def is_held() -> bool:
            at_us = clock.now_us
            return not await kept.store.upkeep(
                lambda upkeep: upkeep.queue.has_due(
                    "sync", now_us=at_us, until_us=at_us + SECOND // 10
                ),
                write=False,
            )

        async def is_running() -> bool:
            return (await job_now(kept, job_id)).state == "running"

        await until(is_running)
        for _ in range(10):
            clock.forward(0.02)
            await asyncio.sleep(0.05)
            assert await is_held()
        go_on.set()

        async def is_done() -> bool:
            return (await job_now(kept, job_id)).state == "done"

        await until(is_done)

    async def main() -> None:
        await run_while(kept, made(kept, clock, handler, lease_seconds=0.1), work)

    asyncio.run(main())
    assert get(kept, job_id).crashes == 0


def test_a_job_that_was_lost_is_stopped_and_its_outcome_is_not_told(
    kept: Kept, clock: Clock
) -> None:
    (job_id,) = add(kept, NewJob("sync"))
    stopped = asyncio.Event()

    async def handler(context: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def work() -> None:
        async def is_running() -> bool:
            return (await job_now(kept, job_id)).state == "running"

        await until(is_running)
        later_us = clock.now_us + 35 * SECOND  # as if this process had been asleep
        await kept.store.upkeep(
            lambda upkeep: upkeep.queue.lease(
                "sync", limit=1, now_us=later_us, until_us=later_us + SECOND, owner="other"
            )
        )
        async with asyncio.timeout(10):
            await stopped.wait()
        await asyncio.sleep(0.05)

    async def main() -> None:
        await run_while(kept, made(kept, clock, handler), work)

    asyncio.run(main())
    job = get(kept, job_id)
    assert (job.state, job.crashes) == ("running", 1)


def test_a_job_whose_outcome_is_being_stored_is_not_lost(
    kept: Kept, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is looked after between the commit and the news of it: nobody holds it any more."""
    (job_id,) = add(kept, NewJob("sync"))
    upkeep = kept.store.upkeep
    has_settled = False
    looked = asyncio.Event()

    async def handler(context: JobContext) -> None:
        """Nothing to do."""

    async def slow(work: Any, *, write: bool = True) -> Any:
        nonlocal has_settled
        is_look = has_settled and not write
        done = await upkeep(work, write=write)
        task = asyncio.current_task()
        if task is not None and task.get_name() == f"job {job_id}":
            has_settled = True
            async with asyncio.timeout(10):
                await looked.wait()
        elif is_look:  # after the one who asked has heard the answer
            asyncio.get_running_loop().call_soon(looked.set)
        return done

    monkeypatch.setattr(kept.store, "upkeep", slow)
    with caplog.at_level("INFO"):
        drain(kept, clock, handler)
    assert looked.is_set()
    assert [f"job {job_id} (sync): done"] == [
        record.getMessage() for record in caplog.records if job_id in record.getMessage()
    ]


def test_a_store_that_is_unavailable_for_a_moment_costs_no_work(
    kept: Kept, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    troubles = 3

    async def handler(context: JobContext) -> str:
        ran.append(context.job_id)
        return "well"

    upkeep = kept.store.upkeep

    async def flaky(work: Any, *, write: bool = True) -> Any:
        nonlocal troubles
        if ran and write and troubles:
            troubles -= 1
            raise StorageUnavailable("locked")
        return await upkeep(work, write=write)

    monkeypatch.setattr(kept.store, "upkeep", flaky)
    (job_id,) = add(kept, NewJob("sync"))
    drain(kept, clock, handler)
    assert troubles == 0
    assert len(ran) == 1
    assert get(kept, job_id).result == "well"


def test_the_runner_outlives_a_store_that_is_unavailable(
    kept: Kept, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job_id,) = add(kept, NewJob("sync"))
    troubles = 3
    upkeep = kept.store.upkeep

    async def flaky(work: Any, *, write: bool = True) -> Any:
        nonlocal troubles
        if troubles:
            troubles -= 1
            raise StorageUnavailable("locked")
        return await upkeep(work, write=write)

    monkeypatch.setattr(kept.store, "upkeep", flaky)

    async def handler(context: JobContext) -> None:
        return None

    async def main() -> None:
        async def is_done() -> bool:
            return (await job_now(kept, job_id)).state == "done"

        await run_while(kept, made(kept, clock, handler), lambda: until(is_done))

    asyncio.run(main())


def test_what_ended_long_ago_is_purged(kept: Kept, clock: Clock) -> None:
    async def handler(context: JobContext) -> None:
        if context.payload:
            raise JobFailed("no")

    done, parked = add(kept, NewJob("sync"), NewJob("sync", payload={"fail": True}))
    queued = add(kept, NewJob("sync", not_before_us=START + 10**15))[0]
    drain(kept, clock, handler, keep_done_seconds=60)
    clock.forward(59)
    drain(kept, clock, handler, keep_done_seconds=60)
    assert get(kept, done).state == "done"
    clock.forward(2)
    drain(kept, clock, handler, keep_done_seconds=60)
    assert kept.read(lambda reader: reader.jobs.get(done)) is None
    assert get(kept, parked).state == "parked"
    assert get(kept, queued).state == "queued"
    clock.forward(31 * 86_400)
    drain(kept, clock, handler, keep_done_seconds=60)
    assert kept.read(lambda reader: reader.jobs.get(parked)) is None


def test_a_kind_can_run_once_for_all_jobs_of_a_subject(kept: Kept, clock: Clock) -> None:
    ran: list[Any] = []

    async def handler(context: JobContext) -> None:
        ran.append((context.subject, dict(context.payload)))

    ids = add(
        kept,
        NewJob("sync", subject="a", payload={"n": 1}),
        NewJob("sync", subject="a", payload={"n": 2}),
    )
    drain(kept, clock, handler, by_subject=True)
    assert ran == [("a", {"n": 2})]
    assert {get(kept, job_id).state for job_id in ids} == {"done"}


def test_a_job_that_is_queued_meanwhile_is_started_at_once_when_woken(
    kept: Kept, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_IDLE_SECONDS", 30.0)
    done = asyncio.Event()

    async def handler(context: JobContext) -> None:
        done.set()

    ran = made(kept, clock, handler)

    async def work() -> None:
        await asyncio.sleep(0.05)
        await kept.store.write(EVERYTHING, lambda writer: writer.queue.add([NewJob("sync")]))
        ran.wake()
        async with asyncio.timeout(10):
            await done.wait()

    asyncio.run(run_while(kept, ran, work))


def test_what_a_key_has_queued_beyond_its_share_is_not_touched(kept: Kept, clock: Clock) -> None:
    runs: list[str] = []
    may_end = asyncio.Event()

    async def handler(context: JobContext) -> None:
        runs.append(str(context.key_id))
        await may_end.wait()

    jobs = [NewJob("sync", key_id=key) for key in ("ada", "ada", "bob")]
    first, *_ = add(kept, jobs[0])
    ran = made(kept, clock, handler, concurrency=8, per_key=1)

    async def work() -> None:
        await until(lambda: is_so(lambda: runs == ["ada"]))
        added = await kept.store.write(EVERYTHING, lambda writer: writer.queue.add(jobs[1:]))
        ran.wake()
        await until(lambda: is_so(lambda: runs == ["ada", "bob"]))
        waiting = await job_now(kept, added[0])
        assert (waiting.state, waiting.started_at_us) == ("queued", None)
        may_end.set()
        await until(lambda: is_so(lambda: runs == ["ada", "bob", "ada"]))

    asyncio.run(run_while(kept, ran, work))
    assert get(kept, first).state == "done"


def test_what_a_key_queued_before_the_start_takes_its_share_and_no_more(
    kept: Kept, clock: Clock
) -> None:
    runs: list[str] = []
    may_end = asyncio.Event()

    async def handler(context: JobContext) -> None:
        runs.append(str(context.key_id))
        await may_end.wait()

    add(kept, *(NewJob("sync", key_id=key) for key in (*["ada"] * 6, "bob")))
    ran = made(kept, clock, handler, concurrency=4, per_key=2)

    async def work() -> None:
        await until(lambda: is_so(lambda: "bob" in runs))
        assert sorted(runs) == ["ada", "ada", "bob"]
        may_end.set()
        await until(lambda: is_so(lambda: len(runs) == 7))

    asyncio.run(run_while(kept, ran, work))


async def is_so(holds: Callable[[], bool]) -> bool:
    return holds()
