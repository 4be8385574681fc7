"""Documents of a source are what its rows are, after every sync and whatever happened between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.posts import Posts, expected
from tests.pull.databases import (
    DATABASES,
    Database,
    create_posts,
    delete_posts,
    insert_posts,
    update_posts,
)
from tests.pull.pulling import Pulling, counts
from tests.store.backends import BACKENDS, Backend
from zibaldone.errors import Conflict
from zibaldone.limits import Limits


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = DATABASES[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    folder = tmp_path / "store"
    folder.mkdir()
    opened = BACKENDS[request.param](folder)
    yield opened
    opened.close()


@pytest.fixture
def pulling(database: Database, backend: Backend) -> Iterator[Pulling]:
    store = backend.open(Limits())
    made = Pulling(store, database)
    yield made
    made.close()
    store.close()


@pytest.fixture
def posts(database: Database) -> Posts:
    made = Posts()
    create_posts(database)
    insert_posts(database, made.add(60))
    return made


def check(pulling: Pulling, posts: Posts) -> None:
    wanted = expected(posts, has_native_times=pulling.database.has_native_times)
    assert pulling.contents() == wanted


@pytest.mark.parametrize("watermark", ["UpdatedAt", ""])
def test_inserts_edits_and_deletes_are_all_seen(
    pulling: Pulling, posts: Posts, watermark: str
) -> None:
    definition = pulling.define(watermark=watermark)
    assert counts(pulling.sync(definition)) == (60, 0, 0, 0, 0)
    check(pulling, posts)
    database = pulling.database
    insert_posts(database, posts.insert_between(3))
    update_posts(database, posts.edit(4))
    delete_posts(database, posts.delete(5))
    insert_posts(database, posts.add(2))
    pulling.sync(definition)
    check(pulling, posts)
    before = pulling.revisions()
    assert counts(pulling.sync(definition)) == (0, 0, 0, 60, 0)
    assert pulling.revisions() == before


def test_again_changes_nothing_and_embeds_nothing(
    pulling: Pulling, posts: Posts, backend: Backend
) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    pulling.kept.index()
    jobs = "SELECT count(*) FROM jobs WHERE kind = 'vectors'"
    states = "SELECT vector_status, count(*) FROM documents GROUP BY vector_status"
    ready = backend.query(states)
    assert [state for state, _ in ready] == ["ready"]
    for options in ({}, {"is_full": True}, {}):
        result = pulling.sync(definition, **options)
        assert counts(result) == (0, 0, 0, len(posts.rows), 0)
        assert backend.query(jobs) == [(0,)]
        assert backend.query(states) == ready


def test_the_second_incremental_run_keeps_what_is_older_than_the_first(
    pulling: Pulling, posts: Posts
) -> None:
    """ProxySQL's second run deleted everything before its cursor."""
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    for _ in range(3):
        insert_posts(pulling.database, posts.add(1))
        result = pulling.sync(definition)
        assert (result.created, result.deleted) == (1, 0)
        check(pulling, posts)


