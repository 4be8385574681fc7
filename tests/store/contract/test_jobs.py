"""The queue: what is added is done, by one worker at a time, whatever happens to workers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.server import clean_environment
from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.limits import JOB_BACKOFF_SECONDS_MAX, Limits
from zibaldone.model.job import (
    VECTORS,
    Job,
    LeasedJob,
    NewJob,
    Progress,
    Schedule,
    Setback,
    new_job_id,
    new_lease_owner,
)
from zibaldone.store.upkeep import QueueUpkeep, Upkeep

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
LEASE = 20 * SECOND
HOME = Tenant(namespace="home")
AWAY = Tenant(namespace="away")


class Jobs:
    """The queue of a store, called the way a worker calls it."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def add(self, *jobs: NewJob, tenant: Tenant = EVERYTHING) -> list[str]:
        return self.kept.write(lambda writer: writer.queue.add(jobs), tenant)

    def sync(self, tenant: Tenant = EVERYTHING, **more: Any) -> str:
        return self.add(NewJob("sync", **{"created_at_us": NOW, **more}), tenant=tenant)[0]

    def get(self, job_id: str, tenant: Tenant = EVERYTHING) -> Job:
        job = self.look(job_id, tenant)
        assert job is not None
        return job

    def look(self, job_id: str, tenant: Tenant = EVERYTHING) -> Job | None:
        return self.kept.read(lambda reader: reader.jobs.get(job_id), tenant)

    def page(self, tenant: Tenant = EVERYTHING, **more: Any) -> list[Job]:
        arguments = {"limit": 100, **more}
        return self.kept.read(lambda reader: reader.jobs.page(**arguments), tenant)

    def cancel(self, job_id: str, tenant: Tenant = EVERYTHING) -> Job | None:
        return self.kept.write(lambda writer: writer.queue.cancel(job_id, NOW), tenant)

    def retry(self, job_id: str, tenant: Tenant = EVERYTHING) -> Job | None:
        return self.kept.write(lambda writer: writer.queue.retry(job_id), tenant)

    def run(self, work: Callable[[QueueUpkeep], Any]) -> Any:
        return self.kept.upkeep(lambda upkeep: work(upkeep.queue))

    def lease(
        self,
        kind: str = "sync",
        *,
        at: int = NOW,
        limit: int = 10,
        by_subject: bool = False,
        running_max: int | None = None,
        per_key: int | None = None,
    ) -> list[LeasedJob]:
        leased: list[LeasedJob] = self.run(
            lambda queue: queue.lease(
                kind,
                limit=limit,
                now_us=at,
                until_us=at + LEASE,
                owner=new_lease_owner(),
                by_subject=by_subject,
                running_max=running_max,
                per_key=per_key,
            )
        )
        return leased

    def finish(self, leases: list[LeasedJob]) -> Any:
        return self.run(lambda queue: queue.finish(leases, now_us=NOW))

    def retry_later(self, setback: Setback) -> Any:
        return self.run(lambda queue: queue.retry([setback], now_us=NOW))

    def pending(self, kind: str, through_us: int) -> Any:
        return self.run(lambda queue: queue.pending(kind, through_us, now_us=NOW + 100))

    def lease_one(self, kind: str = "sync", **more: Any) -> LeasedJob:
        (lease,) = self.lease(kind, **more)
        return lease

    def is_due(self, kind: str = "sync", at: int = NOW, per_key: int | None = None) -> bool:
        return self.kept.upkeep(
            lambda upkeep: upkeep.queue.has_due(
                kind, now_us=at, until_us=at + LEASE, per_key=per_key
            ),
            write=False,
        )


@pytest.fixture
def jobs(kept: Kept) -> Jobs:
    return Jobs(kept)


@pytest.fixture
def elsewhere(backend: Backend, kept: Kept) -> Iterator[Jobs]:
    """The same store, opened once more, as by another process."""
    del kept
    store = backend.open(Limits())
    yield Jobs(Kept(store, Limits()))
    store.close()


