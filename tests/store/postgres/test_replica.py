"""Reads that go to a replica: they see what was acknowledged, or go to the primary."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.drivers.postgres import databases
from tests.drivers.replicated import ReplicatedPostgres
from tests.drivers.server import Server, parsed, run_cli
from tests.store.backends import Sqlite
from tests.store.kept import EVERYTHING, Kept
from zibaldone.errors import ConfigurationError, StorageUnavailable
from zibaldone.limits import Limits
from zibaldone.store.open import open_store
from zibaldone.store.port import Reader
from zibaldone.store.postgres.store import PostgresStore
from zibaldone.text.query import parse_query

PATIENCE_SECONDS = 30.0
ROUNDS = 100


@pytest.fixture(scope="module")
def pair() -> Iterator[ReplicatedPostgres]:
    with ReplicatedPostgres(is_synchronous=False) as running:
        yield running


@pytest.fixture
def kept(pair: ReplicatedPostgres) -> Iterator[Kept]:
    """Reads go to the replica."""
    store = PostgresStore(pair.url, Limits(), read_url=pair.standby_url)
    yield Kept(store, Limits())
    store.close()


@pytest.fixture
def other(pair: ReplicatedPostgres) -> Iterator[Kept]:
    """Another process, without a replica."""
    store = PostgresStore(pair.url, Limits())
    yield Kept(store, Limits())
    store.close()


def is_on_replica(kept: Kept) -> bool:
    def look(reader: Any) -> bool:
        return bool(reader._transaction.value("SELECT pg_is_in_recovery()"))

    return kept.read(look)


def status(kept: Kept) -> str:
    found = kept.store.read_store_status
    assert found is not None
    return found.status


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(0.05)


@pytest.fixture
def paused(pair: ReplicatedPostgres) -> Iterator[None]:
    """The replica gets what the primary writes, and does not apply it."""
    pair.standby.execute("SELECT pg_wal_replay_pause()")
    yield
    pair.standby.execute("SELECT pg_wal_replay_resume()")


def reads_of(path: str, word: str) -> Callable[[Reader], tuple[bool, bool, bool]]:
    def read(reader: Reader) -> tuple[bool, bool, bool]:
        return (
            reader.documents.get(path) is not None,
            path in [head.document_id for head in reader.documents.heads(path, limit=9)],
            bool(reader.lexical.search(parse_query(word), limit=9)),
        )

    return read


def test_reads_go_to_the_replica(kept: Kept) -> None:
    assert all(is_on_replica(kept) for _ in range(5))
    assert status(kept) == "ok"


def test_every_write_is_read_at_once_whoever_wrote_it(kept: Kept, other: Kept) -> None:
    on_replica = 0
    for number in range(ROUNDS):
        writer = (kept, other)[number % 2]
        path, word = f"rounds/{number}", f"zeb{number}ra"
        writer.create(path, f"some text with {word}")
        assert kept.read(reads_of(path, word)) == (True, True, True)
        on_replica += is_on_replica(kept)
    assert on_replica > ROUNDS / 2


@pytest.mark.usefixtures("paused")
def test_a_replica_that_lags_is_not_read(kept: Kept, other: Kept) -> None:
    other.create("paused/a", "an okapi")
    assert kept.read(reads_of("paused/a", "okapi")) == (True, True, True)
    assert status(kept) == "late"
    began_s = time.monotonic()
    for _ in range(10):
        assert not is_on_replica(kept)
    assert time.monotonic() - began_s < PATIENCE_SECONDS


def test_a_replica_that_has_caught_up_is_read_again(
    pair: ReplicatedPostgres, kept: Kept, other: Kept
) -> None:
    pair.standby.execute("SELECT pg_wal_replay_pause()")
    other.create("late/a")
    assert kept.read(lambda reader: reader.documents.get("late/a")) is not None
    pair.standby.execute("SELECT pg_wal_replay_resume()")
    wait_for(lambda: is_on_replica(kept))
    assert status(kept) == "ok"


def test_a_read_that_fails_there_is_made_again_on_the_primary(kept: Kept) -> None:
    ran_on: list[bool] = []

    def read(reader: Any) -> int:
        ran_on.append(reader._transaction.value("SELECT pg_is_in_recovery()"))
        if len(ran_on) == 1:
            reader._transaction.value("SELECT pg_terminate_backend(pg_backend_pid())")
        return int(reader._transaction.value("SELECT 7"))

    assert kept.read(read) == 7
    assert ran_on == [True, False]


def test_a_read_whose_rows_were_removed_meanwhile_says_nothing_against_the_replica(
    kept: Kept,
) -> None:
    ran_on: list[bool] = []

    def read(reader: Any) -> int:
        ran_on.append(reader._transaction.value("SELECT pg_is_in_recovery()"))
        if len(ran_on) == 1:
            raise psycopg.errors.SerializationFailure("canceling statement due to conflict")
        return 7

    wait_for(lambda: is_on_replica(kept))
    assert kept.read(read) == 7
    assert ran_on == [True, False]
    assert status(kept) == "ok"
    assert is_on_replica(kept)


def test_a_replica_that_is_down_is_not_read_and_comes_back(
    pair: ReplicatedPostgres, kept: Kept
) -> None:
    assert is_on_replica(kept)
    pair.standby.pause()
    try:
        kept.create("down/a")
        assert kept.read(lambda reader: reader.documents.get("down/a")) is not None
        assert status(kept) == "unavailable"
        beside = PostgresStore(pair.url, Limits(), read_url=pair.standby_url)
        assert Kept(beside, Limits()).read(lambda reader: reader.documents.get("down/a"))
        beside.close()
    finally:
        pair.standby.resume()
    wait_for(lambda: is_on_replica(kept))
    assert status(kept) == "ok"


def test_while_the_primary_is_down_reads_go_on(pair: ReplicatedPostgres, kept: Kept) -> None:
    kept.create("primary/a", "an aardvark")
    assert kept.read(reads_of("primary/a", "aardvark")) == (True, True, True)
    pair.primary.pause()
    try:
        assert kept.read(reads_of("primary/a", "aardvark")) == (True, True, True)
        with pytest.raises(StorageUnavailable):
            kept.create("primary/b")
    finally:
        pair.primary.resume()
    kept.create("primary/b")
    wait_for(lambda: is_on_replica(kept))
    assert kept.read(lambda reader: reader.documents.get("primary/b")) is not None


def test_while_the_primary_is_down_a_replica_that_lags_is_not_read(
    pair: ReplicatedPostgres, kept: Kept, other: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was acknowledged, so nobody is told that it is not there."""
    monkeypatch.setattr("zibaldone.store.postgres.replica._REST_SECONDS_MAX", 0.0)
    pair.standby.execute("SELECT pg_wal_replay_pause()")
    try:
        other.create("ahead/a", "a numbat")
        assert kept.read(reads_of("ahead/a", "numbat")) == (True, True, True)
        pair.primary.pause()
        try:
            with pytest.raises(StorageUnavailable):
                kept.read(reads_of("ahead/a", "numbat"))
        finally:
            pair.primary.resume()
    finally:
        pair.standby.execute("SELECT pg_wal_replay_resume()")
    wait_for(lambda: is_on_replica(kept))


