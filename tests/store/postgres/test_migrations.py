"""The schema is made once, whoever starts; what is newer or of another program is left alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.drivers.postgres import databases
from tests.store.kept import Kept
from tests.store.postgres.load import Load
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
    @pytest.mark.requirement("000/IX.06")
    @pytest.mark.usefixtures("with_index")
    def test_an_index_is_built_once_and_counts_as_a_migration(self, empty: Empty) -> None:
        prepare(empty.address)
        assert versions(empty)[-1] == NEWEST + 1
        assert self.validity(empty) == [(True,)]
        before = empty.rows("SELECT oid FROM pg_class WHERE relname = 'by_title'")
        prepare(empty.address)
        empty.execute(f"DELETE FROM zibaldone.migrations WHERE number = {NEWEST + 1}")
        prepare(empty.address)  # as if it had been killed just before it was noted
        assert empty.rows("SELECT oid FROM pg_class WHERE relname = 'by_title'") == before

    @pytest.mark.requirement("000/IX.07")
    def test_reads_and_writes_go_on_while_it_is_built(
        self, empty: Empty, request: pytest.FixtureRequest
    ) -> None:
        """The build takes as long as somebody has a transaction open that is older."""
        store = PostgresStore(empty.url, Limits())
        request.getfixturevalue("with_index")
        building = threading.Thread(target=prepare, args=(empty.address,))
        try:
            with Load(Kept(store, Limits())) as load, empty.connect() as older:
                load.go_on(3)
                older.autocommit = False
                older.execute("LOCK TABLE zibaldone.documents IN ROW EXCLUSIVE MODE")
                building.start()
                self.builders(empty)
                load.go_on(10)
                assert building.is_alive()
                older.rollback()
                building.join(60)
                load.go_on(3)
        finally:
            store.close()
        assert load.problems == []
        assert self.validity(empty) == [(True,)]

    @pytest.mark.requirement("000/IX.08")
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
            for pid in self.builders(empty):
                empty.execute(f"SELECT pg_terminate_backend({pid})")
            building.join(20)
            older.rollback()
        assert self.validity(empty) == [(False,)]
        prepare(empty.address)
        assert self.validity(empty) == [(True,)]
        assert versions(empty)[-1] == NEWEST + 1

    def build(self, empty: Empty) -> None:
        with pytest.raises(Exception, match=r"lost|terminat"):
            prepare(empty.address)

    def builders(self, empty: Empty) -> list[int]:
        """The processes that build an index, once there is one."""
        for _ in range(400):
            rows = empty.rows(
                "SELECT pid FROM pg_stat_activity "
                "WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock' "
                "AND datname = current_database()"
            )
            if rows:
                return [pid for (pid,) in rows if isinstance(pid, int)]
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