class TestAdding:
    def test_a_job_is_there_as_it_was_added(self, jobs: Jobs) -> None:
        job_id = jobs.sync(subject="shop", payload={"full": True}, not_before_us=5)
        assert jobs.get(job_id) == Job(
            job_id=job_id,
            kind="sync",
            state="queued",
            subject="shop",
            created_at_us=NOW,
            not_before_us=5,
            started_at_us=None,
            finished_at_us=None,
            attempts=0,
            crashes=0,
            cancel_requested=False,
            progress=None,
            payload={"full": True},
            result=None,
            error=None,
        )

    def test_a_write_that_fails_leaves_no_job(self, jobs: Jobs) -> None:
        def fail(writer: Any) -> None:
            writer.queue.add([NewJob("sync")])
            raise RuntimeError("after adding")

        with pytest.raises(RuntimeError):
            jobs.kept.write(fail)
        assert jobs.page() == []

    def test_ids_sort_by_time_and_differ(self) -> None:
        ids = [new_job_id() for _ in range(2_000)]
        assert len(set(ids)) == len(ids)
        times = [job_id[:11] for job_id in ids]
        assert times == sorted(times)

    def test_a_unique_key_stands_for_one_active_job(self, jobs: Jobs) -> None:
        first = jobs.sync(unique_key="shop")
        assert jobs.sync(unique_key="shop") == first
        lease = jobs.lease_one()
        assert jobs.sync(unique_key="shop") == first
        assert len(jobs.page()) == 1
        jobs.finish([lease])
        assert jobs.sync(unique_key="shop") != first

    def test_a_unique_key_is_of_its_kind_and_namespace(self, jobs: Jobs) -> None:
        ids = {
            jobs.sync(unique_key="x"),
            jobs.sync(HOME, unique_key="x"),
            jobs.add(NewJob("other", unique_key="x"))[0],
            jobs.sync(unique_key="y"),
            jobs.sync(),
            jobs.sync(),
        }
        assert len(ids) == 6

    def test_a_page_is_newest_first_and_goes_on_after_an_id(self, jobs: Jobs) -> None:
        ids = [f"{number:026x}" for number in range(5)]
        jobs.add(*(NewJob("sync", job_id=job_id) for job_id in ids))
        assert [job.job_id for job in jobs.page(limit=2)] == ids[:2:-1]
        assert [job.job_id for job in jobs.page(after=ids[2])] == [ids[1], ids[0]]
        assert [job.job_id for job in jobs.page(after=f"{2:026x}0")] == ids[2::-1]

    def test_a_page_can_be_of_a_kind_or_state(self, jobs: Jobs) -> None:
        one, two = jobs.sync(), jobs.add(NewJob("other"))[0]
        jobs.lease_one()
        assert [job.job_id for job in jobs.page(kind="other")] == [two]
        assert [job.job_id for job in jobs.page(state="running")] == [one]
        assert jobs.page(kind="other", state="running") == []

    def test_lists_and_heads_do_without_payload_and_result(self, jobs: Jobs) -> None:
        job_id = jobs.sync(payload={"long": "text"})
        leases = jobs.lease()
        jobs.run(lambda queue: queue.finish(leases, now_us=NOW, result={"rows": 3}))
        whole = jobs.get(job_id)
        assert (whole.payload, whole.result) == ({"long": "text"}, {"rows": 3})
        head = jobs.kept.read(lambda reader: reader.jobs.head(job_id), EVERYTHING)
        assert head == replace(whole, payload={}, result=None)
        assert jobs.page() == jobs.page(state="done") == [head]


