"""Servers that share a database: what one is told, all know."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.drivers.keys import create_key, key_command
from tests.drivers.server import Server
from tests.store.backends import Postgres
from zibaldone.jobs.schedule import new_schedule
from zibaldone.limits import Limits
from zibaldone.model.instant import now_us
from zibaldone.model.job import STATES

PATIENCE_SECONDS = 30.0
REVOKED_SECONDS_MAX = 1.0
LOOKS = 2
LOOK_SECONDS = 5.0
"""Between two looks of a server at the schedules."""

ONCE_A_YEAR = "0 0 1 1 *"
YEAR_US = 365 * 24 * 3_600 * 1_000_000


@contextlib.contextmanager
def servers(tables: Postgres, folder: Path, *embedders: str) -> Iterator[list[Server]]:
    """One for each embedder, on the same database."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                Server(
                    folder / f"data{number}",
                    environment={"ZIBALDONE_STORE": tables.url, "ZIBALDONE_EMBEDDER": embedder},
                )
            )
            for number, embedder in enumerate(embedders)
        ]


def wait_for(condition: Callable[[], bool]) -> float:
    """The seconds it took."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() < began_s + PATIENCE_SECONDS, "it never came true"
        time.sleep(0.02)
    return time.monotonic() - began_s


def is_ready(server: Server, path: str) -> bool:
    return bool(server.client.get(f"/documents/{path}").json()["vector_status"] == "ready")


def test_the_worker_of_one_server_follows_writes_to_another(
    tables: Postgres, tmp_path: Path
) -> None:
    with servers(tables, tmp_path, "none", "hashed") as (front, back):
        for number in range(10):
            front.create(f"d/{number}", "some text")
            wait_for(partial(is_ready, front, f"d/{number}"))
        background = back.client.get("/health").json()["services"]["background"]
        assert background["tasks"]["wake-ups"]["state"] == "running"


def test_a_revoked_key_is_refused_by_all_servers_within_a_second(
    tables: Postgres, tmp_path: Path
) -> None:
    data = tmp_path / "data0"
    key, other = (create_key(data, store=tables.url) for _ in range(2))
    with servers(tables, tmp_path, "none", "none", "none") as all_servers:
        for server in all_servers:
            assert server.client.get("/documents", headers=key.headers).status_code == 200
        key_command(data, "revoke", key.key_id, store=tables.url)
        time.sleep(REVOKED_SECONDS_MAX)
        for server in all_servers:
            assert server.client.get("/documents", headers=key.headers).status_code == 401
            assert server.client.get("/documents", headers=other.headers).status_code == 200


def test_a_schedule_runs_once_whichever_server_is_alive(tables: Postgres, tmp_path: Path) -> None:
    def put_due(name: str) -> None:
        store = tables.open(Limits())
        long_ago_us = now_us() - 2 * YEAR_US
        schedule = new_schedule(
            name, ONCE_A_YEAR, "reindex", payload={"by": name}, after_us=long_ago_us
        )
        asyncio.run(store.upkeep(lambda upkeep: upkeep.schedules.put(schedule)))
        store.close()

    def runs(name: str) -> int:
        ((count,),) = tables.query(
            "SELECT count(*) FROM jobs WHERE kind = 'reindex' AND state = ? AND payload LIKE ?",
            [STATES.index("done"), f"%{name}%"],
        )
        return int(count)

    with servers(tables, tmp_path, "hashed", "hashed") as (one, two):
        put_due("both")
        wait_for(lambda: runs("both") == 1)
        time.sleep(LOOKS * LOOK_SECONDS + 1)
        assert runs("both") == 1
        one.kill()
        put_due("survivor")
        wait_for(lambda: runs("survivor") == 1)
        assert two.process.poll() is None