def test_a_replica_that_does_not_answer_is_given_up(pair: ReplicatedPostgres, kept: Kept) -> None:
    assert is_on_replica(kept)
    pair.standby.freeze()
    try:
        began_s = time.monotonic()
        kept.create("frozen/a", "a quokka")
        for _ in range(5):
            assert kept.read(reads_of("frozen/a", "quokka")) == (True, True, True)
        assert time.monotonic() - began_s < PATIENCE_SECONDS
        assert status(kept) == "unavailable"
    finally:
        pair.standby.thaw()
    wait_for(lambda: is_on_replica(kept))


def test_a_primary_that_does_not_answer_is_not_taken_for_one_that_is_down(
    pair: ReplicatedPostgres, kept: Kept, other: Kept
) -> None:
    """It may have acknowledged writes that the replica lacks: the read waits for it."""
    assert is_on_replica(kept)
    pair.standby.execute("SELECT pg_wal_replay_pause()")
    other.create("slow/a", "a tapir")
    pair.primary.freeze()
    thawing = threading.Timer(4.0, pair.primary.thaw)
    thawing.start()
    try:
        assert kept.read(reads_of("slow/a", "tapir")) == (True, True, True)
    finally:
        thawing.join()
        pair.standby.execute("SELECT pg_wal_replay_resume()")


