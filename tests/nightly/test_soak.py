"""Mixed load from many clients at once: nothing fails, nothing is cut off, nothing piles up.

A few seconds in `make test`; SOAK_SECONDS says how long, and `make soak` takes an hour. The second
half of that time hostile clients, with a key of their own, are among them.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, median
from typing import Any, Self

import httpx2 as httpx
import psutil
import pytest

from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import BOTH, JSON, MODERN, PATHS, SSE, Mcp, envelope_of, text_of
from tests.drivers.server import Server
from tests.nightly import hostile
from tests.nightly.cases import described
from tests.nightly.second_client import SecondClient

SECONDS = float(os.environ.get("SOAK_SECONDS", "8"))
WARM_UP_SECONDS = 1.5
BURSTS, BURST_SIZE = 5, 30
DOCUMENTS = 60
RSS_GROWTH_BYTES_MAX = 96 * 1024 * 1024
"""Caches of SQLite's connections fill while documents are written; a leak fills without end."""
RSS_EVERY_SECONDS = 5.0 if SECONDS >= 120 else 0.25
LONG_SECONDS = float(os.environ.get("SOAK_LONG", "1200"))
"""From here on the caches are filled first: then a slope is a leak."""
FILLERS, FILLER_CHARS = 14, 3_000_000
"""More than the page cache of a connection holds (32 MiB)."""
LATE_GROWTH_MAX = 0.03
"""Of the memory, between the medians of the last two quarters of the run."""
P99_MS_MAX = 2_000
"""Of ten well-behaved clients while hostile ones do their worst."""
_SHORT = ("slow reader", "slow writer", "idler", "oversize", "marks", "fuzzer")
_ALL = (*hostile.KINDS, "fuzzer")
HOSTILE = tuple(
    os.environ.get("SOAK_HOSTILE", ",".join(_ALL if SECONDS >= LONG_SECONDS else _SHORT)).split(",")
)
"""Which hostile clients; at night all of them, unless somebody wants to look at one."""


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
        lines = [f"{'tool':<26}{'n':>7}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'max ms':>9}"]
        everything = [ms for found in self.latencies_ms.values() for ms in found]
        for tool, found in [*sorted(self.latencies_ms.items()), ("all", everything)]:
            p50, p95, p99, worst = quantiles(found)
            lines.append(f"{tool:<26}{len(found):>7}{p50:>9.1f}{p95:>9.1f}{p99:>9.1f}{worst:>9.1f}")
        return "\n".join(lines)


def quantiles(values: list[float]) -> tuple[float, ...]:
    ordered = sorted(values)
    return tuple(ordered[int((len(ordered) - 1) * share)] for share in (0.5, 0.95, 0.99, 1.0))


