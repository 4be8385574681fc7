"""What can go wrong with a server: a clear message that says what to do, and no half write."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from tests.drivers.postgres import PASSWORD, ROLE, Databases, PostgresServer
from tests.store.kept import EVERYTHING, Kept
from zibaldone.errors import (
    ConfigurationError,
    DeadlineExceeded,
    InvalidArgument,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    ZibaldoneError,
)
from zibaldone.limits import Limits
from zibaldone.store.postgres import schema
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.place import place_of
from zibaldone.store.postgres.store import PostgresStore

HANG_SECONDS_MAX = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of our own: it asks for passwords, and is stopped in between."""
    with PostgresServer(passwords=True) as running:
        yield running


@pytest.fixture(scope="module")
def databases(server: PostgresServer) -> Databases:
    return Databases(server.url)


@pytest.fixture
def name(databases: Databases) -> Iterator[str]:
    made = databases.create()
    yield made
    databases.drop(made)


@pytest.fixture
def url(databases: Databases, name: str) -> str:
    return databases.url(name)


@pytest.fixture
def admin(databases: Databases, name: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(databases.admin_url(name), autocommit=True) as connection:
        yield connection


@pytest.fixture
def kept(url: str) -> Iterator[Kept]:
    store = PostgresStore(url, Limits(query_seconds_max=30))
    yield Kept(store, Limits())
    store.close()


def refusal(url: str) -> ZibaldoneError:
    with pytest.raises(ZibaldoneError) as caught:
        PostgresStore(url, Limits())
    assert "secret" not in caught.value.message
    return caught.value


class TestOpening:
    def test_a_wrong_password(self, url: str) -> None:
        error = refusal(url.replace(f"password={PASSWORD}", "password=a-secret"))
        assert isinstance(error, ConfigurationError)
        assert "refuses the password" in error.message

    def test_a_missing_password(self, url: str) -> None:
        error = refusal(url.replace(f"password={PASSWORD}", "password="))
        assert isinstance(error, ConfigurationError)
        assert "refuses the password" in error.message

    def test_a_database_that_does_not_exist(self, databases: Databases) -> None:
        error = refusal(databases.url("no_such_database"))
        assert isinstance(error, ConfigurationError)
        assert "no_such_database" in error.message
        assert "CREATE DATABASE" in error.message

    def test_a_user_who_may_not_log_in(self, url: str, databases: Databases) -> None:
        databases.execute("DROP ROLE IF EXISTS nologin; CREATE ROLE nologin PASSWORD 'test'")
        error = refusal(url.replace(f"user={ROLE}", "user=nologin"))
        assert isinstance(error, ConfigurationError)
        assert "is not permitted to log in" in error.message

    def test_a_server_that_is_not_there(self) -> None:
        error = refusal("postgresql://me:secret@127.0.0.1:1/kb")
        assert isinstance(error, StorageUnavailable)
        assert "database kb on 127.0.0.1 cannot be reached" in error.message

    @pytest.mark.parametrize(
        "url", ["postgresql://me:secret@host:port/kb", "postgresql://h/kb?no_such=secret"]
    )
    def test_a_malformed_url(self, url: str) -> None:
        error = refusal(url)
        assert isinstance(error, ConfigurationError)
        assert "not well formed" in error.message

    def test_a_number_of_connections_out_of_range(self, url: str) -> None:
        for number in ("0", "many", "100000"):
            error = refusal(f"{url}&connections_max={number}")
            assert "connections_max must be a whole number" in error.message
        PostgresStore(f"{url}&connections_max=6", Limits()).close()

    def test_pgvector_that_only_a_superuser_may_add(self, databases: Databases) -> None:
        made = databases.create(empty=True)
        with psycopg.connect(databases.admin_url(made), autocommit=True) as connection:
            connection.execute("DROP EXTENSION vector")
        error = refusal(databases.url(made))
        databases.drop(made)
        assert isinstance(error, ConfigurationError)
        assert "Let a superuser run, in that database: CREATE EXTENSION vector" in error.message

    def test_pgvector_that_is_not_installed(
        self, databases: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = databases.create(empty=True)
        with psycopg.connect(databases.admin_url(made), autocommit=True) as connection:
            connection.execute(f"DROP EXTENSION vector; ALTER ROLE {ROLE} SUPERUSER")
        monkeypatch.setattr(schema, "_ADD_VECTOR", "CREATE EXTENSION no_such_extension")
        error = refusal(databases.url(made))
        databases.execute(f"ALTER ROLE {ROLE} NOSUPERUSER")
        databases.drop(made)
        assert isinstance(error, ConfigurationError)
        assert "lacks pgvector" in error.message

    def test_pgvector_that_is_too_old(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schema, "VECTOR_VERSION_MIN", (99, 0))
        assert "99.0 or newer is needed" in refusal(url).message

    def test_a_server_that_is_too_old(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schema, "SERVER_VERSION_MIN", 99)
        error = refusal(url)
        assert isinstance(error, ConfigurationError)
        assert "99 or newer is needed" in error.message

    def test_a_database_of_another_encoding(self, databases: Databases) -> None:
        databases.execute(
            f"CREATE DATABASE latin OWNER {ROLE} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
        )
        error = refusal(databases.url("latin"))
        databases.drop("latin")
        assert isinstance(error, ConfigurationError)
        assert "ENCODING 'UTF8'" in error.message

    def test_a_user_who_may_not_make_the_schema(self, databases: Databases) -> None:
        made = databases.create(empty=True)
        databases.execute(f"ALTER DATABASE {made} OWNER TO postgres")
        error = refusal(databases.url(made))
        databases.drop(made)
        assert isinstance(error, ConfigurationError)
        assert "CREATE SCHEMA zibaldone AUTHORIZATION" in error.message

    def test_too_many_connections(self, databases: Databases, url: str) -> None:
        databases.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0")
        try:
            error = refusal(url)
        finally:
            databases.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")
        assert isinstance(error, StorageUnavailable)
        assert "no connection left" in error.message
        assert "connections_max" in error.message

    def test_a_look_from_outside_tells_the_same(self, url: str) -> None:
        place = place_of(Address.parse(url))
        assert (place.engine, place.is_made, place.problem) == ("postgresql", True, "")
        wrong = place_of(Address.parse(url.replace(f"password={PASSWORD}", "password=a-secret")))
        assert "refuses the password" in wrong.problem
        assert "a-secret" not in str(wrong)


class TestWhatTheUserMayNotDo:
    def test_a_user_who_may_only_read(
        self, kept: Kept, admin: psycopg.Connection, url: str, databases: Databases
    ) -> None:
        kept.create("a", "text")
        admin.execute(
            "DROP ROLE IF EXISTS only_reads; CREATE ROLE only_reads LOGIN PASSWORD 'test'; "
            "GRANT USAGE ON SCHEMA zibaldone TO only_reads; "
            "GRANT SELECT ON ALL TABLES IN SCHEMA zibaldone TO only_reads"
        )
        store = PostgresStore(url.replace(f"user={ROLE}", "user=only_reads"), Limits())
        reader = Kept(store, Limits())
        try:
            assert reader.known("a").body == "text"
            with pytest.raises(StorageReadOnly, match="may not do that"):
                reader.create("b", "text")
            probed = asyncio.run(store.probe(lambda work: work.usage.all()))
            assert isinstance(probed.refused_write, StorageReadOnly)
        finally:
            store.close()
            admin.execute("DROP OWNED BY only_reads; DROP ROLE only_reads")
        assert kept.ids() == ["a"]

    def test_a_database_set_to_read_only(
        self, kept: Kept, admin: psycopg.Connection, url: str, name: str
    ) -> None:
        kept.create("a", "text")
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        store = PostgresStore(url, Limits())
        reader = Kept(store, Limits())
        try:
            assert reader.known("a").body == "text"
            with pytest.raises(StorageReadOnly, match="only takes reads"):
                reader.create("b", "text")
        finally:
            store.close()

    def test_a_text_that_cannot_be_stored(self, kept: Kept) -> None:
        with pytest.raises(InvalidArgument, match="NUL"):
            kept.get("a\0b")


class TestRoom:
    """A full disk, as the server would tell of it."""

    @pytest.fixture
    def make_room(self, admin: psycopg.Connection) -> Callable[[], None]:
        admin.execute(
            """CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100';
            END $$"""
        )
        for table in ("audit", "probe"):
            admin.execute(
                f"CREATE TRIGGER full_disk BEFORE INSERT ON zibaldone.{table} "
                "EXECUTE FUNCTION public.full_disk()".encode()
            )

        def make_room() -> None:
            admin.execute("DROP FUNCTION public.full_disk CASCADE")

        return make_room

    def test_nothing_is_stored_and_health_tells_until_there_is_room(
        self, kept: Kept, make_room: Callable[[], None]
    ) -> None:
        def refused() -> ZibaldoneError | None:
            return asyncio.run(kept.store.probe(lambda work: work.usage.all())).refused_write

        assert refused() is None
        with pytest.raises(StorageFull, match="No space left"):
            kept.create("a", "text")
        assert isinstance(refused(), StorageFull)
        assert kept.ids() == []
        make_room()
        assert refused() is None
        kept.create("a", "text")


def sleep(seconds: int, *, unbounded: bool = False) -> Callable[[Any], Any]:
    def work(session: Any) -> Any:
        if unbounded:
            session._transaction.execute("SELECT set_config('statement_timeout', '0', true)")
        return session._transaction.execute(f"SELECT pg_sleep({seconds})")

    return work


class TestTime:
    def test_a_statement_is_stopped_at_the_deadline(self, kept: Kept) -> None:
        started_s = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            kept.read(sleep(60), seconds_max=0.2)
        assert time.monotonic() - started_s < HANG_SECONDS_MAX
        assert kept.ids() == []

    def test_also_where_the_server_would_not_stop_it(self, kept: Kept) -> None:
        started_s = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            kept.read(sleep(60, unbounded=True), seconds_max=0.2)
        assert time.monotonic() - started_s < HANG_SECONDS_MAX
        assert kept.ids() == []

    def test_a_read_that_is_cancelled_stops_on_the_server(
        self, kept: Kept, admin: psycopg.Connection
    ) -> None:
        def sleeping() -> int:
            row = admin.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
            ).fetchone()
            assert row is not None
            return int(row[0])

        async def run() -> None:
            reading = asyncio.create_task(kept.store.read(EVERYTHING, sleep(60)))
            await eventually(lambda: sleeping() == 1)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await eventually(lambda: sleeping() == 0)

        asyncio.run(run())
        assert kept.ids() == []

    def test_a_short_read_that_is_cancelled_keeps_its_connection(self, kept: Kept) -> None:
        """Clients that came and went made the server busy with connections; others waited."""

        async def run() -> None:
            for _ in range(10):
                begun, over = threading.Event(), threading.Event()

                def work(session: Any, begun=begun, over=over) -> None:  # type: ignore[no-untyped-def]
                    backends.add(session._transaction.value("SELECT pg_backend_pid()"))
                    begun.set()
                    assert over.wait(HANG_SECONDS_MAX)
                    session._transaction.execute("SELECT 1")
                    goes_on.append(True)

                reading = asyncio.create_task(kept.store.read(EVERYTHING, work))
                await asyncio.to_thread(begun.wait)
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
                over.set()

        backends: set[int] = set()
        goes_on: list[bool] = []
        asyncio.run(run())
        kept.ids()
        assert len(backends) < 10  # the thread of one may still be busy when the next one begins
        assert not goes_on

    def test_a_server_that_hangs_does_not_hang_its_readers(
        self, kept: Kept, server: PostgresServer
    ) -> None:
        """Not even a request to stop is obeyed by a process that is stopped itself."""

        def freeze(session: Any) -> None:
            pid = session._transaction.value("SELECT pg_backend_pid()")
            os.kill(pid, signal.SIGSTOP)
            try:
                session._transaction.execute("SELECT 1")
            finally:
                os.kill(pid, signal.SIGCONT)

        started_s = time.monotonic()
        with pytest.raises((DeadlineExceeded, StorageUnavailable)):
            kept.read(freeze, seconds_max=0.2)
        assert time.monotonic() - started_s < HANG_SECONDS_MAX
        assert kept.ids() == []

    def test_a_write_that_waits_too_long_for_another(self, kept: Kept, url: str) -> None:
        store = PostgresStore(url, Limits(write_wait_seconds_max=0.2))
        impatient = Kept(store, Limits())
        kept.create("a", "text")
        begun, over = threading.Event(), threading.Event()

        def hold(writer: Any) -> None:
            writer.documents.get("a")
            begun.set()
            over.wait(HANG_SECONDS_MAX)

        holding = threading.Thread(target=kept.write, args=(hold,))
        holding.start()
        try:
            assert begun.wait(HANG_SECONDS_MAX)
            with pytest.raises(StorageUnavailable, match="locked; try again"):
                impatient.update("a", body="other")
        finally:
            over.set()
            holding.join()
            store.close()
        assert kept.known("a").revision == 1


async def eventually(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + HANG_SECONDS_MAX
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.02)


class TestRestarts:
    def test_after_a_restart_nobody_notices(self, kept: Kept, server: PostgresServer) -> None:
        kept.create("a", "text")
        for _ in range(2):
            server.pause()
            server.resume()
            assert kept.known("a").body == "text"
            asyncio.run(kept.store.probe(lambda work: work.usage.all()))
            server.pause()
            server.resume()
            kept.update("a", body="text")

    def test_while_it_is_down_the_error_can_be_retried(
        self, kept: Kept, server: PostgresServer
    ) -> None:
        kept.create("a", "text")
        server.pause()
        try:
            with pytest.raises(StorageUnavailable, match="cannot be reached"):
                kept.get("a")
            with pytest.raises(StorageUnavailable, match="cannot be reached"):
                kept.create("b", "text")
            with pytest.raises((StorageUnavailable, DeadlineExceeded)):
                asyncio.run(kept.store.probe(lambda work: work.usage.all()))
        finally:
            server.resume()
        kept.create("b", "text")
        assert kept.ids() == ["a", "b"]

    def test_a_write_whose_connection_is_lost_is_repeated(
        self, kept: Kept, admin: psycopg.Connection
    ) -> None:
        kept.create("a", "text", metadata={"count": 0})
        runs: list[int] = []

        def lose_the_first(writer: Any) -> None:
            before = writer.documents.get("a")
            runs.append(before.revision)
            if len(runs) == 1:
                pid = writer._transaction.value("SELECT pg_backend_pid()")
                admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
            writer.documents.replace(before, replace(before, revision=before.revision + 1))

        kept.write(lose_the_first)
        assert runs == [1, 1]
        assert kept.known("a").revision == 2
