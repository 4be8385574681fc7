"""Schedules: at the times an expression names, once, whoever is alive."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.drivers.engines import backend_of
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import InvalidArgument, StorageUnavailable
from zibaldone.jobs import schedule
from zibaldone.jobs.schedule import Scheduler, new_schedule, next_run_us
from zibaldone.limits import Limits
from zibaldone.model.job import Job, Schedule
from zibaldone.store.port import Reader


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


START = us("2027-03-01 12:07:30")
QUARTER = 15 * 60 * 1_000_000


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/15 * * * *", "2027-03-01 12:15:00"),
        ("0 3 * * *", "2027-03-02 03:00:00"),
        ("0 3 * * MON-FRI", "2027-03-02 03:00:00"),
        ("30 6 1 1 *", "2028-01-01 06:30:00"),
        ("0 0 29 2 *", "2028-02-29 00:00:00"),
        ("7 12 * * *", "2027-03-02 12:07:00"),
    ],
)
def test_the_next_run_in_utc(cron: str, expected: str) -> None:
    assert next_run_us(cron, START) == us(expected)


def test_a_run_is_after_the_time_it_is_asked_for() -> None:
    assert next_run_us("*/15 * * * *", us("2027-03-01 12:15:00")) == us("2027-03-01 12:30:00")


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", "it must have five fields"),
        ("* * * *", "it must have five fields"),
        ("* * * * * *", "it must have five fields"),
        ("@daily", "it must have five fields"),
        ("61 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * 9", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("a b c d e", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 31 2,4 *", "bad day-of-month"),
        ("0 0 L/L * *", "bad"),
        (f"{'9' * 150} * * * *", "bad minute"),
    ],
)
def test_what_is_not_an_expression_is_refused_with_the_reason(cron: str, why: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        next_run_us(cron, START)
    assert why in refused.value.message
    assert "'*/15 * * * *'" in refused.value.message
    assert refused.value.details["field"] == "cron"


def test_an_endless_expression_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at most 200 characters"):
        next_run_us(",".join(["1"] * 200_000) + " * * * *", START)


class Clock:
    def __init__(self) -> None:
        self.now_us = START

    def __call__(self) -> int:
        return self.now_us


QUARTERLY = new_schedule("quarterly", "*/15 * * * *", "sync", payload={"a": 1}, after_us=START)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def scheduler(kept: Kept, clock: Clock, *schedules: Schedule) -> Scheduler:
    made = Scheduler(kept.store, schedules, clock=clock)
    asyncio.run(made.put())
    return made


def jobs(kept: Kept, namespace: str = "default") -> list[Job]:
    def whole(reader: Reader) -> list[Job]:
        found = (reader.jobs.get(job.job_id) for job in reader.jobs.page(limit=100))
        return [job for job in found if job is not None]

    return kept.read(whole, Tenant(namespace))


def finish_all(kept: Kept, now_us: int) -> int:
    def finish(upkeep: object) -> int:
        queue = upkeep.queue  # type: ignore[attr-defined]
        leases = queue.lease("sync", limit=99, now_us=now_us, until_us=now_us + 9, owner="x")
        return len(queue.finish(leases, now_us=now_us))

    return kept.upkeep(finish)


def test_a_store_that_is_away_at_the_start_does_not_end_it(
    kept: Kept, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def put() -> None:
        asked.append("put")
        if len(asked) == 1:
            raise StorageUnavailable("away")
        asyncio.current_task().cancel()  # type: ignore[union-attr]

    made = Scheduler(kept.store, [QUARTERLY], clock=clock)
    monkeypatch.setattr(made, "put", put)
    monkeypatch.setattr(schedule, "_LOOK_SECONDS", 0.0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(made.run())
    assert asked == ["put", "put"]


def test_a_run_is_queued_when_its_time_comes_and_not_before(kept: Kept, clock: Clock) -> None:
    made = scheduler(kept, clock, QUARTERLY)
    assert asyncio.run(made.tick()) == []
    clock.now_us = us("2027-03-01 12:15:00")
    assert asyncio.run(made.tick()) == ["quarterly"]
    assert asyncio.run(made.tick()) == []
    (job,) = jobs(kept)
    assert (job.kind, job.payload, job.state) == ("sync", {"a": 1}, "queued")
    (schedule,) = kept.upkeep(lambda upkeep: upkeep.schedules.all())
    assert schedule.next_run_at_us == us("2027-03-01 12:30:00")
    assert schedule.last_run_at_us == clock.now_us


def test_whoever_waits_for_runs_is_told(kept: Kept, clock: Clock) -> None:
    runs: list[str] = []
    made = Scheduler(kept.store, [QUARTERLY], on_run=lambda: runs.append("run"), clock=clock)
    asyncio.run(made.put())
    asyncio.run(made.tick())
    assert runs == []
    clock.now_us += QUARTER
    asyncio.run(made.tick())
    assert runs == ["run"]


def test_runs_that_were_missed_are_made_up_for_by_one(kept: Kept, clock: Clock) -> None:
    made = scheduler(kept, clock, QUARTERLY)
    clock.now_us += 50 * QUARTER
    assert asyncio.run(made.tick()) == ["quarterly"]
    assert asyncio.run(made.tick()) == []
    assert len(jobs(kept)) == 1


def test_a_run_that_takes_long_is_not_joined_by_the_next(kept: Kept, clock: Clock) -> None:
    made = scheduler(kept, clock, QUARTERLY)
    for _ in range(3):
        clock.now_us += QUARTER
        assert asyncio.run(made.tick()) == ["quarterly"]
    assert len(jobs(kept)) == 1
    assert finish_all(kept, clock.now_us) == 1
    clock.now_us += QUARTER
    asyncio.run(made.tick())
    assert len(jobs(kept)) == 2


def test_a_restart_keeps_the_next_run(kept: Kept, clock: Clock) -> None:
    """Servers that are restarted more often than a schedule runs must not put it off for ever."""
    scheduler(kept, clock, QUARTERLY)
    clock.now_us += QUARTER
    again = new_schedule("quarterly", "*/15 * * * *", "sync", after_us=clock.now_us)
    made = scheduler(kept, clock, again)
    assert asyncio.run(made.tick()) == ["quarterly"]


def test_a_clock_that_was_ahead_does_not_silence_a_schedule(kept: Kept, clock: Clock) -> None:
    made = scheduler(kept, clock, QUARTERLY)
    clock.now_us += 40_000 * QUARTER
    assert asyncio.run(made.tick()) == ["quarterly"]
    finish_all(kept, clock.now_us)
    clock.now_us = START
    assert asyncio.run(made.tick()) == []
    clock.now_us = us("2027-03-01 12:15:00")
    assert asyncio.run(made.tick()) == ["quarterly"]


def test_a_stored_expression_that_is_of_no_use_stops_no_other(
    kept: Kept, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Schedule("a-broken", "61 * * * *", "sync", "default", {}, START)
    made = scheduler(kept, clock, broken, QUARTERLY)
    clock.now_us += QUARTER
    assert asyncio.run(made.tick()) == ["quarterly"]
    assert "schedule a-broken does not run" in caplog.text


def test_a_run_is_of_the_schedules_namespace(kept: Kept, clock: Clock) -> None:
    mine = new_schedule("mine", "*/15 * * * *", "sync", namespace="home", after_us=START)
    made = scheduler(kept, clock, mine)
    clock.now_us += QUARTER
    asyncio.run(made.tick())
    assert len(jobs(kept, "home")) == 1
    assert jobs(kept) == []


def test_processes_that_look_at_once_queue_one_run(data: Path) -> None:
    clock = Clock()
    stores = [backend_of(data).open(Limits()) for _ in range(3)]
    made = [Scheduler(store, [QUARTERLY], clock=clock) for store in stores]
    asyncio.run(made[0].put())
    kept = Kept(stores[0], Limits())
    try:
        for number in range(1, 11):
            clock.now_us = START + number * QUARTER
            with ThreadPoolExecutor(3) as threads:
                names = list(threads.map(lambda one: asyncio.run(one.tick()), made))
            assert sorted(names, key=len) == [[], [], ["quarterly"]]
            assert finish_all(kept, clock.now_us) == 1
    finally:
        for store in stores:
            store.close()


def test_it_runs_until_it_is_cancelled(kept: Kept) -> None:
    every_minute = new_schedule("m", "* * * * *", "sync", after_us=0)

    async def main() -> None:
        has_run = asyncio.Event()
        made = Scheduler(kept.store, [every_minute], on_run=has_run.set)
        running = asyncio.create_task(made.run())
        async with asyncio.timeout(10):
            await has_run.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
