"""The schema is made once, whoever starts; what is newer or of another program is left alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.drivers.postgres import databases
from zibaldone.errors import ConfigurationError
from zibaldone.limits import Limits
from zibaldone.store import migrate
from zibaldone.store.migrate import Migration
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.schema import PACKAGE, prepare
from zibaldone.store.postgres.store import PostgresStore

NEWEST = migrate.load(PACKAGE)[-1].number
INDEX = "CREATE INDEX CONCURRENTLY IF NOT EXISTS by_title ON zibaldone.documents (title)"


class Empty:
    """A database with nothing of ours in it."""

    def __init__(self) -> None:
        self.name = databases().create(empty=True)
        self.url = databases().url(self.name)
        self.address = Address.parse(self.url)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(databases().admin_url(self.name), autocommit=True)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with self.connect() as connection:
            return connection.execute(sql.encode()).fetchall()

    def execute(self, sql: str) -> None:
        with self.connect() as connection:
            connection.execute(sql.encode())


@pytest.fixture
def empty() -> Iterator[Empty]:
    made = Empty()
    yield made
    databases().drop(made.name)


@pytest.fixture
def with_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more migration, which builds an index beside running writes."""
    more = Migration(NEWEST + 1, "by_title", f"-- not in a transaction\n{INDEX};\n")
    migrations = (*migrate.load(PACKAGE), more)
    monkeypatch.setattr(migrate, "load", lambda package: migrations)


def versions(empty: Empty) -> list[int]:
    rows = empty.rows("SELECT number FROM zibaldone.migrations ORDER BY 1")
    return [number for (number,) in rows if isinstance(number, int)]


def test_a_new_database_gets_the_schema_and_its_source(empty: Empty) -> None:
    prepare(empty.address)
    prepare(empty.address)
    assert versions(empty) == list(range(1, NEWEST + 1))
    assert empty.rows(
        "SELECT source_id, namespace, name, kind, enabled FROM zibaldone.sources"
    ) == [(1, "*", "kb", "builtin", 1)]


def test_several_servers_start_at_once(empty: Empty) -> None:
    together = threading.Barrier(6)

    def start(_: int) -> None:
        together.wait(20)
        PostgresStore(empty.url, Limits()).close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(start, range(6)))
    assert versions(empty) == list(range(1, NEWEST + 1))


def test_a_newer_schema_is_left_alone(empty: Empty) -> None:
    prepare(empty.address)
    empty.execute(f"INSERT INTO zibaldone.migrations VALUES ({NEWEST + 1}, 'of the future')")
    with pytest.raises(ConfigurationError, match=f"has schema {NEWEST + 1}.*Upgrade Zibaldone"):
        PostgresStore(empty.url, Limits())


def test_a_schema_of_another_program_is_left_alone(empty: Empty) -> None:
    empty.execute("CREATE SCHEMA zibaldone; CREATE TABLE zibaldone.theirs (x int)")
    with pytest.raises(ConfigurationError, match="belongs to another program"):
        prepare(empty.address)
    assert empty.rows(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'zibaldone'::regnamespace"
    ) == [(1,)]


def test_an_empty_schema_made_for_the_user_is_used(empty: Empty) -> None:
    """The user need not be allowed to make one."""
    empty.execute(
        "CREATE SCHEMA zibaldone AUTHORIZATION zibaldone_test;"
        f"ALTER DATABASE {empty.name} OWNER TO postgres"
    )
    prepare(empty.address)
    assert versions(empty)[-1] == NEWEST


def test_a_migration_that_fails_leaves_nothing(
    empty: Empty, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (*migrate.load(PACKAGE), Migration(NEWEST + 1, "broken", "CREATE TABLE nonsense"))
    monkeypatch.setattr(migrate, "load", lambda package: broken)
    with pytest.raises(Exception, match="refused a statement"):
        prepare(empty.address)
    assert empty.rows("SELECT to_regnamespace('zibaldone') IS NULL") == [(True,)]
    monkeypatch.undo()
    prepare(empty.address)


class TestBesideRunningWrites:
    def test_an_index_is_built_and_counts_as_a_migration(
        self, empty: Empty, with_index: None
    ) -> None:
        prepare(empty.address)
        assert versions(empty)[-1] == NEWEST + 1
        assert self.validity(empty) == [(True,)]

    @pytest.mark.usefixtures("with_index")
    def test_what_a_killed_build_left_behind_is_dropped_first(self, empty: Empty) -> None:
        """Killed while it waits for a transaction that is older than itself."""
        prepare(empty.address)
        empty.execute(
            "DROP INDEX zibaldone.by_title;"
            f"DELETE FROM zibaldone.migrations WHERE number = {NEWEST + 1}"
        )
        with empty.connect() as older:
            older.autocommit = False
            older.execute("INSERT INTO zibaldone.probe VALUES ('x')")
            older.execute("LOCK TABLE zibaldone.documents IN ROW EXCLUSIVE MODE")
            building = threading.Thread(target=self.build, args=(empty,))
            building.start()
            self.kill_builder(empty)
            building.join(20)
            older.rollback()
        assert self.validity(empty) == [(False,)]
        prepare(empty.address)
        assert self.validity(empty) == [(True,)]
        assert versions(empty)[-1] == NEWEST + 1

    def build(self, empty: Empty) -> None:
        with pytest.raises(Exception, match=r"lost|terminat"):
            prepare(empty.address)

    def kill_builder(self, empty: Empty) -> None:
        for _ in range(200):
            killed = empty.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock' "
                "AND datname = current_database()"
            )
            if killed:
                return
            threading.Event().wait(0.05)
        raise AssertionError("the build did not begin")

    def validity(self, empty: Empty) -> list[tuple[object, ...]]:
        return empty.rows(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'zibaldone.by_title'::regclass"
        )

    @pytest.mark.usefixtures("with_index")
    def test_several_servers_start_at_once(self, empty: Empty) -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: prepare(empty.address), range(4)))
        assert self.validity(empty) == [(True,)]
        assert versions(empty)[-1] == NEWEST + 1
