"""Behind a pooler that gives each transaction another connection, everything is as without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.drivers.pgbouncer import PgBouncer
from tests.drivers.postgres import databases
from tests.store.kept import ACTOR, Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import DeadlineExceeded
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.model.job import NewJob, new_lease_owner
from zibaldone.store.port import Writer
from zibaldone.store.postgres.store import PostgresStore
from zibaldone.store.upkeep import Upkeep

NAMESPACES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def pooler() -> Iterator[PgBouncer]:
    with PgBouncer(databases().server_url) as running:
        yield running


@pytest.fixture
def two(pooler: PgBouncer) -> Iterator[tuple[Kept, Kept]]:
    """Two servers of ours that share three connections."""
    name = databases().create(empty=True)
    stores = [PostgresStore(pooler.url(name), Limits()) for _ in range(2)]
    yield Kept(stores[0], Limits()), Kept(stores[1], Limits())
    for store in stores:
        store.close()
    databases().drop(name)


def test_transactions_of_many_callers_do_not_mix(two: tuple[Kept, Kept]) -> None:
    """Namespace, deadline and locks belong to the transaction, not to the connection."""

    def count_up(writer: Writer) -> int:
        before = writer.documents.get("counter")
        assert before is not None
        count = before.metadata["count"] + 1
        writer.documents.replace(
            before, replace(before, revision=before.revision + 1, metadata={"count": count})
        )
        return int(count)

    def look(reader: Any) -> list[str]:
        return [head.document_id for head in reader.documents.heads("", limit=9)]

    for namespace in NAMESPACES:
        two[0].create("counter", tenant=Tenant(namespace), metadata={"count": 0})
        two[0].create(f"of {namespace}", tenant=Tenant(namespace))

    async def one(number: int) -> None:
        kept, namespace = two[number % 2], NAMESPACES[number % 4]
        await kept.store.write(Tenant(namespace), count_up)
        seen = await kept.store.read(Tenant(namespace), look)
        assert seen == ["counter", f"of {namespace}"]
        assert await kept.store.read(Tenant("nobody"), look) == []

    async def run() -> None:
        await asyncio.gather(*(one(number) for number in range(120)))

    asyncio.run(run())
    for namespace in NAMESPACES:
        document = two[1].get("counter", Tenant(namespace))
        assert document is not None
        assert document.metadata == {"count": 30}


def test_statements_that_are_used_often_are_not_prepared_on_one_connection(
    two: tuple[Kept, Kept],
) -> None:
    """psycopg would prepare them at the sixth use, and the seventh may run elsewhere."""

    async def run() -> None:
        kept = two[0]
        for _ in range(12):
            await asyncio.gather(
                *(
                    kept.store.read(Tenant("a"), lambda reader: reader.documents.get("x"))
                    for _ in range(6)
                )
            )

    asyncio.run(run())


def test_a_deadline_holds(two: tuple[Kept, Kept]) -> None:
    kept = two[0]
    with pytest.raises(DeadlineExceeded):
        kept.read(lambda reader: _sleep(reader, "30"), seconds_max=0.2)
    with pytest.raises(DeadlineExceeded):
        kept.read(lambda reader: _sleep(reader, "30", unbounded=True), seconds_max=0.2)
    kept.create("a", "text")
    assert kept.known("a").body == "text"


def _sleep(reader: Any, seconds: str, *, unbounded: bool = False) -> None:
    if unbounded:
        reader._transaction.execute("SELECT set_config('statement_timeout', '0', true)")
    reader._transaction.execute(f"SELECT pg_sleep({seconds})")


def test_a_new_id_is_created_once_and_jobs_are_leased_once(two: tuple[Kept, Kept]) -> None:
    new = NewDocument("new", "words")

    def put(writer: Writer) -> bool:
        return create(writer, new, ACTOR, Limits(), upsert=True)[1]

    def lease(work: Upkeep) -> list[str]:
        leased = work.queue.lease(
            "sync", limit=3, now_us=10, until_us=20, owner=new_lease_owner(), by_subject=True
        )
        return [job.job_id for job in leased]

    async def run() -> tuple[list[bool], list[list[str]]]:
        jobs = [NewJob("sync", subject=str(number)) for number in range(30)]
        await two[0].store.write(Tenant("a"), lambda writer: writer.queue.add(jobs))
        created = await asyncio.gather(*(kept.store.write(Tenant("a"), put) for kept in two * 8))
        leased = await asyncio.gather(*(kept.store.upkeep(lease) for kept in two * 6))
        return created, leased

    created, leased = asyncio.run(run())
    assert sum(created) == 1
    ids = [job_id for each in leased for job_id in each]
    assert len(ids) == len(set(ids)) == 30
