"""/health answers within a second whatever happens, and tells nobody too much."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.in_process import application
from tests.drivers.keys import create_key
from tests.drivers.raw import raw_request
from tests.drivers.server import Server
from tests.hostile.faulty import FaultyServer
from tests.hostile.peers import peers
from zibaldone.errors import StorageCorrupt
from zibaldone.store.sqlite.store import SqliteStore

ANSWER_SECONDS_MAX = 1.0
MEASURE_SECONDS = 5.0
"""What a busy machine and the test itself may add. What hangs hangs for a minute."""


def health(server: Server) -> tuple[int, dict[str, Any]]:
    started_s = time.monotonic()
    answer = server.client.get("/health")
    assert time.monotonic() - started_s < ANSWER_SECONDS_MAX + MEASURE_SECONDS
    return answer.status_code, answer.json()["services"]


def until_other(server: Server, part: str, before: str) -> tuple[int, str]:
    """Status and word of /health once it says something else of that part."""
    until_s = time.monotonic() + 30
    while True:
        status, services = health(server)
        if services[part]["status"] != before:
            return status, services[part]["status"]
        assert time.monotonic() < until_s, services
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("path", "count", "part"), [("/hang/reader", 8, "readers"), ("/hang/writer", 1, "writes")]
)
def test_stuck_threads_are_told(tmp_path: Path, path: str, count: int, part: str) -> None:
    with FaultyServer(tmp_path / "data") as server, peers(server, count) as hostile:
        assert health(server)[1][part]["status"] == "ok"
        for peer in hostile:
            peer.send(raw_request(path.encode()))
        busy = until_other(server, part, "ok")
        assert busy == (200, "busy")
        assert health(server)[1]["store"]["status"] == "ok", "its own connection still reads"
        stuck = until_other(server, part, "busy")
        assert stuck == (503, "stuck")
        assert server.client.get("/live").json()["status"] == "alive"
        server.kill()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs limits set from outside")
def test_refused_writes_are_told_until_there_is_room(data: Path) -> None:
    body = ("x" * 5_000 + " room. ") * 40
    with Server(data) as server:
        server.create("a", body)
        assert health(server)[1]["writes"]["status"] == "ok"
        pid = server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        longest = max(file.stat().st_size for file in data.iterdir())
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (longest + 100_000, before[1]))
        for number in range(50):
            given = {"path": f"b/{number}", "content": body}
            if server.client.post("/documents", json=given).status_code == 507:
                break
        for _ in range(2):
            status, services = health(server)
            assert (status, services["writes"]["status"]) == (200, "refused")
            assert services["writes"]["code"] == "STORAGE_FULL"
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        assert health(server)[1]["writes"]["status"] == "ok"
        server.create("c", body)


async def _get(app: Any, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(path)


def test_a_store_that_cannot_be_read_is_no_health(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: SqliteStore, work: Any) -> Any:
        raise StorageCorrupt("It is damaged.")

    with application(data) as app:
        assert asyncio.run(_get(app, "/health")).status_code == 200
        monkeypatch.setattr(SqliteStore, "probe", broken)
        answer = asyncio.run(_get(app, "/health"))
        assert answer.status_code == 503
        assert answer.json()["services"]["store"]["code"] == "STORAGE_CORRUPT"
        assert asyncio.run(_get(app, "/live")).status_code == 200


def _overwrite(file: Path) -> None:
    with file.open("r+b") as raw:
        raw.write(b"no database " * (file.stat().st_size // 12))


def _overwrite_most(file: Path) -> None:
    with file.open("r+b") as raw:
        raw.seek(4096)
        raw.write(b"\xff" * (file.stat().st_size - 4096))


def _cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 8)


def _replace(file: Path) -> None:
    copy = file.with_suffix(".copy")
    copy.write_bytes(file.read_bytes())
    copy.replace(file)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed")
@pytest.mark.parametrize("damage", [_overwrite, _overwrite_most, _cut_short, _replace, Path.unlink])
def test_a_file_that_was_damaged_is_no_health(data: Path, damage: Callable[[Path], object]) -> None:
    """For everyone: a load balancer has no key."""
    with Server(data) as server:
        for number in range(20):
            server.create(f"a/{number}", "text " * 500)
        server.stop()  # so that all of it is in the file
        server.start()
        assert server.client.get("/health").status_code == 200
        (file,) = data.glob("*.db")
        damage(file)
        for _ in range(3):
            answer = server.client.get("/health")
            assert answer.status_code == 503
            assert answer.json()["status"] == "degraded"
            assert answer.json()["services"]["store"]["status"] != "ok"
        assert server.client.get("/live").status_code == 200
        server.kill()


class TestWhoIsToldWhat:
    """Counts are of all tenants together: they are the operator's (SECURITY.md)."""

    def test_counts_are_for_admins(self, data: Path) -> None:
        plain, admin = create_key(data), create_key(data, "--effect", "read", "--effect", "admin")
        environment = {"ZIBALDONE_EMBEDDER": "hashed"}
        with Server(data, environment=environment) as server:
            for headers in ({}, plain.headers, {"x-api-key": "wrong"}):
                services = server.client.get("/health", headers=headers).json()["services"]
                assert all(members.keys() <= {"status", "code"} for members in services.values())
            services = server.client.get("/health", headers=admin.headers).json()["services"]
            assert services["index"]["pending"] == 0
            assert services["embedder"]["model"]
            assert server.client.get("/metrics").status_code == 401
            refused = server.client.get("/metrics", headers=plain.headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
            told = server.client.get("/metrics", headers=admin.headers)
            assert "zibaldone_connections" in told.text