def test_doctor_tells_how_the_replica_does(pair: ReplicatedPostgres, tmp_path: Path) -> None:
    def finding() -> str:
        environment = {"ZIBALDONE_STORE": pair.url, "ZIBALDONE_READ_STORE": pair.standby_url}
        report = run_cli("doctor", "--json", data=tmp_path / "data", environment=environment)
        (found,) = [one for one in parsed(report)["findings"] if one["subject"] == "read store"]
        return str(found["status"])

    # The test before may have left the replica a little late.
    wait_for(lambda: finding() == "ok")
    pair.standby.pause()
    try:
        assert finding() == "warn"
    finally:
        pair.standby.resume()


def test_health_tells_how_the_replica_does(pair: ReplicatedPostgres, tmp_path: Path) -> None:
    def read_store() -> dict[str, Any]:
        answer = server.client.get("/health")
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()["services"]["read_store"]
        return found

    arguments = ("--store", pair.url, "--read-store", pair.standby_url)
    with Server(tmp_path / "data", arguments=arguments) as server:
        server.create("health/a")
        wait_for(lambda: read_store() == {"status": "ok"})
        pair.standby.execute("SELECT pg_wal_replay_pause()")
        try:
            server.create("health/b", "an ocelot")
            assert server.client.get("/documents/health/b").status_code == 200
            assert server.client.get("/health").json()["status"] == "degraded"
            assert read_store()["status"] == "late"
            assert "lags behind" in read_store()["message"]
        finally:
            pair.standby.execute("SELECT pg_wal_replay_resume()")
        wait_for(lambda: read_store() == {"status": "ok"})
        assert server.client.get("/health").json()["status"] == "healthy"


class TestConfiguration:
    def test_a_file_has_no_replica(self, pair: ReplicatedPostgres, tmp_path: Path) -> None:
        for store, replica in (
            (Sqlite(tmp_path).url, pair.standby_url),
            (pair.url, Sqlite(tmp_path).url),
        ):
            with pytest.raises(ConfigurationError, match="only a PostgreSQL database has replicas"):
                open_store(store, Limits(), read_url=replica)

    def test_a_server_that_is_no_replica_of_it(self, pair: ReplicatedPostgres) -> None:
        name = databases().create()
        with pytest.raises(ConfigurationError, match="is no replica of") as caught:
            PostgresStore(pair.url, Limits(), read_url=databases().url(name))
        databases().drop(name)
        assert "password" not in caught.value.message

    def test_another_database_of_the_same_server(self, pair: ReplicatedPostgres) -> None:
        pair.primary.execute("CREATE DATABASE elsewhere")
        elsewhere = pair.admin_url().replace(pair.name, "elsewhere")
        assert elsewhere != pair.url
        with pytest.raises(ConfigurationError, match="the same database"):
            PostgresStore(pair.url, Limits(), read_url=elsewhere)

    def test_a_malformed_url(self, pair: ReplicatedPostgres) -> None:
        with pytest.raises(ConfigurationError, match=r"^read_store: the URL is not well formed"):
            PostgresStore(pair.url, Limits(), read_url="postgresql://me:secret@host:port/kb")


@pytest.mark.timeout(180)
def test_a_replica_that_was_promoted_is_read_as_the_primary() -> None:
    with ReplicatedPostgres() as pair:
        store = PostgresStore(pair.url, Limits(), read_url=pair.standby_url)
        kept = Kept(store, Limits())
        kept.create("a")
        assert is_on_replica(kept)
        pair.primary.kill()
        pair.promote()
        kept.create("b")
        found = asyncio.run(
            store.read(
                EVERYTHING,
                lambda reader: [head.document_id for head in reader.documents.heads("", limit=9)],
            )
        )
        assert found == ["a", "b"]
        assert status(kept) == "unavailable"
        store.close()


@pytest.mark.timeout(180)
def test_of_several_hosts_the_one_that_follows_is_read() -> None:
    with ReplicatedPostgres() as pair:
        store = PostgresStore(pair.url, Limits(), read_url=pair.url)
        kept = Kept(store, Limits())
        kept.create("a")
        assert is_on_replica(kept)
        pair.primary.kill()
        pair.promote()
        kept.create("b")
        assert kept.read(lambda reader: reader.documents.get("b")) is not None
        pair.restore()
        wait_for(lambda: is_on_replica(kept))
        kept.create("c")
        assert kept.read(lambda reader: reader.documents.get("c")) is not None
        store.close()
