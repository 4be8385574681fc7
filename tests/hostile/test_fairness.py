"""One key does its worst; another is served as if it were alone, or nearly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.keys import Key, create_key
from tests.drivers.server import Server
from tests.hostile.peers import resident_mib

LARGE = "".join(f"word{number % 5_000} and some more of it. " for number in range(330_000))
"""Close to the largest document there may be."""

ENDLESS_PAGE = "<div><p>word " * 60_000
"""Takes the converter all of its time."""


@dataclass(frozen=True, slots=True)
class Shared:
    server: Server
    a: Key
    b: Key
    files: Path

    def client(self, key: Key) -> httpx.Client:
        return httpx.Client(
            base_url=self.server.url, headers=key.headers, timeout=60, trust_env=False
        )

    @contextmanager
    def flooded(
        self, connections: int, send: Callable[[httpx.Client, int], object]
    ) -> Iterator[None]:
        """A sends on so many connections, over and over."""
        over = threading.Event()

        def loop(number: int) -> None:
            with self.client(self.a) as client:
                while not over.is_set():
                    try:
                        send(client, number)
                    except httpx.HTTPError:
                        time.sleep(0.1)

        threads = [
            threading.Thread(target=loop, args=(number,), daemon=True)
            for number in range(connections)
        ]
        for thread in threads:
            thread.start()
        time.sleep(3)  # until all of them are queued
        try:
            yield
        finally:
            over.set()  # the threads end with their last answer, or with the server


@pytest.fixture
def shared(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shared]:
    data, files = tmp_path / "data", tmp_path / "files"
    files.mkdir()
    (files / "endless.html").write_text(ENDLESS_PAGE)
    (files / "short.html").write_text("<h1>Title</h1><p>text</p>")
    a, b = create_key(data, "--namespace", "a"), create_key(data, "--namespace", "b")
    environment = {"ZIBALDONE_INGEST_ROOTS": str(files), **getattr(request, "param", {})}
    with Server(data, environment=environment) as server:
        yield Shared(server, a, b, files)


def test_large_uploads_leave_the_writer_to_others(shared: Shared) -> None:
    def upload(client: httpx.Client, number: int) -> None:
        given = {"path": f"large/{number}", "content": LARGE, "upsert": True}
        client.post("/documents", json=given)

    latencies_s: list[float] = []
    with shared.flooded(6, upload), shared.client(shared.b) as client:
        for number in range(60):
            started_s = time.perf_counter()
            given = {"path": f"small/{number}", "content": "a line"}
            assert client.post("/documents", json=given).status_code == 201
            latencies_s.append(time.perf_counter() - started_s)
            time.sleep(0.1)
    # One in twenty may meet a large one; before turns were taken, half of them waited 15 s.
    latencies_s.sort()
    assert latencies_s[len(latencies_s) // 2] < 2.0, latencies_s
    assert latencies_s[int(len(latencies_s) * 0.8)] < 4.0, latencies_s


def test_conversions_leave_one_to_others(shared: Shared) -> None:
    def ingest(client: httpx.Client, number: int) -> None:
        source = str(shared.files / "endless.html")
        client.post("/ingest", json={"source": source, "path": f"x/{number}"})

    with shared.flooded(6, ingest), shared.client(shared.b) as client:
        started_s = time.perf_counter()
        source = str(shared.files / "short.html")
        answer = client.post("/ingest", json={"source": source, "path": "mine"})
        assert answer.status_code in (200, 201), answer.text
        assert time.perf_counter() - started_s < 25


LISTS = """
import http.client, sys, threading

port, key, batch = int(sys.argv[1]), sys.argv[2], sys.argv[3]
headers = {"x-api-key": key, "mcp-protocol-version": "2025-03-26"}

def loop(number):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while True:
        if number % 2:
            client.request("GET", "/documents?limit=100", None, headers)
        else:
            client.request("POST", "/mcp", batch, headers)
        client.getresponse().read()

for number in range(40):
    threading.Thread(target=loop, args=(number,), daemon=True).start()
sys.stdin.read()
"""
"""A process that asks for lists on forty connections, until its standard input ends."""


def test_long_lists_of_one_key_do_not_fill_the_event_loop(shared: Shared) -> None:
    """Each takes tens of milliseconds, and all that had arrived were answered before anybody's."""
    tags = [f"{number}{'y' * 150}" for number in range(60)]
    with shared.client(shared.a) as client:
        for number in range(100):
            given = {"path": f"x/{number}", "content": "x", "title": "t" * 1_000, "tags": tags}
            assert client.post("/documents", json=given).status_code == 201
    batch = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}])
    operator = create_key(shared.server.data, "--effect", "read", "--effect", "admin")
    attack = subprocess.Popen(
        [sys.executable, "-c", LISTS, str(shared.server.port), shared.a.secret, batch],
        stdin=subprocess.PIPE,
    )
    try:
        with shared.client(shared.b) as client, shared.client(operator) as counting:
            while not _lists_made(counting):
                time.sleep(0.1)
            before = _lists_made(counting)
            for _ in range(30):
                assert client.get("/documents/none").status_code == 404
            during = _lists_made(counting) - before
    finally:
        attack.kill()
        attack.communicate()
    assert during < 30 * 20  # it was 40 for each of ours


def _lists_made(client: httpx.Client) -> float:
    found = re.search(
        r'zibaldone_tool_calls_total\{outcome="ok",tool="list_documents"\} (\S+)',
        client.get("/metrics").text,
    )
    return 0.0 if found is None else float(found[1])


def test_files_of_one_key_do_not_fill_the_memory(shared: Shared) -> None:
    """What waits to be converted is not read yet."""
    source = shared.files / "large.html"
    source.write_text("<div><p>word " * 1_200_000)

    def ingest(client: httpx.Client, number: int) -> None:
        client.post("/ingest", json={"source": str(source), "path": f"x/{number}"})

    with shared.flooded(60, ingest), shared.client(shared.b) as client:
        for number in range(20):
            assert resident_mib(shared.server) < 500
            given = {"path": f"small/{number}", "content": "a line"}
            assert client.post("/documents", json=given).status_code == 201
            time.sleep(0.1)


@pytest.mark.parametrize("shared", [{"ZIBALDONE_TOOL_SECONDS_MAX": "8"}], indirect=True, ids=[""])
def test_batches_of_one_key_wait_for_each_other(shared: Shared) -> None:
    """Each holds megabytes of answers until it is whole."""
    ping = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    headers = {"mcp-protocol-version": "2025-03-26"}
    ended: list[str] = []

    def send(name: str, key: Key, batch: list[dict[str, Any]]) -> None:
        with shared.client(key) as client:
            assert client.post("/mcp-all", json=batch, headers=headers).status_code == 200
        ended.append(name)

    arguments = {"source": str(shared.files / "endless.html"), "path": "x"}
    slow = {"name": "ingest_document", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow}
    threads = [
        threading.Thread(target=send, args=(f"slow {number}", shared.a, [message]))
        for number in range(2)
    ]
    for thread in threads:
        thread.start()
    time.sleep(2)  # until both are about it
    threads.append(threading.Thread(target=send, args=("ping", shared.a, ping)))
    threads[-1].start()
    send("other's ping", shared.b, ping)
    time.sleep(1)
    meanwhile = list(ended)
    for thread in threads:
        thread.join()
    assert meanwhile == ["other's ping"]
    assert sorted(ended) == ["other's ping", "ping", "slow 0", "slow 1"]
