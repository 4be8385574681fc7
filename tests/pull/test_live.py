"""Following sources: notifications of a real PostgreSQL, and polling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.drivers.postgres import PostgresServer
from tests.store.backends import BACKENDS
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.instant import now_us
from zibaldone.model.job import Job
from zibaldone.pull import registry
from zibaldone.pull.job import SYNC
from zibaldone.pull.live import LiveSources, SourceLag, channel_of, trigger_sql
from zibaldone.pull.registry import read_definitions
from zibaldone.store.port import Store, Writer

PATIENCE_SECONDS = 20.0


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    backend = BACKENDS[request.param](tmp_path)
    opened = backend.open(Limits())
    yield opened
    opened.close()
    backend.close()


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    url = postgres.database("live")
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute('CREATE TABLE "Posts" (id int PRIMARY KEY, body text)')
    return url


def table(url: str, **more: Any) -> dict[str, Any]:
    return {
        "url": url, "table": "Posts", "key": "id", "live": True, "document": {"body": "body"},
        **more,
    }  # fmt: skip


class Following:
    def __init__(self, store: Store, live: LiveSources) -> None:
        self.store = store
        self.live = live

    async def jobs(self) -> list[Job]:
        """Oldest first."""
        page = await self.store.read(
            Tenant(), lambda reader: reader.jobs.page(kind=SYNC, state=None, limit=50, after=None)
        )
        return page[::-1]

    async def finish(self) -> None:
        """What the job would do: a sync that begins and ends now."""
        ((source_id, at_us),) = [
            (record.source_id, now_us()) for record in await registry.all_records(self.store)
        ]

        def finish(upkeep: Any) -> None:
            leased = upkeep.queue.lease(
                SYNC, limit=9, now_us=at_us, until_us=at_us + 10**9, owner="x", running_max=9
            )
            upkeep.queue.finish(leased, now_us=at_us, result={})
            upkeep.sources.set_synced(source_id, at_us)

        await self.store.upkeep(finish)

    async def cancel(self) -> None:
        """As if the job had failed."""
        waiting = [job.job_id for job in await self.jobs() if job.state == "queued"]
        at_us = now_us()

        def cancel(writer: Writer) -> None:
            for job_id in waiting:
                writer.queue.cancel(job_id, at_us)

        await self.store.write(Tenant(), cancel)

    async def until(self, condition: Callable[[list[Job]], bool]) -> list[Job]:
        deadline_s = time.monotonic() + PATIENCE_SECONDS
        while not condition(jobs := await self.jobs()):
            assert time.monotonic() < deadline_s, jobs
            await asyncio.sleep(0.05)
        return jobs

    async def until_in_step(self) -> SourceLag:
        """Let it sync what was changed before it began, until nothing is left."""
        await self.until(lambda jobs: len(jobs) == 1)
        await self.finish()
        return await self.until_lag(lambda lag: lag.mode == "listening" and lag.seconds == 0)

    async def until_lag(self, condition: Callable[[SourceLag], bool]) -> SourceLag:
        deadline_s = time.monotonic() + PATIENCE_SECONDS
        while not (lags := self.live.lags()) or not condition(lags[0]):
            assert time.monotonic() < deadline_s, lags
            await asyncio.sleep(0.05)
        return lags[0]


@asynccontextmanager
async def following(
    store: Store, tables: dict[str, Any], environment: dict[str, str] | None = None
) -> AsyncIterator[Following]:
    await registry.reconcile(store, read_definitions(tables))
    live = LiveSources(store, environment or {})
    task = asyncio.create_task(live.run())
    try:
        yield Following(store, live)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_change_in_postgresql_adds_a_sync(store: Store, database: str) -> None:
    (definition,) = read_definitions({"posts": table(database)})

    async def scenario() -> None:
        async with following(store, {"posts": table(database)}) as run:
            quiet = await run.until_in_step()
            assert (quiet.is_late, quiet.problem) == (False, None)
            with psycopg.connect(database, autocommit=True) as raw:
                raw.execute(trigger_sql(definition).encode())
                raw.execute("INSERT INTO \"Posts\" VALUES (1, 'one'), (2, 'two')")
                jobs = await run.until(lambda jobs: len(jobs) == 2)
                assert (jobs[-1].subject, jobs[-1].state) == ("posts", "queued")
                assert (await run.until_lag(lambda lag: bool(lag.seconds))).seconds is not None
                raw.execute('UPDATE "Posts" SET body = body')
                raw.execute('DELETE FROM "Posts" WHERE id = 1')
                await asyncio.sleep(1)
                assert len(await run.jobs()) == 2, "one that waits is enough for all"
                await run.finish()
                await run.until_lag(lambda lag: lag.seconds == 0)
                raw.execute('TRUNCATE "Posts"')
                await run.until(lambda jobs: len(jobs) == 3)

    asyncio.run(scenario())


def test_a_change_during_a_sync_is_not_missed(store: Store, database: str) -> None:
    """The sync that runs has its snapshot already: another one has to come after it."""
    (definition,) = read_definitions({"posts": table(database)})

    async def scenario() -> None:
        async with following(store, {"posts": table(database)}) as run:
            await run.until(lambda jobs: len(jobs) == 1)
            ((source_id, began_us),) = [
                (record.source_id, now_us()) for record in await registry.all_records(store)
            ]
            until_us = began_us + 10**9
            leased = await store.upkeep(
                lambda upkeep: upkeep.queue.lease(
                    SYNC, limit=9, now_us=began_us, until_us=until_us, owner="x", running_max=9
                )
            )
            with psycopg.connect(database, autocommit=True) as raw:
                raw.execute(trigger_sql(definition).encode())
                raw.execute("INSERT INTO \"Posts\" VALUES (1, 'one')")
            await asyncio.sleep(1)
            assert len(await run.jobs()) == 1

            def finish(upkeep: Any) -> None:
                upkeep.queue.finish(leased, now_us=now_us(), result={})
                upkeep.sources.set_synced(source_id, began_us)

            await store.upkeep(finish)
            await run.until(lambda jobs: len(jobs) == 2)

    asyncio.run(scenario())


def test_a_database_that_notifies_all_the_time_does_not_keep_us_busy(
    store: Store, database: str
) -> None:
    flood = "SELECT count(pg_notify(%s, i::text)) FROM generate_series(1, 800000) i"

    async def check() -> None:
        async with following(store, {"posts": table(database)}) as live:
            await live.until_in_step()
            began_s = time.thread_time()
            async with await psycopg.AsyncConnection.connect(database, autocommit=True) as raw:
                await raw.execute(flood, [channel_of("posts")])
            await live.until(lambda jobs: len(jobs) == 2)
            await asyncio.sleep(1)
            assert time.thread_time() - began_s < 0.5, "all of them take more than a second"

    asyncio.run(check())


def test_the_queue_of_the_database_is_not_filled(store: Store, database: str) -> None:
    """What waits for us there would be in the way of everybody's commits."""
    flood = "SELECT count(pg_notify(%s, i || repeat('x', 7000))) FROM generate_series(1, 5000) i"

    async def check() -> None:
        async with following(store, {"posts": table(database)}) as live:
            await live.until_in_step()
            async with (
                asyncio.timeout(30),
                await psycopg.AsyncConnection.connect(database, autocommit=True) as raw,
            ):
                await raw.execute(flood, [channel_of("posts")])
                while True:
                    used = await raw.execute("SELECT pg_notification_queue_usage()")
                    if await used.fetchone() == (0.0,):
                        break
                    await asyncio.sleep(0.05)
                    await raw.execute("NOTIFY nobody")  # the server tidies up when it is used
            await live.until(lambda jobs: len(jobs) == 2)
            await live.until_lag(lambda lag: lag.mode == "listening" and lag.problem is None)

    asyncio.run(check())


