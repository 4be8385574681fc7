"""What can be wrong with a source: clear errors with codes, the rest of a sync intact."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.mariadb import MariaServer, mariadb_server
from tests.drivers.postgres import PostgresServer
from tests.drivers.posts import Posts, expected
from tests.pull.databases import (
    DATABASES,
    Database,
    MariaDb,
    PostgresDatabase,
    SqliteFile,
    create_posts,
    insert_posts,
)
from tests.pull.pulling import Pulling, counts
from zibaldone.errors import InvalidArgument, SourceUnavailable, ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.pull.definition import check
from zibaldone.store.open import open_store


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = DATABASES[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def pulling(database: Database, tmp_path: Path) -> Iterator[Pulling]:
    store = open_store(str(tmp_path / "store" / "zibaldone.db"), Limits())
    made = Pulling(store, database)
    yield made
    made.close()
    store.close()


@pytest.fixture
def posts(database: Database) -> Posts:
    made = Posts()
    create_posts(database)
    insert_posts(database, made.add(30))
    return made


def small(database: Database, rows: list[tuple[Any, Any]], key: str = "BIGINT") -> None:
    database.execute(f'CREATE TABLE "small" ("Id" {key}, "Body" {_long(database)})')
    database.many('INSERT INTO "small" ("Id", "Body") VALUES (%s, %s)', rows)


def _long(database: Database) -> str:
    return "LONGTEXT" if isinstance(database, MariaDb) else "TEXT"


SMALL: dict[str, Any] = {"document": {"body": "Body"}}


def refusal(pulling: Pulling, definition: Any, **options: Any) -> ZibaldoneError:
    before = pulling.contents("")
    with pytest.raises(ZibaldoneError) as refused:
        pulling.sync(definition, **options)
    assert pulling.contents("") == before, "nothing is lost"
    return refused.value


def test_a_table_that_is_gone(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    pulling.database.execute('ALTER TABLE "posts" RENAME TO "postings"')
    error = refusal(pulling, definition)
    assert error.code == "INVALID_ARGUMENT"
    assert "no table or view 'posts'" in error.message
    assert "postings" in error.message


def test_a_column_that_is_gone(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(watermark="UpdatedAt")
    pulling.sync(definition)
    pulling.database.execute('ALTER TABLE "posts" RENAME COLUMN "Body" TO "Bodies"')
    error = refusal(pulling, definition)
    assert error.code == "INVALID_ARGUMENT"
    assert error.details["problems"] == [
        "document.body: posts has no column 'Body'. Did you mean 'Bodies'?"
    ]


def test_all_problems_at_once_with_the_nearest_column(pulling: Pulling, posts: Posts) -> None:
    document = {"title": ["Titel"], "body": ["Bdy"], "tags": "tags", "created": "Nowhere"}
    definition = pulling.define(
        key="id", watermark="UpdatedAT", document=document, refetch=["Scor"], schedule="often"
    )
    problems = check(definition, {})
    assert len(problems) == 8
    for name, hint in (
        *(("'id'", "'Id'"), ("'UpdatedAT'", "'UpdatedAt'"), ("'Scor'", "'Score'")),
        *(("'Titel'", "'Title'"), ("'Bdy'", "'Body'"), ("'tags'", "'Tags'")),
    ):
        assert any(name in problem and f"mean {hint}?" in problem for problem in problems)
    assert any("'Nowhere'" in problem and "mean" not in problem for problem in problems)
    assert any("'often' is not a cron expression" in problem for problem in problems)
    assert check(pulling.define(watermark="UpdatedAt"), {}) == []


def test_a_condition_that_the_database_does_not_understand(pulling: Pulling, posts: Posts) -> None:
    definition = pulling.define(where="Score >>> 1 banana")
    (problem,) = check(definition, {})
    assert problem.startswith("where: ")
    assert refusal(pulling, definition).code == "INVALID_ARGUMENT"


def test_a_key_that_was_changed_gives_other_documents_and_asks(
    pulling: Pulling, posts: Posts
) -> None:
    pulling.sync(pulling.define())
    by_owner = pulling.define(key=["Id", "PostTypeId"])
    assert refusal_of_deletes(pulling, by_owner)
    pulling.sync(by_owner, allow_deletes=True)
    wanted = {f"posts:{n},{post.values['PostTypeId']}" for n, post in posts.rows.items()}
    assert set(pulling.documents()) == wanted


def refusal_of_deletes(pulling: Pulling, definition: Any) -> bool:
    with pytest.raises(ZibaldoneError) as refused:
        pulling.sync(definition)
    return refused.value.details.get("reason") == "deletes"


def test_keys_that_are_there_twice(pulling: Pulling) -> None:
    small(pulling.database, [(1, "one"), (2, "two"), (2, "two again"), (3, "three")])
    definition = pulling.define("small", **SMALL)
    for number in range(3):
        result = pulling.sync(definition)
        assert (result.failed, result.rows) == (1, 4), number
        (problem,) = result.problems
        assert (problem.key, problem.reason) == (
            "2",
            "another row of this source has the same key",
        )
        assert set(pulling.contents("small:")) == {"small:1", "small:2", "small:3"}


def test_a_key_that_is_null(pulling: Pulling) -> None:
    small(pulling.database, [(1, "one"), (None, "none"), (3, "three")])
    result = pulling.sync(pulling.define("small", **SMALL))
    assert counts(result) == (2, 0, 0, 0, 1)
    assert [(p.key, p.reason) for p in result.problems] == [("None", "its key is NULL")]


def test_null_everywhere(pulling: Pulling, posts: Posts) -> None:
    pulling.database.execute('INSERT INTO "posts" ("Id") VALUES (999999)')
    result = pulling.sync(pulling.define(watermark="UpdatedAt"))
    assert result.failed == 0
    empty = pulling.contents()["posts:999999"]
    assert (empty["title"], empty["body"], empty["tags"]) == ("", "", ())
    assert empty["metadata"] == {"Id": 999999}


HOSTILE_KEYS = (
    *("it's", 'a "quoted" one', "'; DROP TABLE small; --", "a,b", "a%2Cb", "%", "100%", "%s", ":x"),
    *(
        "../../etc",
        "..",
        ".",
        " ",
        " a ",
        "a/b",
        "a//b",
        "café",
        "cafe\u0301",
        "\U0001f600",
        "x" * 80,
    ),
    *("A", "a", "naïve", "東京", "-1", "1.0", "\\", "`", "\t"),
)


def test_keys_with_quotes_or_sql_in_them(pulling: Pulling) -> None:
    database = pulling.database
    kind = (
        "VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        if isinstance(database, MariaDb)
        else "VARCHAR(100)"
    )
    keys = [key for key in HOSTILE_KEYS if not (isinstance(database, MariaDb) and key == "a ")]
    database.execute(
        f'CREATE TABLE "small" ("Id" {kind} PRIMARY KEY, "Body" TEXT, "Version" BIGINT)'
    )
    rows = [(key, f"text of {number}", number) for number, key in enumerate(keys)]
    database.many('INSERT INTO "small" ("Id", "Body", "Version") VALUES (%s, %s, %s)', rows)
    definition = pulling.define("small", watermark="Version", **SMALL)
    assert counts(pulling.sync(definition)) == (len(keys), 0, 0, 0, 0)
    stored = {doc["pk"]["Id"]: doc["body"] for doc in pulling.contents("small:").values()}
    assert stored == {key: body for key, body, _ in rows}
    database.execute('UPDATE "small" SET "Body" = \'changed\', "Version" = "Version" + 1000')
    assert counts(pulling.sync(definition)) == (0, len(keys), 0, 0, 0)
    assert len(database.execute('SELECT 1 FROM "small"')) == len(keys)


def test_a_cell_of_fifty_megabytes(pulling: Pulling) -> None:
    small(pulling.database, [(1, "one"), (2, "x" * 50_000_000), (3, "three")])
    definition = pulling.define("small", **SMALL)
    for created in (2, 0):
        result = pulling.sync(definition)
        assert (result.created, result.failed) == (created, 1)
        (problem,) = result.problems
        assert problem.key == "2"
        assert "50000000 bytes" in problem.reason
    assert set(pulling.contents("small:")) == {"small:1", "small:3"}


def test_a_row_that_fails_keeps_its_document_until_it_is_well_again(pulling: Pulling) -> None:
    small(pulling.database, [(1, "one"), (2, "two")], "BIGINT PRIMARY KEY")
    definition = pulling.define("small", **SMALL)
    pulling.sync(definition)
    pulling.database.execute('UPDATE "small" SET "Body" = %s WHERE "Id" = 2', ["x" * 11_000_000])
    result = pulling.sync(definition)
    assert counts(result) == (0, 0, 0, 1, 1)
    assert pulling.contents("small:")["small:2"]["body"] == "two"
    pulling.database.execute('UPDATE "small" SET "Body" = \'mended\' WHERE "Id" = 2')
    assert counts(pulling.sync(definition)) == (0, 1, 0, 1, 0)
    assert pulling.contents("small:")["small:2"]["body"] == "mended"


def test_binary_columns_are_left_out_and_told(pulling: Pulling, posts: Posts) -> None:
    kind = "BYTEA" if isinstance(pulling.database, PostgresDatabase) else "BLOB"
    pulling.database.execute(f'ALTER TABLE "posts" ADD COLUMN "Picture" {kind}')
    pulling.database.execute('UPDATE "posts" SET "Picture" = %s', [b"\x00\xff\xfe"])
    result = pulling.sync(pulling.define(watermark="UpdatedAt"))
    assert result.notes == ["Binary columns are left out: Picture."]
    assert all("Picture" not in doc["metadata"] for doc in pulling.contents().values())
    document = {"body": "Picture"}
    (problem,) = check(pulling.define(document=document), {})
    assert "binary column" in problem


def test_an_id_that_a_document_of_somebody_else_has(pulling: Pulling) -> None:
    small(pulling.database, [(1, "one"), (2, "two")])
    pulling.kept.create("small:1", "an agent wrote this")
    definition = pulling.define("small", **SMALL)
    for created in (1, 0):  # nothing is settled as long as it fails
        result = pulling.sync(definition)
        assert counts(result) == (created, 0, 0, 1 - created, 1)
        assert "Another document has the id" in result.problems[0].reason
    assert pulling.contents("small:")["small:1"]["body"] == "an agent wrote this"


def test_a_view_and_a_select_of_the_operator(pulling: Pulling, posts: Posts) -> None:
    condition = '"PostTypeId" = 1'
    pulling.database.execute(
        f'CREATE VIEW "questions" AS SELECT "Id", "Title", "Body" FROM "posts" WHERE {condition}'
    )
    quote = "`" if isinstance(pulling.database, MariaDb) else '"'
    document = {"title": "Title", "body": "Body"}
    view = pulling.define("questions", watermark="Id", document=document)
    select = pulling.define(
        "asked",
        table="",
        select='SELECT "Id", "Title", "Body" FROM "posts" WHERE "PostTypeId" = 1;'.replace(
            '"', quote
        ),
        document=document,
    )
    asked = {n: p for n, p in posts.rows.items() if p.values["PostTypeId"] == 1}
    for definition in (view, select):
        assert check(definition, {}) == []
        assert counts(pulling.sync(definition)) == (len(asked), 0, 0, 0, 0)
        contents = pulling.contents(f"{definition.name}:")
        wanted = {f"{definition.name}:{n}": post.markdown for n, post in asked.items()}
        assert {key: doc["body"] for key, doc in contents.items()} == wanted
        assert counts(pulling.sync(definition)) == (0, 0, 0, len(asked), 0)


def test_a_view_that_takes_minutes_is_stopped(pulling: Pulling) -> None:
    database = pulling.database
    slow = {
        SqliteFile: (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000000000) "
            'SELECT 1 AS "Id", count(*) AS "Body" FROM n'
        ),
        MariaDb: "SELECT 1 AS `Id`, SLEEP(300) AS `Body`",
        PostgresDatabase: 'SELECT 1 AS "Id", pg_sleep(300)::text AS "Body"',
    }[type(database)]
    database.execute(f'CREATE VIEW "slow" AS {slow}')
    definition = pulling.define("slow", seconds_max=1, **SMALL)
    began_s = time.monotonic()
    error = refusal(pulling, definition)
    assert time.monotonic() - began_s < 60
    assert isinstance(error, SourceUnavailable)
    assert error.details["reason"] == "timeout"


def test_a_sync_that_is_cancelled_stops_its_statement(pulling: Pulling) -> None:
    database = pulling.database
    if isinstance(database, SqliteFile):
        slow = (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000000000) "
            'SELECT 1 AS "Id", count(*) AS "Body" FROM n'
        )
    elif isinstance(database, MariaDb):
        slow = "SELECT 1 AS `Id`, SLEEP(300) AS `Body`"
    else:
        slow = 'SELECT 1 AS "Id", pg_sleep(300)::text AS "Body"'
    database.execute(f'CREATE VIEW "slow" AS {slow}')
    definition = pulling.define("slow", **SMALL)
    source_id = pulling.add(definition)

    async def begin_and_cancel() -> float:
        task = asyncio.create_task(pulling.start(definition, source_id))
        await asyncio.sleep(1.5)
        began_s = time.monotonic()
        task.cancel()
        with pytest.raises((asyncio.CancelledError, SourceUnavailable)):
            await task
        return time.monotonic() - began_s

    assert asyncio.run(begin_and_cancel()) < 30


@pytest.mark.parametrize("is_auto", [True, False])
def test_html_that_stalls_other_converters(
    database: Database, pulling: Pulling, is_auto: bool
) -> None:
    bad = ["<p>x</p>" + "<!--" * 65_536, "<p>x</p>" + "<a href='" * 30_000, "<p>" * 100_000]
    bad += ["<p>x</p>" + "<" * 200_000, "<p>&#" + "9" * 100_000 + ";</p>", "<ul><li>" * 20_000]
    small(database, [(number, text) for number, text in enumerate(bad)], "BIGINT PRIMARY KEY")
    document = {"body": "Body", "body_format": "auto" if is_auto else "html"}
    began_s = time.monotonic()
    result = pulling.sync(pulling.define("small", document=document))
    assert result.failed == 0
    assert time.monotonic() - began_s < 60


def test_no_password_in_any_message(pulling: Pulling, posts: Posts) -> None:
    if isinstance(pulling.database, SqliteFile):
        pytest.skip("SQLite has no passwords")
    secret = "s3cr3t!/@pass"
    if isinstance(pulling.database, MariaDb):
        url = mariadb_server().url(pulling.database.name, "nobody", "${POSTS_PASSWORD}")
    else:
        url = pulling.database.url.replace(
            "postgresql://", "postgresql://nobody:${POSTS_PASSWORD}@"
        )
        url = url.replace("@postgres@", "@").replace("/source_", "/absent_")
    definition = pulling.define(url=url)
    error = refusal(pulling, definition, environment={"POSTS_PASSWORD": secret})
    assert isinstance(error, SourceUnavailable | InvalidArgument)
    assert secret not in str(error.as_dict())
    assert "s3cr3t" not in str(error.as_dict())
    assert secret not in repr(error.__context__) + repr(error.__cause__)


def test_a_reference_that_is_not_set(pulling: Pulling) -> None:
    definition = pulling.define(url="mysql://reader:${POSTS_PASSWORD}@localhost/x")
    error = refusal(pulling, definition)
    assert error.code == "INVALID_ARGUMENT"
    assert "environment variable POSTS_PASSWORD" in error.message


class TestMariaDb:
    @pytest.fixture(params=["mariadb"])
    def database(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
        opened = DATABASES[request.param](tmp_path)
        yield opened
        opened.close()

    def test_a_wrong_password(self, pulling: Pulling, posts: Posts) -> None:
        assert isinstance(pulling.database, MariaDb)
        name = pulling.database.name
        pulling.database.execute("CREATE OR REPLACE USER reader@localhost IDENTIFIED BY 'right'")
        pulling.database.execute(f"GRANT SELECT ON {name}.* TO reader@localhost")
        definition = pulling.define(url=mariadb_server().url(name, "reader", "${PW}"))
        error = refusal(pulling, definition, environment={"PW": "wrong"})
        assert error.code == "SOURCE_UNAVAILABLE"
        assert error.details["reason"] == "refused"
        assert "right" not in error.message
        assert counts(pulling.sync(definition, environment={"PW": "right"}))[0] == 30

    def test_latin1_and_emoji(self, pulling: Pulling) -> None:
        database = pulling.database
        database.execute(
            "CREATE TABLE small (Id BIGINT PRIMARY KEY, Body TEXT CHARACTER SET latin1, "
            "More TEXT CHARACTER SET utf8mb4, Old TEXT CHARACTER SET utf8mb3)"
        )
        database.execute("INSERT INTO small VALUES (1, %s, %s, %s)", ["café €", "😀", "東京"])
        definition = pulling.define("small", document={"body": ["Body", {"text": " "}, "More"]})
        pulling.sync(definition)
        stored = pulling.contents("small:")["small:1"]
        assert stored["body"] == "café € 😀"
        assert stored["metadata"]["Old"] == "東京"

    def test_zero_dates(self, pulling: Pulling) -> None:
        database = pulling.database
        database.execute("SET sql_mode = ''")
        database.execute(
            "CREATE TABLE small (Id BIGINT PRIMARY KEY, Body TEXT, At DATETIME, Day DATE, "
            "Changed DATETIME)"
        )
        database.execute(
            "INSERT INTO small VALUES (1, 'a', '0000-00-00 00:00:00', '0000-00-00', "
            "'0000-00-00 00:00:00'), (2, 'b', '2020-01-02 03:04:05', '2020-01-02', "
            "'2020-01-02 03:04:05'), (3, 'c', '2020-00-00', '2020-02-00', NULL)"
        )
        document = {"body": "Body", "created": "At"}
        definition = pulling.define("small", watermark="Changed", document=document)
        assert counts(pulling.sync(definition)) == (3, 0, 0, 0, 0)
        contents = pulling.contents("small:")
        assert contents["small:1"]["metadata"] == {"Id": 1}
        assert contents["small:2"]["metadata"] == {
            "Id": 2,
            "At": "2020-01-02T03:04:05Z",
            "Day": "2020-01-02",
            "Changed": "2020-01-02T03:04:05Z",
        }
        database.execute("UPDATE small SET Body = 'edited' WHERE Id IN (1, 3)")
        assert counts(pulling.sync(definition))[1] == 2

    def test_native_types(self, pulling: Pulling) -> None:
        database = pulling.database
        database.execute(
            "CREATE TABLE small (Id BIGINT PRIMARY KEY, Body TEXT, Price DECIMAL(10, 2), "
            "Exact DECIMAL(30, 15), Real8 DOUBLE, Yes BOOLEAN, Took TIME, Kind ENUM('x', 'y'), "
            "Many SET('a', 'b'), Big BIGINT UNSIGNED, Whole DECIMAL(20, 0), J JSON)"
        )
        database.execute(
            "INSERT INTO small VALUES (1, 'a', 12.50, 0.123456789012345, 0.5, TRUE, '10:11:12', "
            "'y', 'a,b', 18446744073709551615, 7, %s)",
            ['{"k": [1, 2]}'],
        )
        pulling.sync(pulling.define("small", **SMALL))
        assert pulling.contents("small:")["small:1"]["metadata"] == {
            "Id": 1,
            "Price": 12.5,
            "Exact": 0.123456789012345,
            "Real8": 0.5,
            "Yes": 1,
            "Took": "10:11:12",
            "Kind": "y",
            "Many": "a,b",
            "Big": "18446744073709551615",
            "Whole": 7,
            "J": '{"k": [1, 2]}',
        }

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_server_that_goes_down_in_the_middle(self, tmp_path: Path) -> None:
        """PyMySQL leaves a socket to the collector when nobody answers."""
        mariadb_server()  # it is installed
        server = MariaServer().start()
        try:
            name = server.database()
            database = MariaDb.__new__(MariaDb)
            database.name, database.url = name, server.url(name)
            database.raw = server.connect(name)
            goes_down_in_the_middle(tmp_path, database, server.pause, server.resume)
            database.raw._force_close()
        finally:
            server.stop()


class TestPostgres:
    @pytest.fixture(params=["postgres"])
    def database(self, tmp_path: Path) -> Iterator[Database]:
        opened = PostgresDatabase(tmp_path)
        yield opened
        opened.close()

    def test_values_that_python_cannot_hold_come_as_text(self, pulling: Pulling) -> None:
        """One such row would stop the sync of the whole table."""
        database = pulling.database
        nested, digits = "[" * 300 + "]" * 300, "9" * 5_000
        odd = {
            "At": ("TIMESTAMPTZ", "infinity"),
            "Day": ("DATE", "0044-03-15 BC"),
            "Long": ("INTERVAL", "100000000 years"),
            "Clock": ("TIME", "24:00:00"),
            "Many": ("TIMESTAMP[]", "{-infinity}"),
            "Deep": ("JSONB", nested),
            "Big": ("JSON", digits),
            "Half": ("JSON", '["\\ud800"]'),
        }
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in odd.items())
        database.execute(f'CREATE TABLE small ("Id" BIGINT PRIMARY KEY, "Body" TEXT, {columns})')
        database.execute("INSERT INTO small VALUES (1, 'before'), (3, 'after')")
        values = [value for _, value in odd.values()]
        database.execute(f"INSERT INTO small VALUES (2, 'odd', {'%s, ' * 7}%s)", values)
        definition = pulling.define("small", **SMALL)
        assert counts(pulling.sync(definition)) == (3, 0, 0, 0, 0)
        shown = {name: value for name, (_, value) in odd.items()}
        expected_metadata = {"Id": 2, **shown, "Many": ["-infinity"]}
        assert pulling.contents("small:")["small:2"]["metadata"] == expected_metadata
        assert counts(pulling.sync(definition)) == (0, 0, 0, 3, 0)

    @pytest.mark.parametrize(
        ("kind", "keys"),
        [
            ("BIGINT", ["1", "1099511627776"]),
            ("TIMESTAMPTZ", ["-infinity", "2020-01-01"]),
            ("MACADDR", ["08:00:2b:01:02:03", "08:00:2b:01:02:04"]),
            ("VARCHAR(9)", ["a", "1"]),
        ],
    )
    def test_keys_are_looked_up_whatever_their_type_is(
        self, pulling: Pulling, kind: str, keys: list[str]
    ) -> None:
        """All were cast to what the first one would be."""
        database = pulling.database
        database.execute(
            f'CREATE TABLE small ("Id" {kind} PRIMARY KEY, "Body" TEXT, "At" TIMESTAMP)'
        )
        insert = "INSERT INTO small VALUES (%s, 'a', '2020-01-01')"
        database.many(insert, [(key,) for key in keys])
        definition = pulling.define("small", watermark="At", **SMALL)
        assert counts(pulling.sync(definition)) == (2, 0, 0, 0, 0)
        database.execute("UPDATE small SET \"Body\" = 'b', \"At\" = '2020-01-02'")
        assert counts(pulling.sync(definition)) == (0, 2, 0, 0, 0)

    def test_a_server_that_goes_down_in_the_middle(self, tmp_path: Path) -> None:
        with PostgresServer() as server:
            import psycopg

            database = PostgresDatabase.__new__(PostgresDatabase)
            database.name = "posts"
            database.url = server.database("posts")
            database.raw = psycopg.connect(database.url, autocommit=True)
            goes_down_in_the_middle(tmp_path, database, server.pause, server.resume)
            database.raw.close()


def goes_down_in_the_middle(tmp_path: Path, database: Any, pause: Any, resume: Any) -> None:
    """After some rows were stored; nothing is lost or doubled when it is back."""
    posts = Posts()
    create_posts(database)
    insert_posts(database, posts.add(3_000))
    store = open_store(str(tmp_path / "store" / "zibaldone.db"), Limits())
    pulling = Pulling(store, database)
    definition = pulling.define(watermark="UpdatedAt", seconds_max=20)
    source_id = pulling.add(definition)

    async def stop_after_the_first_block(done: int, total: int | None) -> None:
        del total
        if done >= 1_000:
            await asyncio.to_thread(pause)

    with pytest.raises(SourceUnavailable) as failed:
        asyncio.run(pulling.start(definition, source_id, on_progress=stop_after_the_first_block))
    assert failed.value.code == "SOURCE_UNAVAILABLE"
    stored = pulling.revisions()
    assert 1_000 <= len(stored) < 3_000
    with pytest.raises(SourceUnavailable):
        pulling.sync(definition)
    assert pulling.revisions() == stored
    resume()
    result = pulling.sync(definition)
    assert result.created == 3_000 - len(stored)
    assert result.unchanged == len(stored)
    assert pulling.contents() == expected(posts, has_native_times=True)
    assert set(pulling.revisions().values()) == {1}
    pulling.close()
    store.close()


class TestSqlite:
    @pytest.fixture(params=["sqlite"])
    def database(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
        opened = DATABASES[request.param](tmp_path)
        yield opened
        opened.close()

    def test_a_file_that_is_not_there_is_not_made(self, pulling: Pulling, tmp_path: Path) -> None:
        absent = tmp_path / "absent.db"
        error = refusal(pulling, pulling.define(url=f"sqlite:///{absent}"))
        assert error.code == "SOURCE_UNAVAILABLE"
        assert not absent.exists()

    def test_a_file_that_is_no_database(self, pulling: Pulling, tmp_path: Path) -> None:
        file = tmp_path / "text.db"
        file.write_text("this is not a database " * 100)
        assert (
            refusal(pulling, pulling.define(url=f"sqlite:///{file}")).code == "SOURCE_UNAVAILABLE"
        )

    def test_text_that_is_no_utf8(self, pulling: Pulling, posts: Posts) -> None:
        assert isinstance(pulling.database, SqliteFile)
        number = sorted(posts.rows)[10]
        pulling.database.raw.execute(
            f"UPDATE posts SET Title = CAST(x'636166e9' AS TEXT) WHERE Id = {number}"
        )
        result = pulling.sync(pulling.define(watermark="UpdatedAt"))
        assert counts(result) == (30, 0, 0, 0, 0)
        assert pulling.documents()[f"posts:{number}"].title == "caf\ufffd"
        assert counts(pulling.sync(pulling.define(watermark="UpdatedAt"))) == (0, 0, 0, 30, 0)

    def test_the_source_cannot_be_written(self, pulling: Pulling, posts: Posts) -> None:
        select = (
            "SELECT Id, Title, Body, Tags FROM posts) q; DELETE FROM posts; SELECT * FROM (posts"
        )
        document = {"body": "Body"}
        error = refusal(pulling, pulling.define(table="", select=select, document=document))
        assert error.code in ("INVALID_ARGUMENT", "SOURCE_UNAVAILABLE")
        assert pulling.database.execute("SELECT count(*) FROM posts") == [(30,)]

    def test_a_source_that_others_write_to_meanwhile(self, pulling: Pulling, posts: Posts) -> None:
        """One snapshot: what is committed during a sync is seen by the next one."""
        assert isinstance(pulling.database, SqliteFile)
        definition = pulling.define(watermark="UpdatedAt")
        source_id = pulling.add(definition)
        other = sqlite3.connect(pulling.database.file, isolation_level=None)

        async def write(done: int, total: int | None) -> None:
            del done, total
            other.execute("UPDATE posts SET Title = 'late', UpdatedAt = '2022-01-01 00:00:00'")

        asyncio.run(pulling.start(definition, source_id, on_progress=write))
        other.close()
        assert pulling.contents() == expected(posts, has_native_times=False)
        assert counts(pulling.sync(definition)) == (0, 30, 0, 0, 0)