class TestLeasing:
    def test_the_oldest_come_first_and_no_more_than_wanted(self, jobs: Jobs) -> None:
        ids = jobs.add(*(NewJob("sync") for _ in range(3)))
        assert [lease.job_id for lease in jobs.lease(limit=2)] == ids[:2]
        assert [lease.job_id for lease in jobs.lease(limit=2)] == ids[2:]
        assert jobs.lease() == []

    def test_namespaces_take_turns_however_much_one_has_queued(self, jobs: Jobs) -> None:
        many = [jobs.sync(tenant=AWAY) for _ in range(20)]
        first, second = jobs.sync(tenant=HOME), jobs.sync(tenant=HOME)
        assert [job.job_id for job in jobs.lease(limit=3)] == [*many[:2], first]
        assert [job.job_id for job in jobs.lease(limit=2)] == [many[2], second]
        assert [job.job_id for job in jobs.lease(limit=30)] == many[3:]

    def test_more_namespaces_than_there_is_room_for(self, jobs: Jobs) -> None:
        added = [jobs.sync(tenant=Tenant(namespace=f"n{9 - number}")) for number in range(8)]
        later = jobs.sync(tenant=Tenant(namespace="n9"))
        taken = [job.job_id for _ in range(3) for job in jobs.lease(limit=3)]
        assert taken == [*added, later]

    def test_a_subject_that_changes_often_leaves_others_their_turn(self, jobs: Jobs) -> None:
        for number in range(20):
            jobs.sync(tenant=AWAY, subject=str(number))
        waits = jobs.sync(tenant=HOME, subject="0")
        leased = jobs.lease(limit=2, by_subject=True)
        assert [job.namespace for job in leased] == ["away", "home"]
        assert leased[1].job_id == waits

    def test_a_lease_has_what_the_work_needs(self, jobs: Jobs) -> None:
        tenant = Tenant("home", "team/")
        job_id = jobs.sync(tenant, subject="s", payload={"a": [1]})
        lease = jobs.lease_one()
        assert (lease.job_id, lease.namespace, lease.prefix) == (job_id, "home", "team/")
        assert (lease.kind, lease.subject, lease.payload) == ("sync", "s", {"a": [1]})
        assert (lease.attempts, lease.crashes, lease.keys) == (0, 0, (lease.job_key,))
        job = jobs.get(job_id, tenant)
        assert (job.state, job.started_at_us) == ("running", NOW)

    def test_other_kinds_are_left_alone(self, jobs: Jobs) -> None:
        jobs.sync()
        assert jobs.lease("other") == []
        assert not jobs.is_due("other")

    def test_a_job_waits_for_its_time(self, jobs: Jobs) -> None:
        jobs.sync(not_before_us=NOW + 5)
        assert not jobs.is_due()
        assert jobs.lease() == []
        assert jobs.is_due(at=NOW + 5)
        assert len(jobs.lease(at=NOW + 5)) == 1

    def test_a_job_far_ahead_waits_however_far(self, jobs: Jobs) -> None:
        """Only a back-off is bounded; whoever adds a job may name any time."""
        jobs.sync(not_before_us=NOW + 10 * 365 * 86_400 * SECOND)
        assert not jobs.is_due()
        assert jobs.lease() == []

    def test_no_more_run_than_the_kind_allows(self, jobs: Jobs, elsewhere: Jobs) -> None:
        jobs.add(*(NewJob("sync") for _ in range(5)))
        leases = jobs.lease(running_max=2)
        assert len(leases) == 2
        assert elsewhere.lease(running_max=2) == []
        jobs.run(lambda queue: queue.finish(leases[:1], now_us=NOW))
        assert len(elsewhere.lease(running_max=2)) == 1

    def test_a_dead_workers_lease_does_not_count_as_running(self, jobs: Jobs) -> None:
        jobs.add(*(NewJob("sync") for _ in range(2)))
        jobs.lease_one(limit=1)
        assert len(jobs.lease(at=NOW + LEASE, running_max=1)) == 1

    def test_a_lease_runs_out(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        jobs.lease_one()
        assert not jobs.is_due(at=NOW + LEASE - 1)
        assert jobs.lease(at=NOW + LEASE - 1) == []
        assert jobs.is_due(at=NOW + LEASE)
        lease = jobs.lease_one(at=NOW + LEASE)
        assert (lease.job_id, lease.crashes, lease.attempts) == (job_id, 1, 0)

    def test_a_renewed_lease_holds_longer(self, jobs: Jobs) -> None:
        jobs.sync()
        lease = jobs.lease_one()
        assert jobs.run(lambda queue: queue.renew([lease], NOW + 2 * LEASE)) == {
            lease.job_key: False
        }
        assert jobs.lease(at=NOW + LEASE) == []
        assert len(jobs.lease(at=NOW + 2 * LEASE)) == 1

    def test_a_lease_from_a_clock_that_was_ahead_has_run_out(self, jobs: Jobs) -> None:
        jobs.sync()
        jobs.lease_one(at=NOW + 365 * 86_400 * SECOND)
        assert jobs.is_due()
        assert len(jobs.lease()) == 1

    def test_a_clock_that_steps_back_a_little_takes_nothing_from_a_worker(self, jobs: Jobs) -> None:
        jobs.sync()
        jobs.lease_one()
        assert jobs.lease(at=NOW - LEASE + 1) == []

    def test_a_back_off_from_a_clock_that_was_ahead_is_over(self, jobs: Jobs) -> None:
        ahead = NOW + 365 * 86_400 * SECOND
        jobs.sync()
        lease = jobs.lease_one(at=ahead)
        setback = Setback(lease, "no", not_before_us=ahead + SECOND)
        jobs.run(lambda queue: queue.retry([setback], now_us=ahead))
        assert jobs.is_due()
        assert len(jobs.lease()) == 1

    def test_a_back_off_as_long_as_may_be_is_kept(self, jobs: Jobs) -> None:
        jobs.sync()
        end = NOW + int(JOB_BACKOFF_SECONDS_MAX * SECOND)
        setback = Setback(jobs.lease_one(), "no", not_before_us=end)
        jobs.retry_later(setback)
        assert not jobs.is_due()
        assert jobs.lease(at=end - 1) == []
        assert len(jobs.lease(at=end)) == 1


class TestSubjects:
    def test_the_newest_stands_for_the_others(self, jobs: Jobs) -> None:
        jobs.sync(subject="a", payload={"n": 1})
        jobs.sync(subject="b")
        newest = jobs.sync(subject="a", payload={"n": 2})
        a, b = jobs.lease(by_subject=True)
        assert (a.job_id, a.payload, len(a.keys)) == (newest, {"n": 2}, 2)
        assert b.keys == (b.job_key,)
        jobs.run(lambda queue: queue.finish([a], now_us=NOW, is_kept=False))
        assert [job.subject for job in jobs.page()] == ["b"]

    def test_what_is_added_during_a_lease_is_another_job(self, jobs: Jobs) -> None:
        jobs.sync(subject="a")
        lease = jobs.lease_one(by_subject=True)
        later = jobs.sync(subject="a")
        assert jobs.lease(by_subject=True) == [], "one worker at a time has the subject"
        jobs.run(lambda queue: queue.finish([lease], now_us=NOW, is_kept=False))
        assert jobs.lease_one(by_subject=True).job_id == later

    def test_jobs_without_a_subject_are_not_merged(self, jobs: Jobs) -> None:
        jobs.sync()
        jobs.sync()
        assert len(jobs.lease(by_subject=True)) == 2

    def test_kinds_that_do_not_merge_run_each_job(self, jobs: Jobs) -> None:
        jobs.sync(subject="a")
        jobs.sync(subject="a")
        assert len(jobs.lease()) == 2

    def test_a_dead_worker_leaves_the_whole_subject_to_the_next(self, jobs: Jobs) -> None:
        jobs.sync(subject="a")
        jobs.sync(subject="a")
        jobs.lease_one(by_subject=True)
        jobs.sync(subject="a")
        lease = jobs.lease_one(by_subject=True, at=NOW + LEASE)
        assert len(lease.keys) == 3

    def test_a_subject_whose_older_job_waits_is_due_with_a_new_one(self, jobs: Jobs) -> None:
        jobs.sync(subject="a")
        setback = Setback(jobs.lease_one(by_subject=True), "no", not_before_us=NOW + SECOND)
        jobs.retry_later(setback)
        assert jobs.lease(by_subject=True) == []
        jobs.sync(subject="a")
        assert len(jobs.lease_one(by_subject=True).keys) == 2

    def test_namespaces_do_not_merge(self, jobs: Jobs) -> None:
        jobs.sync(subject="a", payload={"of": "here"})
        jobs.sync(AWAY, subject="a", payload={"of": "away"})
        newer = jobs.sync(subject="a", payload={"of": "here again"})
        leases = jobs.lease(by_subject=True)
        assert [(lease.namespace, lease.payload["of"], len(lease.keys)) for lease in leases] == [
            (EVERYTHING.namespace, "here again", 2),
            (AWAY.namespace, "away", 1),
        ]
        assert leases[0].job_id == newer

    def test_a_lease_holds_up_no_other_namespace(self, jobs: Jobs) -> None:
        jobs.sync(subject="a")
        jobs.lease_one(by_subject=True)
        jobs.sync(AWAY, subject="a")
        assert jobs.lease_one(by_subject=True).namespace == AWAY.namespace

    def test_a_dead_worker_leaves_no_other_namespace_to_the_next(self, jobs: Jobs) -> None:
        jobs.sync(subject="a")
        jobs.lease_one(by_subject=True)
        jobs.sync(AWAY, subject="a")
        lease = jobs.lease_one(by_subject=True, at=NOW + LEASE)
        assert (lease.namespace, len(lease.keys)) == (EVERYTHING.namespace, 1)

    def test_ended_jobs_are_forgotten_in_their_namespace_only(self, jobs: Jobs) -> None:
        here, there = jobs.sync(subject="a"), jobs.sync(AWAY, subject="a")
        for tenant, job_id in ((EVERYTHING, here), (AWAY, there)):
            jobs.cancel(job_id, tenant)
        jobs.run(lambda queue: queue.forget_ended("sync", [(EVERYTHING.namespace, "a")]))
        assert jobs.look(here) is None
        assert jobs.get(there, AWAY).state == "cancelled"


class TestOutcomes:
    def test_done_with_a_result(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        held = jobs.run(lambda queue: queue.finish([lease], now_us=NOW + 1, result={"rows": 3}))
        assert held == {lease.job_key}
        job = jobs.get(job_id)
        assert (job.state, job.result, job.finished_at_us) == ("done", {"rows": 3}, NOW + 1)
        assert not jobs.is_due(at=NOW + 10 * LEASE)

    def test_a_failed_attempt_is_counted_and_comes_back(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        for attempts in (1, 2):
            lease = jobs.lease_one(at=NOW + attempts * SECOND)
            assert lease.attempts == attempts - 1
            setback = Setback(lease, "refused", NOW + (attempts + 1) * SECOND)
            jobs.retry_later(setback)
            job = jobs.get(job_id)
            assert (job.state, job.attempts, job.error) == ("queued", attempts, "refused")
        assert jobs.lease() == []

    def test_waiting_is_not_counted(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        setback = Setback(jobs.lease_one(), "unavailable", NOW + SECOND)
        jobs.run(lambda queue: queue.wait([setback], now_us=NOW))
        assert (jobs.get(job_id).attempts, jobs.get(job_id).error) == (0, "unavailable")
        assert jobs.lease() == []
        assert jobs.lease_one(at=NOW + SECOND).attempts == 0

    def test_parked_stays_until_it_is_retried(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        setback = Setback(jobs.lease_one(), "hopeless")
        jobs.run(lambda queue: queue.park([setback], now_us=NOW + 1))
        job = jobs.get(job_id)
        assert (job.state, job.error, job.attempts) == ("parked", "hopeless", 1)
        assert job.finished_at_us == NOW + 1
        assert not jobs.is_due(at=NOW + 100 * LEASE)
        retried = jobs.retry(job_id)
        assert retried is not None
        assert (retried.state, retried.attempts, retried.error) == ("queued", 0, None)
        assert retried.finished_at_us is None
        assert jobs.lease_one().attempts == 0

    def test_released_it_is_due_at_once(self, jobs: Jobs) -> None:
        jobs.sync()
        setback = Setback(jobs.lease_one(), "no", NOW)
        jobs.retry_later(setback)
        lease = jobs.lease_one()
        jobs.run(lambda queue: queue.release([lease], now_us=NOW))
        lease = jobs.lease_one()
        assert lease.attempts == 1
        jobs.run(lambda queue: queue.release([lease], now_us=NOW, has_progressed=True))
        assert jobs.lease_one().attempts == 0

    def test_progress_is_seen(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        assert jobs.run(lambda queue: queue.progress(lease, Progress(2, 5, "rows"))) is False
        assert jobs.get(job_id).progress == Progress(2.0, 5.0, "rows")
        jobs.run(lambda queue: queue.progress(lease, Progress(3)))
        assert jobs.get(job_id).progress == Progress(3.0, None, "")

    def test_pending_counts_what_is_to_be_done(self, jobs: Jobs) -> None:
        for at in (NOW, NOW + 1, NOW + 2):
            jobs.sync(created_at_us=at)
        leases = jobs.lease(limit=2)
        assert jobs.pending("sync", NOW + 1) == 2
        jobs.finish(leases[:1])
        assert jobs.pending("sync", NOW + 1) == 1
        assert jobs.pending("other", NOW + 1) == 0

    def test_a_job_from_the_future_is_pending(self, jobs: Jobs) -> None:
        jobs.add(NewJob("sync", created_at_us=NOW + 101))
        assert jobs.pending("sync", NOW + 1) == 1

    def test_old_jobs_are_purged_by_kind_and_state(self, jobs: Jobs) -> None:
        ids = jobs.add(*(NewJob("sync") for _ in range(4)), NewJob("other"))
        done, parked, cancelled, queued = jobs.lease(limit=4)
        (other,) = jobs.lease("other")
        jobs.run(lambda queue: queue.finish([done, other], now_us=NOW))
        jobs.run(lambda queue: queue.park([Setback(parked, "x")], now_us=NOW))
        jobs.run(lambda queue: queue.cancel([cancelled], now_us=NOW))
        jobs.run(lambda queue: queue.release([queued], now_us=NOW))

        def purge(state: Any, before_us: int) -> Any:
            return jobs.run(lambda queue: queue.purge("sync", state, before_us=before_us, limit=9))

        assert purge("done", NOW) == 0
        assert purge("done", NOW + 1) == 1
        assert purge("cancelled", NOW + 1) == 1
        assert purge("queued", NOW + 1) == 0
        assert {job.job_id for job in jobs.page()} == {ids[1], ids[3], ids[4]}


class TestOwners:
    """A worker that slept past its lease finds that it holds nothing."""

    ACTS: dict[str, Callable[[QueueUpkeep, LeasedJob], Any]] = {
        "renew": lambda queue, lease: queue.renew([lease], NOW + 9 * LEASE),
        "progress": lambda queue, lease: queue.progress(lease, Progress(1)),
        "release": lambda queue, lease: queue.release([lease], now_us=NOW),
        "finish": lambda queue, lease: queue.finish([lease], now_us=NOW),
        "forget": lambda queue, lease: queue.finish([lease], now_us=NOW, is_kept=False),
        "cancel": lambda queue, lease: queue.cancel([lease], now_us=NOW),
        "retry": lambda queue, lease: queue.retry([Setback(lease, "x")], now_us=NOW),
        "wait": lambda queue, lease: queue.wait([Setback(lease, "x")], now_us=NOW),
        "park": lambda queue, lease: queue.park([Setback(lease, "x")], now_us=NOW),
    }

    @pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
    def test_another_workers_job_is_not_touched(
        self, jobs: Jobs, act: Callable[[QueueUpkeep, LeasedJob], Any]
    ) -> None:
        job_id = jobs.sync()
        slept = jobs.lease_one()
        jobs.lease_one(at=NOW + LEASE)
        before = jobs.get(job_id)
        assert not jobs.run(lambda queue: act(queue, slept))
        assert jobs.get(job_id) == before

    @pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
    def test_a_job_that_has_ended_is_not_touched(
        self, jobs: Jobs, act: Callable[[QueueUpkeep, LeasedJob], Any]
    ) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        jobs.finish([lease])
        before = jobs.get(job_id)
        assert not jobs.run(lambda queue: act(queue, lease))
        assert jobs.get(job_id) == before

    def test_several_leases_at_once(self, jobs: Jobs) -> None:
        jobs.add(*(NewJob("sync") for _ in range(4)))
        mine, lost = jobs.lease(limit=2), jobs.lease(limit=2)
        lost = [replace(lease, owner="nobody") for lease in lost]
        held = jobs.run(lambda queue: queue.finish([*mine, *lost], now_us=NOW))
        assert held == {lease.job_key for lease in mine}


class TestCrashes:
    def test_they_are_counted_apart_from_failures(self, jobs: Jobs) -> None:
        jobs.sync()
        for number in range(8):
            lease = jobs.lease_one(at=NOW + number * LEASE)
            assert (lease.attempts, lease.crashes) == (0, number)

    def test_a_worker_that_reports_ends_the_row_of_crashes(self, jobs: Jobs) -> None:
        jobs.sync()
        jobs.lease_one()
        setback = Setback(jobs.lease_one(at=NOW + LEASE), "no", NOW + LEASE)
        jobs.retry_later(setback)
        lease = jobs.lease_one(at=NOW + LEASE)
        assert (lease.attempts, lease.crashes) == (1, 0)

    @pytest.mark.parametrize("by_subject", [False, True])
    def test_what_a_dead_worker_held_is_taken_up_one_by_one(
        self, jobs: Jobs, by_subject: bool
    ) -> None:
        """So that what kills a worker kills it alone, and the others are not suspected again."""
        for number in range(3):
            jobs.sync(subject=str(number))
        assert len(jobs.lease(by_subject=by_subject)) == 3
        jobs.sync(subject="new")
        at = NOW + LEASE
        taken = [jobs.lease(at=at, by_subject=by_subject) for _ in range(4)]
        assert [[lease.crashes for lease in leases] for leases in taken] == [[1], [1], [1], [0]]

    @pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
    def test_kill_minus_nine_in_the_middle(
        self, request: pytest.FixtureRequest, tmp_path: Path, jobs: Jobs
    ) -> None:
        """A process leases, says so, and is killed; its job is done by the next."""
        job_id = jobs.sync(payload={"n": 1})
        engine = request.node.callspec.params["backend"]
        code = f"""
import asyncio, sys, time
from pathlib import Path
from tests.store.backends import BACKENDS
from zibaldone.limits import Limits
store = BACKENDS[{engine!r}](Path({str(tmp_path)!r})).open(Limits())
def lease(upkeep):
    return upkeep.queue.lease("sync", limit=9, now_us={NOW}, until_us={NOW + LEASE}, owner="x")
print(len(asyncio.run(store.upkeep(lease))), flush=True)
time.sleep(600)
"""
        environment = {
            **clean_environment(),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        worker = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment
        )
        assert worker.stdout is not None
        try:
            assert worker.stdout.readline() == b"1\n"
        finally:
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            worker.stdout.close()
        assert jobs.get(job_id).state == "running"
        assert jobs.lease(at=NOW + LEASE - 1) == []
        lease = jobs.lease_one(at=NOW + LEASE)
        assert (lease.job_id, lease.payload, lease.crashes) == (job_id, {"n": 1}, 1)
        jobs.finish([lease])
        assert jobs.get(job_id).state == "done"


class TestCancelling:
    def test_queued_at_once(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        job = jobs.cancel(job_id)
        assert job is not None
        assert (job.state, job.finished_at_us) == ("cancelled", NOW)
        assert not jobs.is_due()

    def test_parked_at_once(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        setback = Setback(jobs.lease_one(), "x")
        jobs.run(lambda queue: queue.park([setback], now_us=NOW))
        job = jobs.cancel(job_id)
        assert job is not None
        assert (job.state, job.error) == ("cancelled", "x")

    def test_running_is_asked(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        job = jobs.cancel(job_id)
        assert job is not None
        assert (job.state, job.cancel_requested, job.finished_at_us) == ("running", True, None)
        assert jobs.run(lambda queue: queue.renew([lease], NOW + LEASE)) == {lease.job_key: True}
        assert jobs.run(lambda queue: queue.progress(lease, Progress(1))) is True
        assert jobs.run(lambda queue: queue.cancel([lease], now_us=NOW + 1)) == {lease.job_key}
        assert jobs.get(job_id).state == "cancelled"

    def test_a_job_that_is_done_first_is_done(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        jobs.cancel(job_id)
        jobs.run(lambda queue: queue.finish([lease], now_us=NOW, result=1))
        assert jobs.get(job_id).state == "done"
        job = jobs.cancel(job_id)
        assert job is not None
        assert job.state == "done"

    @pytest.mark.parametrize("outcome", ["release", "retry", "wait"])
    def test_a_job_to_be_cancelled_is_not_queued_again(self, jobs: Jobs, outcome: str) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        jobs.cancel(job_id)
        given: Any = lease if outcome == "release" else Setback(lease, "x")
        jobs.run(lambda queue: getattr(queue, outcome)([given], now_us=NOW + 1))
        job = jobs.get(job_id)
        assert (job.state, job.finished_at_us) == ("cancelled", NOW + 1)

    def test_one_whose_worker_died_is_cancelled_instead_of_taken_up(self, jobs: Jobs) -> None:
        job_id, other = jobs.add(NewJob("sync"), NewJob("sync"))
        jobs.lease_one(limit=1)
        jobs.cancel(job_id)
        assert jobs.lease_one(at=NOW + LEASE).job_id == other
        assert jobs.get(job_id).state == "cancelled"

    def test_a_cancelled_job_can_be_retried(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        jobs.cancel(job_id)
        job = jobs.retry(job_id)
        assert job is not None
        assert (job.state, job.cancel_requested) == ("queued", False)

    @pytest.mark.parametrize("state", ["running", "done"])
    def test_what_runs_or_is_done_is_not_retried(self, jobs: Jobs, state: str) -> None:
        job_id = jobs.sync()
        lease = jobs.lease_one()
        if state == "done":
            jobs.finish([lease])
        job = jobs.retry(job_id)
        assert job is not None
        assert job.state == state

    def test_a_waiting_job_can_be_retried_at_once(self, jobs: Jobs) -> None:
        job_id = jobs.sync()
        setback = Setback(jobs.lease_one(), "x", NOW + SECOND)
        jobs.retry_later(setback)
        assert jobs.lease() == []
        jobs.retry(job_id)
        assert len(jobs.lease()) == 1

    def test_a_job_is_not_retried_beside_another_of_its_unique_key(self, jobs: Jobs) -> None:
        first = jobs.sync(unique_key="x")
        jobs.cancel(first)
        jobs.sync(unique_key="x")
        job = jobs.retry(first)
        assert job is not None
        assert job.state == "cancelled"


class TestTenants:
    def test_another_namespaces_jobs_do_not_exist(self, jobs: Jobs) -> None:
        job_id = jobs.sync(HOME, unique_key="x")
        assert jobs.page(AWAY) == []
        assert jobs.look(job_id, AWAY) is None
        assert jobs.cancel(job_id, AWAY) is None
        assert jobs.retry(job_id, AWAY) is None
        assert jobs.get(job_id, HOME).state == "queued"
        assert jobs.sync(AWAY, unique_key="x") != job_id

    def test_a_folder_sees_the_jobs_that_were_added_in_it(self, jobs: Jobs) -> None:
        whole = jobs.sync(HOME)
        team = jobs.sync(Tenant("home", "team/"))
        part = jobs.sync(Tenant("home", "team/x/"))
        assert {job.job_id for job in jobs.page(HOME)} == {whole, team, part}
        assert {job.job_id for job in jobs.page(Tenant("home", "team/"))} == {team, part}
        assert {job.job_id for job in jobs.page(Tenant("home", "team/x/"))} == {part}
        assert jobs.page(Tenant("home", "other/")) == []
        assert jobs.look(whole, Tenant("home", "team/")) is None
        assert jobs.cancel(team, Tenant("home", "team/x/")) is None

    def test_a_job_about_a_document_goes_with_the_document(self, jobs: Jobs, kept: Kept) -> None:
        document = kept.create("team/plan", tenant=HOME)
        new = NewJob(VECTORS, subject=str(document.storage_key))
        (job_id,) = jobs.add(new, tenant=HOME)
        assert jobs.get(job_id, HOME).subject == "team/plan"
        assert jobs.get(job_id, Tenant("home", "team/")).subject == "team/plan"
        assert jobs.look(job_id, Tenant("home", "teams/")) is None
        assert jobs.look(job_id, AWAY) is None


class TestSeveralProcesses:
    def test_two_stores_lease_different_jobs(self, jobs: Jobs, elsewhere: Jobs) -> None:
        ids = jobs.add(*(NewJob("sync", subject=str(number % 70)) for number in range(200)))

        def drain(worker: Jobs) -> list[int]:
            keys: list[int] = []
            while leases := worker.lease(limit=3, by_subject=True):
                keys += [key for lease in leases for key in lease.keys]
                assert worker.finish(leases)
            return keys

        with ThreadPoolExecutor(2) as threads:
            here, there = threads.map(drain, (jobs, elsewhere))
        assert here
        assert there
        assert len(here) + len(there) == len({*here, *there}) == len(ids)

    def test_two_stores_add_one_job_under_a_unique_key(self, jobs: Jobs, elsewhere: Jobs) -> None:
        with ThreadPoolExecutor(2) as threads:
            ids = list(
                threads.map(
                    lambda number: (jobs, elsewhere)[number % 2].sync(unique_key=str(number // 8)),
                    range(80),
                )
            )
        assert len(set(ids)) == 10


class TestSchedules:
    NIGHTLY = Schedule("nightly", "0 3 * * *", "sync", "home", {"full": True}, NOW)

    def run(self, kept: Kept, work: Callable[[Upkeep], Any]) -> Any:
        return kept.upkeep(work)

    def test_they_are_kept_as_they_were_put(self, kept: Kept) -> None:
        self.run(kept, lambda upkeep: upkeep.schedules.put(self.NIGHTLY))
        assert self.run(kept, lambda upkeep: upkeep.schedules.all()) == [self.NIGHTLY]
        assert self.run(kept, lambda upkeep: upkeep.schedules.remove("nightly"))
        assert not self.run(kept, lambda upkeep: upkeep.schedules.remove("nightly"))
        assert self.run(kept, lambda upkeep: upkeep.schedules.all()) == []

    def test_putting_one_again_keeps_its_next_run_unless_its_times_change(self, kept: Kept) -> None:
        self.run(kept, lambda upkeep: upkeep.schedules.put(self.NIGHTLY))
        again = replace(self.NIGHTLY, next_run_at_us=NOW + 5, payload={})
        self.run(kept, lambda upkeep: upkeep.schedules.put(again))
        assert self.run(kept, lambda upkeep: upkeep.schedules.all()) == [
            replace(again, next_run_at_us=NOW)
        ]
        other = replace(again, cron="0 4 * * *")
        self.run(kept, lambda upkeep: upkeep.schedules.put(other))
        assert self.run(kept, lambda upkeep: upkeep.schedules.all()) == [other]

    def test_one_process_advances_it(self, kept: Kept) -> None:
        self.run(kept, lambda upkeep: upkeep.schedules.put(self.NIGHTLY))

        def advance(upkeep: Upkeep) -> bool:
            return upkeep.schedules.advance(
                "nightly", expected_us=NOW, next_run_at_us=NOW + 9, ran_at_us=NOW + 1
            )

        assert self.run(kept, advance)
        assert not self.run(kept, advance)
        (schedule,) = self.run(kept, lambda upkeep: upkeep.schedules.all())
        assert (schedule.next_run_at_us, schedule.last_run_at_us) == (NOW + 9, NOW + 1)


def test_jobs_survive_a_restart(backend: Backend) -> None:
    store = backend.open(Limits())
    (job_id,) = asyncio.run(
        store.write(EVERYTHING, lambda writer: writer.queue.add([NewJob("sync")]))
    )
    store.close()
    store = backend.open(Limits())
    jobs = Jobs(Kept(store, Limits()))
    assert jobs.get(job_id).state == "queued"
    assert jobs.lease_one().job_id == job_id
    store.close()


class TestOfOneKey:
    def test_a_job_keeps_whose_it_is_through_its_life(self, jobs: Jobs) -> None:
        job_id = jobs.sync(key_id="k1")
        unique = jobs.sync(key_id="k2", unique_key="u")
        assert jobs.get(job_id).key_id == "k1"
        assert jobs.get(unique).key_id == "k2"
        assert jobs.get(jobs.sync()).key_id is None
        assert {job.job_id: job.key_id for job in jobs.page()}[job_id] == "k1"
        leases = jobs.lease(limit=3)
        assert {lease.key_id for lease in leases} == {"k1", "k2", None}

    @pytest.mark.parametrize("by_subject", [False, True])
    def test_what_a_key_has_queued_beyond_its_share_stays_there(
        self, jobs: Jobs, elsewhere: Jobs, by_subject: bool
    ) -> None:
        first, second, third = (jobs.sync(key_id="k1", subject=name) for name in "abc")
        other, of_nobody = jobs.sync(key_id="k2", subject="d"), jobs.sync(subject="e")
        leases = jobs.lease(per_key=2, by_subject=by_subject, limit=4)
        assert {lease.job_id for lease in leases} == {first, second, other, of_nobody}
        for process in (jobs, elsewhere):
            assert not process.is_due(per_key=2)
            assert process.lease(per_key=2, by_subject=by_subject) == []
        jobs.finish([lease for lease in leases if lease.job_id == first])
        assert elsewhere.is_due(per_key=2)
        assert elsewhere.lease_one(per_key=2, by_subject=by_subject).job_id == third

    def test_a_lease_that_ran_out_takes_no_share(self, jobs: Jobs) -> None:
        (first, second) = (jobs.sync(key_id="k1") for _ in range(2))
        assert jobs.lease_one(per_key=1).job_id == first
        later = NOW + LEASE + 1
        assert jobs.is_due(at=later, per_key=1)
        assert jobs.lease_one(at=later, per_key=1).job_id == first
        assert jobs.lease(at=later, per_key=1) == []
        assert jobs.lease_one(at=later, per_key=2).job_id == second

    def test_what_is_open_is_counted_by_key_and_namespace_up_to_a_limit(self, jobs: Jobs) -> None:
        mine = [jobs.sync(key_id="k1") for _ in range(3)]
        jobs.sync(key_id="k2")
        jobs.sync()
        jobs.sync(HOME, key_id="k1")

        def count(tenant: Tenant = EVERYTHING, limit: int = 10) -> int:
            return jobs.kept.read(lambda reader: reader.jobs.open_of("k1", limit), tenant)

        assert (count(), count(HOME), count(AWAY), count(limit=2)) == (3, 1, 0, 2)
        jobs.cancel(mine[0])
        assert count() == 2
        jobs.lease(limit=1)
        assert count() == 2


def test_two_processes_that_lease_at_the_same_time_keep_to_the_bound(backend: Backend) -> None:
    """The second counts what the first has taken, though that is not committed yet."""
    stores = [backend.open(Limits()) for _ in range(2)]
    one, other = (Kept(store, Limits()) for store in stores)
    has_leased, may_commit = threading.Event(), threading.Event()

    def lease(upkeep: Upkeep) -> list[LeasedJob]:
        return upkeep.queue.lease(
            "sync", limit=2, now_us=NOW, until_us=NOW + LEASE, owner=new_lease_owner(),
            running_max=1,
        )  # fmt: skip

    def lease_slowly(upkeep: Upkeep) -> list[LeasedJob]:
        leased = lease(upkeep)
        has_leased.set()
        may_commit.wait(1)
        return leased

    try:
        for _ in range(2):
            Jobs(one).sync()
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(one.upkeep, lease_slowly)
            assert has_leased.wait(20)
            second = threads.submit(other.upkeep, lease)
            wait([second], timeout=0.5)  # it waits for the first, unless it counts without it
            may_commit.set()
            assert (len(first.result()), len(second.result())) == (1, 0)
    finally:
        for store in stores:
            store.close()
