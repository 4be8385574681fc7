"""A server whose database goes away and comes back: nothing is lost, and vectors follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import psycopg
import pytest

from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.postgres import Databases, PostgresServer
from tests.drivers.server import Server

pytestmark = pytest.mark.engine("sqlite", reason="it brings a PostgreSQL server of its own")

DOCUMENTS = 40

WITHOUT_VECTOR = """
SELECT count(*) FROM zibaldone.chunks c
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.vectors v WHERE v.chunk_key = c.chunk_key)
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server of its own, which may be stopped."""
    with PostgresServer() as running:
        yield running


@pytest.fixture
def database(postgres: PostgresServer) -> tuple[str, str]:
    """Its address for the product, and for a superuser."""
    databases = Databases(postgres.url)
    name = databases.create()
    return databases.url(name), databases.admin_url(name)


@pytest.fixture
def server(database: tuple[str, str], tmp_path: Path) -> Iterator[Server]:
    environment = {"ZIBALDONE_EMBEDDER": "hashed", "ZIBALDONE_STORE": database[0]}
    with Server(tmp_path / "data", environment=environment) as running:
        yield running


def write_until_stored(server: Server, path: str) -> list[int]:
    """Statuses on the way: a client that is told to try again does."""
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    seen: list[int] = []
    while True:
        assert time.monotonic() < deadline_s, seen
        answer = server.client.post(
            "/documents", json={"path": path, "content": f"text of {path}", "upsert": True}
        )
        seen.append(answer.status_code)
        if answer.status_code in (200, 201):
            return seen
        time.sleep(0.05)


def wait_until_ready(server: Server, paths: list[str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    waiting = set(paths)
    while waiting:
        assert time.monotonic() < deadline_s, waiting
        for path in list(waiting):
            answer = server.client.get(f"/documents/{path}")
            if answer.status_code == 200 and answer.json()["vector_status"] == "ready":
                waiting.discard(path)
        time.sleep(0.1)


@pytest.mark.requirement("K1")
def test_a_restart_of_the_database_under_writes_loses_nothing(
    postgres: PostgresServer, database: tuple[str, str], server: Server
) -> None:
    paths = [f"d/{number}" for number in range(DOCUMENTS)]
    seen: list[int] = []
    stopped = threading.Event()

    def restart() -> None:
        postgres.pause()
        stopped.set()
        time.sleep(1.0)
        postgres.resume()

    restarting = threading.Thread(target=restart)
    for number, path in enumerate(paths):
        if number == DOCUMENTS // 4:
            restarting.start()
        if number == DOCUMENTS // 2:
            assert stopped.wait(PATIENCE_SECONDS)
        seen += write_until_stored(server, path)
    restarting.join()
    assert 503 in seen, "it was away while clients wrote"
    assert set(seen) <= {200, 201, 503}, "and they were told to try again, nothing worse"
    wait_until_ready(server, paths)
    for path in paths:
        assert server.client.get(f"/documents/{path}").json()["content"] == f"text of {path}"
    with psycopg.connect(database[1]) as raw:
        assert raw.execute(WITHOUT_VECTOR).fetchone() == (0,)
        assert raw.execute("SELECT count(*) FROM zibaldone.documents").fetchone() == (DOCUMENTS,)


@pytest.mark.requirement("C5")
def test_connections_that_are_cut_are_made_again_and_nothing_is_missed(
    database: tuple[str, str], server: Server
) -> None:
    server.create("before", "text")
    wait_until_ready(server, ["before"])
    paths = []
    for round_number in range(3):
        with psycopg.connect(database[1], autocommit=True) as raw:
            cut = raw.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone()
        assert cut is not None
        assert cut[0] > 0
        path = f"gap/{round_number}"
        assert set(write_until_stored(server, path)) <= {200, 201, 503}
        paths.append(path)
    wait_until_ready(server, paths)
    swept: httpx.Response = server.client.post("/kb/reindex-missing")
    assert swept.json() == {"queued": 0}, "there was no gap left to close"