def test_rows_without_a_watermark_are_compared_whole(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    insert_posts(pulling.database, posts.add(20, has_watermark=False))
    pulling.sync(definition)
    check(pulling, posts)
    update_posts(pulling.database, posts.edit(30))
    pulling.sync(definition)
    check(pulling, posts)


def test_an_edit_that_leaves_the_watermark_is_seen_while_that_is_young(
    pulling: Pulling, posts: Posts
) -> None:
    """Of second granularity, and set by whatever clock: a second edit within the tick."""
    definition = pulling.define(watermark="UpdatedAt")
    clock = {
        "sqlite": "datetime('now')",
        "mariadb": "NOW()",
        "postgres": "date_trunc('second', now())",
    }[_kind(pulling.database)]
    number = min(posts.rows)
    where = f'WHERE "Id" = {number}'
    database = pulling.database
    database.execute(f'UPDATE "posts" SET "Title" = \'first\', "UpdatedAt" = {clock} {where}')
    pulling.sync(definition)
    assert pulling.documents()[f"posts:{number}"].title == "first"
    database.execute(f'UPDATE "posts" SET "Title" = \'second\' {where}')
    assert counts(pulling.sync(definition))[1] == 1
    assert pulling.documents()[f"posts:{number}"].title == "second"
    assert counts(pulling.sync(definition))[1] == 0


def test_a_transaction_that_commits_late_is_seen(pulling: Pulling, posts: Posts) -> None:
    """Its time stamps are older than what an earlier sync has seen."""
    definition = pulling.define(watermark="UpdatedAt")
    database = pulling.database
    number = min(posts.rows)
    database.execute("BEGIN")
    database.execute(
        'UPDATE "posts" SET "Title" = \'late\', "UpdatedAt" = \'2016-01-01 00:00:00\' '
        f'WHERE "Id" = {number}'
    )
    database.execute(
        'INSERT INTO "posts" ("Id", "Body", "UpdatedAt") '
        "VALUES (-5, 'late too', '2016-01-01 00:00:00')"
    )
    assert counts(pulling.sync(definition)) == (60, 0, 0, 0, 0)
    check(pulling, posts)
    database.execute("COMMIT")
    assert counts(pulling.sync(definition)) == (1, 1, 0, 59, 0)
    documents = pulling.documents()
    assert documents[f"posts:{number}"].title == "late"
    assert documents["posts:-5"].body == "late too"


def test_a_watermark_that_goes_back_is_a_change(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    number = max(posts.rows)
    pulling.database.execute(
        'UPDATE "posts" SET "Title" = \'older\', "UpdatedAt" = \'2001-01-01 00:00:00\' '
        f'WHERE "Id" = {number}'
    )
    pulling.sync(definition)
    assert pulling.documents()[f"posts:{number}"].title == "older"


def test_a_key_that_is_its_own_watermark(pulling: Pulling, posts: Posts) -> None:
    """For rows that are added and never changed."""
    definition = pulling.define(watermark="Id")
    pulling.sync(definition)
    insert_posts(pulling.database, posts.add(5))
    assert counts(pulling.sync(definition)) == (5, 0, 0, 60, 0)
    assert counts(pulling.sync(definition, is_full=True)) == (0, 0, 0, 65, 0)
    check(pulling, posts)


def test_a_full_sync_sees_what_the_watermark_hides(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    number = min(posts.rows)
    pulling.database.execute(f'UPDATE "posts" SET "Title" = \'hidden\' WHERE "Id" = {number}')
    assert counts(pulling.sync(definition))[1] == 0
    assert counts(pulling.sync(definition, is_full=True))[1] == 1
    assert pulling.documents()[f"posts:{number}"].title == "hidden"
    for _ in range(2):
        assert counts(pulling.sync(definition, is_full=True)) == (0, 0, 0, 60, 0)
    pulling.database.execute(f'UPDATE "posts" SET "Title" = \'again\' WHERE "Id" = {number}')
    assert counts(pulling.sync(definition)) == (0, 0, 0, 60, 0)
    assert counts(pulling.sync(definition, is_full=True)) == (0, 1, 0, 59, 0)


def test_a_row_that_comes_back_is_a_document_again(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    number = min(posts.rows)
    post = posts.rows.pop(number)
    delete_posts(pulling.database, [number])
    pulling.sync(definition)
    check(pulling, posts)
    posts.rows[number] = post
    insert_posts(pulling.database, [post])
    assert counts(pulling.sync(definition))[0] == 1
    check(pulling, posts)
    assert pulling.documents()[f"posts:{number}"].revision == 3


def test_a_sweep_that_would_delete_much_stops_and_asks(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    before = pulling.contents()
    gone = posts.delete(40)
    delete_posts(pulling.database, gone)
    for _ in range(2):
        with pytest.raises(Conflict, match="lacks 40 of 60 rows") as refused:
            pulling.sync(definition)
        assert "--allow-deletes" in refused.value.message
        assert pulling.contents() == before
    result = pulling.sync(definition, allow_deletes=True)
    assert counts(result) == (0, 0, 40, 20, 0)
    check(pulling, posts)


def test_long_documents_are_deleted_in_several_transactions(
    pulling: Pulling, posts: Posts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write between them."""
    monkeypatch.setattr("zibaldone.keep.pulled.IMPORT_BATCH_BYTES_MAX", 1)
    definition = pulling.define()
    pulling.sync(definition)
    delete_posts(pulling.database, posts.delete(3))
    writes = []
    write = pulling.store.write

    async def counted(tenant: Any, work: Any) -> Any:
        result = await write(tenant, work)
        writes.append(result)
        return result

    monkeypatch.setattr(pulling.store, "write", counted)
    assert counts(pulling.sync(definition)) == (0, 0, 3, 57, 0)
    assert writes.count((1, 1)) == 3
    check(pulling, posts)


def test_new_rows_do_not_make_it_fewer_that_are_gone(pulling: Pulling, posts: Posts) -> None:
    """The share is one of the rows that the source had, not of those that it has now."""
    definition = pulling.define(watermark="UpdatedAt", delete_share_max=0.5)
    pulling.sync(definition)
    delete_posts(pulling.database, posts.delete(40))
    insert_posts(pulling.database, posts.add(60))
    with pytest.raises(Conflict, match="lacks 40 of 60 rows"):
        pulling.sync(definition)


def test_an_empty_answer_deletes_nothing(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    pulling.database.execute('DELETE FROM "posts"')
    with pytest.raises(Conflict):
        pulling.sync(definition)
    check(pulling, posts)


def test_a_column_that_is_added_comes_into_the_metadata(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    pulling.database.execute('ALTER TABLE "posts" ADD COLUMN "Mood" BIGINT DEFAULT 3')
    assert counts(pulling.sync(definition)) == (0, 60, 0, 0, 0)
    assert {document.metadata["Mood"] for document in pulling.documents().values()} == {3}
    assert counts(pulling.sync(definition)) == (0, 0, 0, 60, 0)


def test_another_document_map_changes_the_documents(pulling: Pulling, posts: Posts) -> None:
    pulling.sync(pulling.define(watermark="UpdatedAt"))
    document = {"title": ["Title"], "body": ["Body"], "metadata": {"points": "Score"}}
    other = pulling.define(watermark="UpdatedAt", document=document)
    assert counts(pulling.sync(other)) == (0, 60, 0, 0, 0)
    score = {f"posts:{number}": post.values["Score"] for number, post in posts.rows.items()}
    found = {key: dict(document.metadata) for key, document in pulling.documents().items()}
    assert found == {key: {"points": value} for key, value in score.items()}


def test_only_rows_that_meet_the_condition(pulling: Pulling, posts: Posts) -> None:
    where = "\"PostTypeId\" = 1 AND \"ContentLicense\" LIKE 'CC%' AND ':x' = ':x'"
    if _kind(pulling.database) == "mariadb":
        where = where.replace('"', "`")
    pulling.sync(pulling.define(watermark="UpdatedAt", where=where))
    wanted = {f"posts:{n}" for n, post in posts.rows.items() if post.values["PostTypeId"] == 1}
    assert set(pulling.documents()) == wanted


def _kind(database: Any) -> str:
    return next(name for name, kind in DATABASES.items() if isinstance(database, kind))  # type: ignore[arg-type]