def test_a_lost_connection_is_made_again(store: Store, database: str) -> None:
    async def scenario() -> None:
        async with following(store, {"posts": table(database)}) as run:
            await run.until(lambda jobs: len(jobs) == 1)
            await run.finish()
            await run.until_lag(lambda lag: lag.seconds == 0)
            with psycopg.connect(database, autocommit=True) as raw:
                raw.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'zibaldone' AND datname = 'live'"
                )
            # Whatever happened meanwhile was not heard, so the next thing is a sync.
            await run.until(lambda jobs: len(jobs) == 2)
            await run.finish()
            await run.until_lag(lambda lag: lag.seconds == 0 and not lag.is_late)

    asyncio.run(scenario())


def test_a_database_that_is_away_is_told_without_its_password(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    url = "postgresql://reader:${LIVE_PASSWORD}@127.0.0.1:1/posts"
    secret = {"LIVE_PASSWORD": "hunter-two"}

    async def scenario() -> None:
        async with following(store, {"posts": table(url)}, secret) as run:
            lag = await run.until_lag(lambda lag: lag.problem is not None)
            assert (lag.mode, lag.is_late) == ("listening", True)
            assert "hunter-two" not in repr(lag)

    asyncio.run(scenario())
    assert "hunter-two" not in caplog.text


def test_other_databases_are_polled(store: Store) -> None:
    tables = {"posts": table("sqlite:////nowhere.db", poll_seconds=1.0)}

    async def scenario() -> None:
        async with following(store, tables) as run:
            await run.until(lambda jobs: len(jobs) == 1)
            await run.finish()
            await run.until(lambda jobs: len(jobs) == 2)
            lag = await run.until_lag(lambda lag: lag.mode == "polling")
            assert lag.seconds is not None
            await run.finish()
            await asyncio.sleep(0.5)
            # A source that is not to be followed any more is left alone.
            await registry.reconcile(store, [])
            count = len(await run.jobs())
            await asyncio.sleep(3)
            assert len(await run.jobs()) <= count + 1

    asyncio.run(scenario())


def test_postgresql_is_polled_too_if_asked_to(store: Store, database: str) -> None:
    """Whoever asks for polls may have no trigger that notifies."""

    async def scenario() -> None:
        async with following(store, {"posts": table(database, poll_seconds=0.5)}) as run:
            await run.until(lambda jobs: len(jobs) == 1)
            await run.finish()
            await run.until(lambda jobs: len(jobs) == 2)

    asyncio.run(scenario())


def test_jobs_that_fail_come_less_and_less_often(store: Store) -> None:
    tables = {"posts": table("sqlite:////nowhere.db", poll_seconds=0.5)}

    async def scenario() -> None:
        async with following(store, tables) as run:
            deadline_s = time.monotonic() + 9
            while time.monotonic() < deadline_s:
                await run.cancel()
                await asyncio.sleep(0.1)
            assert 2 <= len(await run.jobs()) <= 5

    asyncio.run(scenario())


def test_channels_fit_into_what_postgresql_allows() -> None:
    assert channel_of("posts") == "zibaldone_posts"
    long = {channel_of(f"{'n' * 60}{end}") for end in "ab"}
    assert len(long) == 2
    assert all(len(channel) <= 63 for channel in long)
