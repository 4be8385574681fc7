"""What one key asks of sources holds up nobody else, whether they hang or answer."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psutil

from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import Mcp
from tests.drivers.pulled import connected
from tests.drivers.server import Server

_CALLS = 12
"""Far more than there are threads for it."""


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Whoever reads the file waits."""
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        raw.execute("BEGIN EXCLUSIVE")
        yield
        raw.execute("ROLLBACK")


def _fetch(server: Server, key: Key, doc_id: str) -> dict[str, Any]:
    with httpx.Client(base_url=server.url, timeout=30, trust_env=False) as client:
        rag = Mcp(client, "/mcp-rag", headers=key.headers)
        result = rag.outcome("rag.fetch_from_source", {"doc_ids": [doc_id]})
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        return answer


@contextmanager
def _pulled(tmp_path: Path, *names: str) -> Iterator[tuple[Server, Key]]:
    """A server with the only row of each source, and the key of an admin."""
    toml = ""
    for name in names:
        with connected(tmp_path / f"{name}.db") as raw:
            raw.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
            raw.execute("INSERT INTO rows VALUES (1, 'text')")
        toml += (
            f'[sources.{name}]\nurl = "sqlite:///{tmp_path / name}.db"\ntable = "rows"\n'
            f'key = "id"\n[sources.{name}.document]\nbody = "body"\n'
        )
    config, data = tmp_path / "zibaldone.toml", tmp_path / "data"
    config.write_text(toml)
    one = create_key(data, "--effect", "read", "--effect", "admin")
    with Server(data, environment={"ZIBALDONE_CONFIG": str(config)}) as server:
        rag = Mcp(server.client, "/mcp-all", headers=one.headers)
        for started in rag.call("rag.admin.sync")["jobs"]:
            while rag.call("get_job", job_id=started["job_id"])["state"] in ("queued", "running"):
                time.sleep(0.05)
        yield server, one


def test_a_source_that_hangs_takes_no_threads_of_others(tmp_path: Path) -> None:
    many = create_key(tmp_path / "data")
    with _pulled(tmp_path, "slow", "quick") as (server, one):
        assert _fetch(server, one, "quick:1")["rows"]
        with _locked(tmp_path / "slow.db"), ThreadPoolExecutor(_CALLS) as pool:
            sent = threading.Barrier(_CALLS + 1)

            def ask() -> dict[str, Any]:
                sent.wait()
                return _fetch(server, many, "slow:1")

            hanging = [pool.submit(ask) for _ in range(_CALLS)]
            sent.wait()
            answers = [_fetch(server, one, "quick:1") for _ in range(5)]
            assert all(answer.get("rows") for answer in answers), answers
            codes = {asked.result().get("code") for asked in hanging}
        assert codes <= {"DEADLINE_EXCEEDED", "SOURCE_UNAVAILABLE"}, codes


def test_rows_that_are_asked_for_again_and_again_take_no_more_files_and_threads(
    tmp_path: Path,
) -> None:
    """Each call had a connection of its own, kept for half a minute: a thousand calls, and nobody
    could connect to the server any more."""
    with _pulled(tmp_path, "quick") as (server, one):
        rag = Mcp(server.client, "/mcp-rag", headers=one.headers)
        process = psutil.Process(server.process.pid)

        def held_after(calls: int) -> int:
            for _ in range(calls):
                assert rag.call("rag.fetch_from_source", doc_ids=["quick:1"])["rows"]
            return process.num_fds() + process.num_threads()

        before = held_after(5)
        assert held_after(40) < before + 20
