"""Mixed load from many clients at once: nothing fails, nothing is cut off, nothing piles up.

A few seconds in `make test`; SOAK_SECONDS says how long, and `make soak` takes its time.
"""

from __future__ import annotations

import http.client
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx
import psutil
import pytest

from tests.drivers.mcp import BOTH, JSON, MODERN, PATHS, SSE, Mcp, envelope_of, text_of
from tests.drivers.server import Server

SECONDS = float(os.environ.get("SOAK_SECONDS", "8"))
WARM_UP_SECONDS = 1.5
BURSTS, BURST_SIZE = 5, 30
DOCUMENTS = 60
RSS_GROWTH_BYTES_MAX = 96 * 1024 * 1024
"""Caches of SQLite's connections fill while documents are written; a leak fills without end."""


@dataclass(slots=True)
class Tally:
    """What all clients of one stretch saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    latencies_ms: dict[str, list[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, tool: str, status: int, outcome: str, ms: float) -> None:
        with self._lock:
            self.statuses[status] += 1
            self.outcomes[outcome] += 1
            self.latencies_ms.setdefault(tool, []).append(ms)

    def table(self) -> str:
        lines = [f"{'tool':<26}{'n':>7}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}"]
        for tool, found in sorted(self.latencies_ms.items()):
            ordered = sorted(found)
            p50, p95 = (ordered[int((len(ordered) - 1) * share)] for share in (0.5, 0.95))
            lines.append(f"{tool:<26}{len(ordered):>7}{p50:>9.1f}{p95:>9.1f}{ordered[-1]:>9.1f}")
        return "\n".join(lines)


ARGUMENTS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "search_knowledge": lambda chance: {"query": chance.choice(["deploy", "friday", "number 7"])},
    "list_documents": lambda chance: {"prefix": "soak/", "offset": chance.randrange(60)},
    "get_document": lambda chance: {"path": f"soak/{chance.randrange(DOCUMENTS)}"},
    "get_document_for_rewrite": lambda chance: {"path": f"soak/{chance.randrange(DOCUMENTS)}"},
    "batch_read": lambda chance: {"paths": [f"soak/{chance.randrange(70)}" for _ in range(3)]},
    "upload_document": lambda chance: {
        "path": f"soak/{chance.randrange(DOCUMENTS)}",
        "content": f"The deploy number {chance.randrange(100)} runs on Friday. " * 20,
        "upsert": True,
    },
    "update_document": lambda chance: {
        "path": f"soak/{chance.randrange(DOCUMENTS)}",
        "title": f"Title {chance.randrange(9)}",
    },
    "patch_document": lambda chance: {
        "path": f"soak/{chance.randrange(DOCUMENTS)}",
        "old_str": "Friday",
        "new_str": "Friday",
        "replace_all": True,
    },
    "delete_document": lambda chance: {"path": f"soak/gone-{chance.randrange(5)}"},
    "ingest_document": lambda chance: {
        "path": f"soak/gone-{chance.randrange(5)}",
        "text": "# Friday\n\nText.",
    },
}
EXPECTED_FAILURES = {"NOT_FOUND", "NOT_FOUND_IN_CONTENT"}
"""Two clients that delete the same document: one of them is late."""


def work(url: str, seed: int, until_s: float, tally: Tally) -> None:
    chance = random.Random(seed)
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        while time.monotonic() < until_s:
            path = chance.choice(["/mcp", "/mcp", "/mcp-gpt-full", "/mcp/"])
            version = chance.choice([None, "2025-11-25", MODERN])
            mcp = Mcp(client, path, version=version)
            tool = chance.choice(list(ARGUMENTS))
            params = {"name": tool, "arguments": ARGUMENTS[tool](chance)}
            started_s = time.perf_counter()
            answer = mcp.rpc("tools/call", params, accept=chance.choice([JSON, SSE, BOTH]))
            ms = (time.perf_counter() - started_s) * 1000
            result = envelope_of(answer)["result"]
            outcome = text_of(result)["code"] if result["isError"] else "ok"
            tally.note(tool, answer.status_code, outcome, ms)
            if chance.random() < 0.1:
                mcp.tools()


def load(server: Server, clients: int, seconds: float) -> Tally:
    """Raises what any client raised: an answer that could not be read, above all."""
    tally = Tally()
    until_s = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(work, server.url, n, until_s, tally) for n in range(clients)]:
            done.result()
    return tally


def show(text: str) -> None:
    """For whoever runs it with -s; what was fast enough is for a person to say."""
    sys.stdout.write(text + "\n")


def warm_up(server: Server) -> None:
    """Fill the caches; and the pools, which start a thread only when all others are busy."""
    load(server, 10, WARM_UP_SECONDS)
    for _ in range(BURSTS):
        burst = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(BURST_SIZE)]
        for connection in burst:
            connection.request("GET", "/search?query=friday")
        for connection in burst:
            assert connection.getresponse().read()
            connection.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("soak") / "data") as running:
        for number in range(DOCUMENTS):
            running.create(f"soak/{number}", f"The deploy number {number} runs on Friday.")
        yield running


@pytest.mark.requirement("7.4.a", "7.4.b", "7.4.d", "7.4.e", "7.4.f", "000/P1.08", "000/P2.04")
def test_five_and_ten_clients_for_a_while(server: Server) -> None:
    process = psutil.Process(server.process.pid)
    warm_up(server)
    threads_before = process.num_threads()
    rss_before_bytes = process.memory_info().rss
    for clients in (5, 10):
        cpu_before, started_s = process.cpu_times(), time.monotonic()
        tally = load(server, clients, SECONDS / 2)
        cpu_after, seconds = process.cpu_times(), time.monotonic() - started_s
        cpu_s = sum(cpu_after[:2]) - sum(cpu_before[:2])
        show(f"\n{clients} clients, {seconds:.0f} s, server CPU {cpu_s / seconds:.0%} of a core")
        show(tally.table())
        assert set(tally.statuses) == {200}
        assert set(tally.outcomes) - EXPECTED_FAILURES == {"ok"}
        assert set(tally.latencies_ms) == set(ARGUMENTS)
    rss_after_bytes = process.memory_info().rss
    show(f"RSS {rss_before_bytes / 1e6:.0f} MB before, {rss_after_bytes / 1e6:.0f} MB after")
    assert process.num_threads() == threads_before
    assert rss_after_bytes - rss_before_bytes < RSS_GROWTH_BYTES_MAX
    assert "Traceback" not in server.log()
    assert server.client.get("/health").json()["status"] == "healthy"


def test_every_path_still_answers(server: Server) -> None:
    for path, count in PATHS.items():
        assert len(Mcp(server.client, path).tools()) == count