class Memory:
    """The server's resident memory, looked at again and again."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.samples: list[tuple[float, int]] = []
        """Seconds since the start, bytes."""

    def _watch(self) -> None:
        started_s = time.monotonic()
        while not self._stop.wait(RSS_EVERY_SECONDS):
            with contextlib.suppress(psutil.Error):
                rss: int = self._process.memory_info().rss
                self.samples.append((time.monotonic() - started_s, rss))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def bytes_per_hour(self) -> float:
        """The slope of a straight line through the second half."""
        late = self.samples[len(self.samples) // 2 :]
        return linear_regression(*zip(*late, strict=True)).slope * 3_600 if len(late) > 2 else 0.0

    def late_growth(self) -> float:
        """From the third quarter to the fourth, as a part of the whole.

        By medians: hostile bodies of 10 MB come and go, which tilts any line through a few minutes.
        """
        quarter = len(self.samples) // 4
        if quarter == 0:
            return 0.0
        third = median(size for _, size in self.samples[-2 * quarter : -quarter])
        fourth = median(size for _, size in self.samples[-quarter:])
        return (fourth - third) / third

    def line(self) -> str:
        sizes = [size / 1e6 for _, size in self.samples] or [0.0]
        shown = " ".join(f"{size:.0f}" for size in sizes[:: max(1, len(sizes) // 12)])
        slope = self.bytes_per_hour() / 1e6
        return f"RSS MB {shown}; highest {max(sizes):.0f}; second half {slope:+.1f} MB/h"


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


def work(url: str, seed: int, until_s: float, tally: Tally, headers: dict[str, str]) -> None:
    chance = random.Random(seed)
    with httpx.Client(base_url=url, timeout=60, trust_env=False, headers=headers) as client:
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


def load(
    server: Server, clients: int, seconds: float, headers: dict[str, str] | None = None
) -> Tally:
    """Raises what any client raised: an answer that could not be read, above all."""
    tally = Tally()
    until_s = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as pool:
        runs = [
            pool.submit(work, server.url, number, until_s, tally, headers or {})
            for number in range(clients)
        ]
        for run in runs:
            run.result()
    return tally


def summary(
    clients: str, tally: Tally, seconds: float, memory: Memory, second: SecondClient
) -> str:
    """A stretch on one line."""
    count = sum(tally.statuses.values())
    bad = sum(n for status, n in tally.statuses.items() if status >= 500)
    sizes = [size / 1e6 for _, size in memory.samples] or [0.0]
    return (
        f"SUMMARY {clients}: {count} requests in {seconds:.0f} s ({count / seconds:.0f}/s), "
        f"{bad} 5xx, {len(second.stalls)} stalls over 1 s (longest {second.longest_s * 1000:.0f} "
        f"ms), RSS {sizes[0]:.0f} MB first, {sizes[-1]:.0f} MB last, "
        f"second half {memory.bytes_per_hour() / 1e6:+.1f} MB/h"
    )


def second_client(server: Server, headers: dict[str, str] | None = None) -> SecondClient:
    return SecondClient(server.port, server.process.pid, header_lines(headers or {}), path="soak/1")


def assert_served(second: SecondClient) -> None:
    show(second.line())
    assert second.stalls == []
    assert set(second.statuses) == {200}


def header_lines(headers: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


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


def fill(server: Server) -> None:
    for number in range(DOCUMENTS):
        server.create(f"soak/{number}", f"The deploy number {number} runs on Friday.")


def fill_caches(server: Server) -> None:
    """Each of SQLite's connections keeps pages up to its bound; filling them takes the load of a
    soak many minutes, in which their growth could not be told from a leak."""
    words = "".join(f"Paragraph {number} says a few words more.\n\n" for number in range(75_000))
    paths = [f"filler/{number}" for number in range(FILLERS)]
    for path in paths:
        server.create(path, words[:FILLER_CHARS])
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            answers = [pool.submit(server.client.get, f"/documents/{path}") for path in paths]
            assert {answer.result().status_code for answer in answers} == {200}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("soak") / "data") as running:
        fill(running)
        yield running


@pytest.mark.requirement("7.4.a", "7.4.b", "7.4.d", "7.4.e", "7.4.f", "000/P1.08", "000/P2.04")
@pytest.mark.timeout(SECONDS + 300)
def test_five_and_ten_clients_for_a_while(server: Server) -> None:
    process = psutil.Process(server.process.pid)
    warm_up(server)
    threads_before = process.num_threads()
    rss_before_bytes = process.memory_info().rss
    for clients in (5, 10):
        cpu_before, started_s = process.cpu_times(), time.monotonic()
        with Memory(process) as memory, second_client(server) as second:
            tally = load(server, clients, SECONDS / 4)
        cpu_after, seconds = process.cpu_times(), time.monotonic() - started_s
        cpu_s = sum(cpu_after[:2]) - sum(cpu_before[:2])
        show(f"\n{clients} clients, {seconds:.0f} s, server CPU {cpu_s / seconds:.0%} of a core")
        show(tally.table())
        show(memory.line())
        show(summary(f"{clients} clients", tally, seconds, memory, second))
        assert_served(second)
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


@contextmanager
def harassed(server: Server, key: Key, kinds: Sequence[str]) -> Iterator[None]:
    """Hostile clients at work on the server."""
    tools = Mcp(server.client, "/mcp-all", headers=key.headers).result("tools/list")
    openapi = server.client.get("/openapi.json", headers=key.headers).json()
    every = {**hostile.KINDS, "fuzzer": hostile.fuzzer(described(tools, openapi))}
    stop = threading.Event()
    headers = header_lines(key.headers)
    threads = [
        threading.Thread(target=every[kind], args=(server.port, headers, stop), daemon=True)
        for kind in kinds
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(90)


@pytest.mark.timeout(SECONDS + 300)
def test_ten_clients_with_hostile_ones_among_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server(data) as server:
        fill(server)
        server.create("big", "some words of a large document\n" * 200_000)
        if SECONDS >= LONG_SECONDS:
            fill_caches(server)
        ours, theirs = create_key(data), create_key(data)
        server.client.headers.update(ours.headers)
        process = psutil.Process(server.process.pid)
        with Memory(process) as alone:
            before = load(server, 10, SECONDS / 8, ours.headers)
        with (
            Memory(process) as memory,
            second_client(server, ours.headers) as second,
            harassed(server, theirs, HOSTILE),
        ):
            tally = load(server, 10, SECONDS * 3 / 8, ours.headers)
        show(f"\n10 clients alone\n{before.table()}\n{alone.line()}")
        show(f"10 clients with {', '.join(HOSTILE)}\n{tally.table()}\n{memory.line()}")
        show(summary("10 and hostile ones", tally, SECONDS * 3 / 8, memory, second))
        assert_served(second)
        assert set(tally.statuses) == {200}
        assert set(tally.outcomes) - EXPECTED_FAILURES == {"ok"}
        assert "Traceback" not in server.log()
        assert server.client.get("/health").json()["status"] == "healthy"
        if SECONDS >= LONG_SECONDS:
            everything = [ms for found in tally.latencies_ms.values() for ms in found]
            assert quantiles(everything)[2] < P99_MS_MAX
            assert memory.late_growth() < LATE_GROWTH_MAX, memory.line()
