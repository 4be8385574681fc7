"""Syncs as jobs: once for each source, with progress and a result, cancelled and scheduled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.posts import Posts, expected
from tests.pull.databases import SqliteFile, create_posts, insert_posts
from tests.pull.pulling import Pulling
from tests.store.backends import BACKENDS
from zibaldone.access.principal import Tenant
from zibaldone.jobs.runner import JobRunner
from zibaldone.jobs.schedule import run_due
from zibaldone.limits import Limits
from zibaldone.model.job import Job
from zibaldone.pull.job import SYNC, queue_sync, sync_job, sync_kind, sync_schedule
from zibaldone.pull.remove import remove_source
from zibaldone.store.upkeep import Source


@pytest.fixture(params=BACKENDS)
def pulling(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pulling]:
    database = SqliteFile(tmp_path)
    backend = BACKENDS[request.param](tmp_path)
    store = backend.open(Limits())
    made = Pulling(store, database)
    yield made
    made.close()
    store.close()
    backend.close()
    database.close()


@pytest.fixture
def posts(pulling: Pulling) -> Posts:
    made = Posts()
    create_posts(pulling.database)
    insert_posts(pulling.database, made.add(50))
    return made


def add(pulling: Pulling, **more: Any) -> Source:
    source_id = pulling.add(pulling.define(**more))
    (source,) = [
        s for s in pulling.kept.upkeep(lambda u: u.sources.all()) if s.source_id == source_id
    ]
    return source


def drain(pulling: Pulling) -> None:
    kind = sync_kind(pulling.store, pulling.destination, {})

    async def run() -> None:
        await JobRunner(pulling.store, {SYNC: kind}).drain()

    asyncio.run(run())


def job(pulling: Pulling, job_id: str) -> Job:
    found = pulling.kept.read(lambda reader: reader.jobs.get(job_id))
    assert found is not None
    return found


def test_a_sync_is_queued_once_and_tells_its_result(pulling: Pulling, posts: Posts) -> None:
    source = add(pulling, watermark="UpdatedAt")
    first = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    assert pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source)) == first
    assert pulling.kept.write(lambda writer: writer.queue.add([sync_job(source)])) == [first]
    drain(pulling)
    done = job(pulling, first)
    assert (done.state, done.subject) == ("done", "posts")
    assert (done.result["created"], done.result["failed"], done.result["rows"]) == (50, 0, 50)
    assert done.progress is not None
    assert (done.progress.done, done.progress.total) == (50, 50)
    assert pulling.contents() == expected(posts, has_native_times=False)
    counts = pulling.kept.read(lambda reader: reader.sources.counts())
    assert counts[1].documents == 50
    assert counts[1].last_sync_at_us is not None
    assert pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source)) != first


def test_a_sweep_that_would_delete_much_is_parked_with_the_way_out(
    pulling: Pulling, posts: Posts
) -> None:
    source = add(pulling)
    pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    drain(pulling)
    pulling.database.execute("DELETE FROM posts")
    refused = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    drain(pulling)
    parked = job(pulling, refused)
    assert parked.state == "parked"
    assert "--allow-deletes" in str(parked.error)
    allowed = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source, allow_deletes=True))
    drain(pulling)
    assert job(pulling, allowed).result["deleted"] == 50
    assert pulling.documents() == {}


def test_a_definition_that_does_not_fit_is_parked_at_once(pulling: Pulling, posts: Posts) -> None:
    source = add(pulling, watermark="Updated")
    failed = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    drain(pulling)
    parked = job(pulling, failed)
    assert parked.state == "parked"
    assert "Did you mean 'UpdatedAt'?" in str(parked.error)
    assert "INVALID_ARGUMENT" in str(parked.error)


def test_a_database_that_is_away_is_tried_again(pulling: Pulling, posts: Posts) -> None:
    source = add(pulling, url="sqlite:///absent-folder/absent.db")
    waiting = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    drain(pulling)
    found = job(pulling, waiting)
    assert (found.state, found.attempts) == ("queued", 1)
    assert "SOURCE_UNAVAILABLE" in str(found.error)


def test_a_source_that_was_removed(pulling: Pulling, posts: Posts) -> None:
    source = add(pulling)
    pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    drain(pulling)
    asyncio.run(
        remove_source(pulling.store, pulling.destination, source.source_id, "default", "posts")
    )
    assert pulling.documents() == {}
    assert [s.name for s in pulling.kept.upkeep(lambda upkeep: upkeep.sources.all())] == ["kb"]
    late = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))
    drain(pulling)
    assert "no source 'posts'" in str(job(pulling, late).error)
    number = min(posts.rows)
    pulling.kept.create(f"posts:{number}", "restored as a document of the built-in source")


def test_a_schedule_shares_its_run_with_others(pulling: Pulling, posts: Posts) -> None:
    source = add(pulling, schedule="* * * * *")
    schedule = sync_schedule(source.source_id, pulling.define(schedule="* * * * *"))
    assert schedule is not None
    assert schedule.name == "sync:posts"
    pulling.kept.upkeep(lambda upkeep: upkeep.schedules.put(schedule))
    due_us = schedule.next_run_at_us + 1
    assert pulling.kept.upkeep(lambda upkeep: run_due(upkeep, due_us)) == ["sync:posts"]
    (queued,) = pulling.kept.read(lambda reader: reader.jobs.page(kind=SYNC, limit=10))
    assert queued.subject == "posts"
    assert pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source)) == queued.job_id
    drain(pulling)
    assert job(pulling, queued.job_id).state == "done"


def test_a_job_that_is_cancelled_stops_between_blocks(pulling: Pulling, posts: Posts) -> None:
    source = add(pulling)
    job_id = pulling.kept.upkeep(lambda upkeep: queue_sync(upkeep, source))

    class Cancelling:
        """Somebody cancels the job when its first documents are stored."""

        def __getattr__(self, name: str) -> Any:
            call = getattr(pulling.destination, name)

            async def called(*arguments: Any) -> Any:
                result = await call(*arguments)
                if name == "write":
                    await pulling.store.write(
                        Tenant(), lambda writer: writer.queue.cancel(job_id, 1)
                    )
                    await asyncio.sleep(2)
                return result

            return called

    async def run() -> None:
        kind = sync_kind(pulling.store, Cancelling(), {})
        runner = asyncio.create_task(JobRunner(pulling.store, {SYNC: kind}).run())
        for _ in range(300):
            await asyncio.sleep(0.1)
            found = await pulling.store.read(Tenant(), lambda reader: reader.jobs.get(job_id))
            if found is not None and found.state not in ("queued", "running"):
                break
        runner.cancel()
        await asyncio.gather(runner, return_exceptions=True)

    insert_posts(pulling.database, posts.add(2_500))
    asyncio.run(run())
    assert job(pulling, job_id).state == "cancelled"
    assert 0 < len(pulling.documents()) < 2_550
    pulling.sync(pulling.define())
    assert pulling.contents() == expected(posts, has_native_times=False)
