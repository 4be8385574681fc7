"""Workers of one process hear at once that another has queued something."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.drivers.pgbouncer import PgBouncer
from tests.drivers.postgres import databases
from tests.store.backends import Postgres
from tests.store.kept import ACTOR, HASHED
from zibaldone.access.principal import Tenant
from zibaldone.index.worker import IndexWorker
from zibaldone.keep.create import NewDocument, create
from zibaldone.keep.delete import delete
from zibaldone.keep.update import Changes, update
from zibaldone.limits import Limits
from zibaldone.model.job import NewJob
from zibaldone.store.port import Writer
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.bell import CHANNEL
from zibaldone.store.postgres.store import PostgresStore

HANG_SECONDS_MAX = 20.0
RECONNECT_SECONDS_MAX = 5.0
QUIET_SECONDS = 0.5

LISTENERS = """
FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()
"""
COUNT_LISTENERS = f"SELECT count(*) {LISTENERS}"
TERMINATE_LISTENERS = f"SELECT count(pg_terminate_backend(pid)) {LISTENERS}"


@pytest.fixture
def two(tables: Postgres) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    stores = PostgresStore(tables.url, Limits()), PostgresStore(tables.url, Limits())
    yield stores
    for store in stores:
        store.close()


class Heard:
    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()

    def wake(self) -> None:
        self.count += 1
        self._event.set()

    async def next(self) -> None:
        async with asyncio.timeout(HANG_SECONDS_MAX):
            await self._event.wait()
        self._event.clear()

    async def quiet(self) -> None:
        """Wait for what is still under way."""
        before = -1
        while before != self.count:
            before = self.count
            await asyncio.sleep(QUIET_SECONDS)
        self._event.clear()


@contextlib.asynccontextmanager
async def listening(store: PostgresStore) -> AsyncIterator[Heard]:
    heard = Heard()
    task = asyncio.create_task(store.listen(heard.wake))
    await heard.next()  # it says so once when it begins to listen
    await heard.quiet()
    yield heard
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def queue_job(store: PostgresStore) -> str:
    job = NewJob("kind")
    (job_id,) = await store.write(Tenant(), lambda writer: writer.queue.add([job]))
    return job_id


async def create_document(store: PostgresStore, path: str) -> None:
    new = NewDocument(path, "some text")
    await store.write(Tenant(), lambda writer: create(writer, new, ACTOR, Limits())[0])


def test_what_another_process_queues_is_heard(two: tuple[PostgresStore, PostgresStore]) -> None:
    async def run() -> None:
        async with listening(two[0]) as heard:
            job_id = await queue_job(two[1])
            await heard.next()
            await heard.quiet()
            await create_document(two[1], "d")
            await heard.next()
            await heard.quiet()
            await two[1].write(Tenant(), lambda writer: writer.queue.cancel(job_id, 1))
            await heard.next()
            await heard.quiet()
            await two[1].write(Tenant(), lambda writer: writer.queue.retry(job_id))
            await heard.next()
            await heard.quiet()
            leases = await two[1].upkeep(
                lambda upkeep: upkeep.queue.lease(
                    "kind", limit=1, now_us=2, until_us=9, owner="stops soon"
                )
            )
            await heard.quiet()
            await two[1].upkeep(lambda upkeep: upkeep.queue.release(leases, now_us=3))
            await heard.next()

    asyncio.run(run())


def test_a_process_does_not_wake_itself_nor_anybody_by_reading(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    async def run() -> None:
        async with listening(two[0]) as heard:
            await queue_job(two[0])
            await two[1].read(Tenant(), lambda reader: reader.jobs.page(limit=9))
            await two[1].write(Tenant(), lambda writer: writer.documents.get("d"))
            with pytest.raises(ZeroDivisionError):
                await two[1].write(
                    Tenant(), lambda writer: (writer.queue.add([NewJob("kind")]), 1 // 0)
                )
            await heard.quiet()
            assert heard.count == 1, "the beginning"

    asyncio.run(run())


@pytest.mark.requirement("K2")
def test_one_write_is_one_wake_up_and_its_status_none(
    tables: Postgres, two: tuple[PostgresStore, PostgresStore]
) -> None:
    heard: list[Any] = []
    with tables.connection() as raw:
        raw.execute(f"LISTEN {CHANNEL}".encode())

        async def run() -> None:
            await create_document(two[0], "d")
            heard.extend(raw.notifies(timeout=2 * QUIET_SECONDS))
            assert len(heard) == 1
            assert (await IndexWorker(two[1], HASHED).drain()).documents == 1
            heard.extend(raw.notifies(timeout=2 * QUIET_SECONDS))
            assert len(heard) == 1, "setting it ready is no work for anybody"

        asyncio.run(run())


@pytest.mark.requirement("000/AP.03")
def test_insert_update_and_delete_are_told(
    tables: Postgres, two: tuple[PostgresStore, PostgresStore]
) -> None:
    edits: list[Callable[[Writer], object]] = [
        lambda writer: create(writer, NewDocument("d", "some text"), ACTOR, Limits()),
        lambda writer: update(writer, "d", Changes(body="other text"), ACTOR, Limits()),
        lambda writer: delete(writer, "d", ACTOR),
    ]
    with tables.connection() as raw:
        raw.execute(f"LISTEN {CHANNEL}".encode())
        for edit in edits:
            asyncio.run(two[0].write(Tenant(), edit))
            (told,) = raw.notifies(timeout=HANG_SECONDS_MAX, stop_after=1)
            assert told.channel == CHANNEL
            assert list(raw.notifies(timeout=QUIET_SECONDS)) == []


def test_many_writes_are_few_wake_ups(
    tables: Postgres, two: tuple[PostgresStore, PostgresStore]
) -> None:
    async def run() -> None:
        await asyncio.gather(*(queue_job(two[0]) for _ in range(200)))

    with tables.connection() as raw:
        raw.execute(f"LISTEN {CHANNEL}".encode())
        began_s = time.monotonic()
        asyncio.run(run())
        seconds = time.monotonic() - began_s
        heard = list(raw.notifies(timeout=2 * QUIET_SECONDS))
    assert 1 <= len(heard) <= 3 + seconds / 0.1


@pytest.mark.requirement("C5")
def test_a_listener_that_is_cut_off_listens_again_and_misses_nothing(
    tables: Postgres, two: tuple[PostgresStore, PostgresStore]
) -> None:
    async def run() -> None:
        async with listening(two[0]) as heard:
            for _ in range(3):
                assert tables.query(TERMINATE_LISTENERS) == [(1,)]
                await queue_job(two[1])  # in the gap
                cut_s = time.monotonic()
                await heard.next()
                assert time.monotonic() - cut_s < RECONNECT_SECONDS_MAX
                await heard.quiet()
                await queue_job(two[1])
                await heard.next()
                await heard.quiet()

    asyncio.run(run())


def test_whoever_ends_says_what_it_queued(
    tables: Postgres, two: tuple[PostgresStore, PostgresStore]
) -> None:
    """A command of the command line closes its store right after its write."""

    async def run() -> None:
        async with listening(two[0]) as heard:
            for _ in range(5):
                brief = PostgresStore(tables.url, Limits())
                await queue_job(brief)
                await queue_job(brief)  # within the interval
                await asyncio.to_thread(brief.close)
                await heard.next()
                await heard.quiet()

    asyncio.run(run())


def test_closing_ends_the_listener(tables: Postgres) -> None:
    store = PostgresStore(tables.url, Limits())

    async def run() -> None:
        async with listening(store):
            assert tables.query(COUNT_LISTENERS) == [(1,)]
        deadline_s = time.monotonic() + HANG_SECONDS_MAX
        while tables.query(COUNT_LISTENERS) != [(0,)]:
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.05)

    asyncio.run(run())
    store.close()


def test_behind_a_pooler_it_hears_nothing_unless_it_is_given_a_direct_address() -> None:
    name = databases().create()
    direct = Address.parse(databases().url(name)).parameters
    with PgBouncer(databases().server_url) as pooler:
        pooled = PostgresStore(pooler.url(name), Limits())
        around = PostgresStore(
            f"{pooler.url(name)}&direct_host={direct['host']}&direct_port=5432", Limits()
        )

        async def run() -> None:
            woken: list[int] = []
            async with asyncio.timeout(HANG_SECONDS_MAX):
                await pooled.listen(lambda: woken.append(1))
            assert woken == []
            async with listening(around) as heard:
                await queue_job(pooled)
                await heard.next()

        asyncio.run(run())
        pooled.close()
        around.close()
    databases().drop(name)
