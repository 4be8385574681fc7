"""Rows read again by key, previews and proposals."""

from __future__ import annotations

import asyncio
import random
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from tests.drivers.posts import Posts
from tests.drivers.relay import Relay
from tests.pull.databases import (
    DATABASES,
    Database,
    MariaDb,
    PostgresDatabase,
    SqliteFile,
    create_posts,
    insert_posts,
)
from zibaldone.errors import InvalidArgument, SourceUnavailable
from zibaldone.model.source import SourceDefinition
from zibaldone.pull import refetch as refetching
from zibaldone.pull.definition import check
from zibaldone.pull.preview import preview
from zibaldone.pull.propose import proposal
from zibaldone.pull.refetch import Refetched, refetch
from zibaldone.pull.reflect import tables


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = DATABASES[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def posts(database: Database) -> Posts:
    made = Posts()
    create_posts(database)
    insert_posts(database, made.add(30))
    return made


def define(database: Database, **more: Any) -> SourceDefinition:
    table = {
        "url": database.url,
        "table": "posts",
        "key": "Id",
        "document": {"title": ["Title"], "body": ["Body"]},
        **more,
    }
    return SourceDefinition.from_table("posts", table)


def fetch(definition: SourceDefinition, *numbers: Any, **more: Any) -> Refetched:
    keys = [{"Id": number} for number in numbers]
    return asyncio.run(refetch(definition, keys, environment={}, **more))


def test_what_is_there_now_in_native_types(database: Database, posts: Posts) -> None:
    first, second = sorted(posts.rows)[:2]
    definition = define(database)
    database.execute(f'UPDATE "posts" SET "Score" = 4711 WHERE "Id" = {second}')
    found = fetch(definition, second, first, 10**9, columns=["Score", "Title"])
    assert [row.key for row in found.rows] == [{"Id": second}, {"Id": first}, {"Id": 10**9}]
    assert found.rows[0].row == {"Score": 4711, "Title": posts.rows[second].values["Title"]}
    assert found.rows[2].row is None
    assert not found.is_truncated
    (whole,) = fetch(definition, first).rows
    assert whole.row is not None
    assert whole.row["Body"] == posts.rows[first].values["Body"]


def test_only_columns_that_are_allowed(database: Database, posts: Posts) -> None:
    number = min(posts.rows)
    database.execute('ALTER TABLE "posts" ADD COLUMN "Secret" VARCHAR(10)')
    definition = define(database, refetch=["Id", "Score", "Title"])
    for column in ("Secret", "Body", "Scor", '"Id"; DROP TABLE posts', "*", "1 AS x"):
        with pytest.raises(InvalidArgument, match="may not be read") as refused:
            fetch(definition, number, columns=[column])
        assert refused.value.details["allowed"] == ["Id", "Score", "Title"]
    found = fetch(definition, number).rows[0].row
    assert found is not None
    assert list(found) == ["Id", "Score", "Title"]
    mapped = define(database, document={"body": "Body", "metadata": ["Score"]})
    with pytest.raises(InvalidArgument):
        fetch(mapped, number, columns=["Secret"])


def test_a_table_that_was_changed_since(database: Database, posts: Posts) -> None:
    number = min(posts.rows)
    definition = define(database, document={"body": "Body"})
    assert fetch(definition, number).rows[0].row is not None
    database.execute('ALTER TABLE "posts" RENAME COLUMN "Score" TO "Points"')
    found = fetch(definition, number).rows[0].row
    assert found is not None
    assert "Points" in found
    database.execute('ALTER TABLE "posts" RENAME COLUMN "Body" TO "Text"')
    with pytest.raises(InvalidArgument, match="no column 'Body'"):
        fetch(definition, number)


def test_keys_are_bound(database: Database, posts: Posts) -> None:
    definition = define(database)
    hostile = ["1 OR 1=1", "'; DROP TABLE posts; --", None]
    if type(database).__name__ == "PostgresDatabase":
        hostile = [None]  # it does not compare numbers with text
    for key in hostile:
        rows = fetch(definition, key).rows
        assert len(rows) == 1
    assert len(database.execute('SELECT 1 FROM "posts"')) == 30


def test_rows_and_bytes_are_bounded(database: Database, posts: Posts) -> None:
    numbers = sorted(posts.rows)
    definition = define(database)
    some = fetch(definition, *numbers, rows_max=5)
    assert (len(some.rows), some.is_truncated) == (5, True)
    few = fetch(definition, *numbers, bytes_max=2_000)
    assert 0 < len(few.rows) < 30
    assert few.is_truncated
    assert not fetch(definition, *numbers).is_truncated


def test_rows_that_do_not_fit_are_not_read(database: Database, posts: Posts) -> None:
    database.execute('UPDATE "posts" SET "Body" = %s', ["x" * 1_000_000])
    definition, numbers = define(database), sorted(posts.rows)
    fetch(definition, numbers[0])
    tracemalloc.start()
    try:
        some = fetch(definition, *numbers, bytes_max=2_500_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(some.rows), some.is_truncated) == (1, True)
    assert peak_bytes < 15_000_000, "all of them have thirty million"


def test_time_is_bounded(database: Database, posts: Posts) -> None:
    slow = {
        "SqliteFile": 'SELECT 1 AS "Id", count(*) AS "Body" FROM (WITH RECURSIVE n(x) AS '
        "(SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000000000) SELECT x FROM n)",
        "MariaDb": "SELECT 1 AS `Id`, SLEEP(300) AS `Body`",
        "PostgresDatabase": 'SELECT 1 AS "Id", pg_sleep(300)::text AS "Body"',
    }[type(database).__name__]
    database.execute(f'CREATE VIEW "slow" AS {slow}')
    definition = define(database, table="slow", document={"body": "Body"})
    # Its connection is used again, its time is not.
    fetch(define(database), min(posts.rows), seconds_max=60.0)
    with pytest.raises(SourceUnavailable) as stopped:
        fetch(definition, 1, seconds_max=1.0)
    assert stopped.value.details["reason"] == "timeout"


@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_server_that_hangs(database: Database, posts: Posts, is_given_up: bool) -> None:
    """Connected, and silent: it stops no statement, and answers no request to do so."""
    if isinstance(database, SqliteFile):
        pytest.skip("SQLite has no server")
    key = [{"Id": min(posts.rows)}]
    with Relay(upstream_of(database)) as relay:
        definition = define(database, url=through(database, relay))

        async def fetch_twice() -> None:
            async with asyncio.timeout(60):
                seconds_max = 10.0 if is_given_up else 0.5
                assert (await refetch(definition, key, seconds_max=seconds_max)).rows
                relay.freeze()
                async with asyncio.timeout(0.5 if is_given_up else 30):
                    await refetch(definition, key, seconds_max=seconds_max)

        with pytest.raises(TimeoutError if is_given_up else SourceUnavailable):
            asyncio.run(fetch_twice())
        if is_given_up:
            assert relay.connections <= 2, "one to read, one to stop it: nobody asks once more"


def test_a_connection_that_is_not_used_is_closed(
    database: Database, posts: Posts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was given back after the time to look for others had been set."""
    if isinstance(database, SqliteFile):
        pytest.skip("connections to files are not kept")
    monkeypatch.setattr(refetching, "REFETCH_IDLE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(refetching._Idle.close_old, "__defaults__", (0.2,))
    monkeypatch.setattr(refetching, "_IDLE", refetching._Idle())
    with Relay(upstream_of(database)) as relay:

        def is_open() -> bool:
            return any(
                one.raddr and one.raddr.port == relay.port and one.status == "ESTABLISHED"
                for one in psutil.Process().net_connections()
            )

        fetch(define(database, url=through(database, relay)), min(posts.rows))
        assert is_open()
        until_s = time.monotonic() + 20
        while is_open():
            assert time.monotonic() < until_s
            time.sleep(0.02)


@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_server_that_lets_in_and_hangs(
    database: Database, posts: Posts, is_given_up: bool
) -> None:
    """As a pooler does whose server is gone."""
    if not isinstance(database, PostgresDatabase):
        pytest.skip("the time to read is the driver's own")
    with Relay(upstream_of(database), freezes_at=(b"P", b"Q")) as relay:
        definition = define(database, url=through(database, relay))

        async def fetch_once() -> None:
            async with asyncio.timeout(0.5 if is_given_up else 60):
                seconds_max = 60.0 if is_given_up else 0.5
                await refetch(definition, [{"Id": min(posts.rows)}], seconds_max=seconds_max)

        with pytest.raises(TimeoutError if is_given_up else SourceUnavailable):
            asyncio.run(fetch_once())


def upstream_of(database: Database) -> str | tuple[str, int]:
    if isinstance(database, PostgresDatabase):
        info = database.raw.info
        is_path = info.host.startswith("/")
        return f"{info.host}/.s.PGSQL.{info.port}" if is_path else (info.host, info.port)
    return parse_qs(urlsplit(database.url).query)["unix_socket"][0]


def through(database: Database, relay: Relay) -> str:
    parts = urlsplit(database.url)
    place = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{relay.port}"
    query = "sslmode=disable" if isinstance(database, PostgresDatabase) else ""
    return parts._replace(netloc=place, query=query).geturl()


def test_connections_are_used_again(database: Database, posts: Posts) -> None:
    """However much time each call has left: it is hardly ever the same."""
    definition, number, this = define(database), min(posts.rows), psutil.Process()

    def held_after(calls: int) -> int:
        for _ in range(calls):
            assert fetch(definition, number, seconds_max=5 + random.random()).rows
        return this.num_fds() + this.num_threads()

    before = held_after(2)
    assert held_after(12) < before + 6


def test_the_proposal_works_as_it_is(database: Database, posts: Posts) -> None:
    assert "posts" in tables(database.url, {})
    made = proposal(database.url, "posts", "posts", environment={})
    assert made.key == ("Id",)
    assert [part.column for part in (*made.document.title, *made.document.body)] == [
        "Title",
        "Body",
    ]
    assert (made.document.tags, made.watermark) == ("Tags", "UpdatedAt")
    assert (made.document.created, made.document.updated) == ("CreationDate", "UpdatedAt")
    assert check(made, {}) == []
    shown = preview(made, environment={})
    numbers = sorted(posts.rows)[:3]
    assert [document.document_id for document in shown.documents] == [
        f"posts:{number}" for number in numbers
    ]
    assert [document.body for document in shown.documents] == [
        posts.rows[number].markdown for number in numbers
    ]
    assert shown.notes == ()


def test_a_preview_says_what_could_be_better(database: Database) -> None:
    database.execute('CREATE TABLE "loose" ("Id" BIGINT, "Body" VARCHAR(100))')
    database.many('INSERT INTO "loose" VALUES (%s, %s)', [(1, "a"), (None, "b")])
    definition = define(database, table="loose", document={"body": "Body"})
    shown = preview(definition, environment={})
    assert len(shown.documents) == 1
    assert shown.problems == ("its key is NULL",)
    assert any("No unique index" in note for note in shown.notes)
    assert any("no watermark" in note for note in shown.notes)


def test_a_schema_before_the_table(database: Database) -> None:
    kind = type(database).__name__
    if kind == "SqliteFile":
        database.execute('CREATE TABLE "a.b" ("Id" BIGINT PRIMARY KEY, "Body" TEXT)')
        table = "a.b"
    elif isinstance(database, MariaDb):
        table = f"{database.name}.items"
        database.execute('CREATE TABLE "items" ("Id" BIGINT PRIMARY KEY, "Body" TEXT)')
    else:
        database.execute("CREATE SCHEMA shop")
        database.execute('CREATE TABLE shop.items ("Id" BIGINT PRIMARY KEY, "Body" TEXT)')
        table = "shop.items"
        assert table in tables(database.url, {})
    name = '"a.b"' if kind == "SqliteFile" else table
    database.execute(f"INSERT INTO {name} VALUES (1, 'text')")
    definition = define(database, table=table, document={"body": "Body"})
    assert check(definition, {}) == []
    (row,) = fetch(definition, 1).rows
    assert row.row == {"Id": 1, "Body": "text"}
