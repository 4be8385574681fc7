"""ingest_document on a real server: files that keep converters busy do not keep others waiting."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers import hostile
from tests.drivers.server import Server
from tests.ingest.test_convert import is_running
from tests.ingest.test_extract import a_docx, a_pdf
from zibaldone.limits import CONVERT_PROCESSES_MAX

GRACE_SECONDS = 10
HANG_SECONDS = 20
"""A conversion takes its whole minute, and without an end of it the server never stops."""
"""How long a server waits for what runs when it is told to end."""


def ingest(server: Server, source: Path) -> httpx.Response:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ingest_document", "arguments": {"source": str(source)}},
    }
    with httpx.Client(timeout=90, trust_env=False) as client:
        return client.post(f"{server.url}/mcp", json=call, headers={"Accept": "application/json"})


def answer_of(response: httpx.Response) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(response.json()["result"]["content"][0]["text"])
    return answer


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "page.html").write_bytes(b"<title>Page</title><p>words")
    (folder / "book.pdf").write_bytes(a_pdf("The book's text"))
    (folder / "letter.docx").write_bytes(a_docx())
    (folder / "comments.html").write_bytes(hostile.COMMENTS)
    return folder


def server_of(tmp_path: Path, files: Path, **environment: str) -> Server:
    return Server(
        tmp_path / "data", environment={"ZIBALDONE_INGEST_ROOTS": str(files), **environment}
    )


def test_every_kind_is_ingested(tmp_path: Path, files: Path) -> None:
    with server_of(tmp_path, files) as server:
        for name, words in (
            ("page.html", "words"),
            ("book.pdf", "The book's text"),
            ("letter.docx", "# Tides"),
        ):
            assert answer_of(ingest(server, files / name))["status"] == "created"
            content = server.client.get(f"/documents/ingested/{name}").json()["content"]
            assert content.startswith(words)


def test_a_file_that_takes_too_long_is_refused_in_time(tmp_path: Path, files: Path) -> None:
    with server_of(tmp_path, files, ZIBALDONE_INGEST_SECONDS_MAX="2") as server:
        started_s = time.monotonic()
        error = answer_of(ingest(server, files / "comments.html"))
        assert time.monotonic() - started_s < HANG_SECONDS
        # By the clock where the machine gives the converter too little CPU time to use up.
        assert error["code"] in ("LIMIT_EXCEEDED", "DEADLINE_EXCEEDED")
        assert "Split it, or save it as text or Markdown" in error["message"]
        assert answer_of(ingest(server, files / "page.html"))["status"] == "created"


def test_a_file_has_its_own_time_beside_that_of_a_call(tmp_path: Path, files: Path) -> None:
    seconds = {"ZIBALDONE_INGEST_SECONDS_MAX": "2", "ZIBALDONE_TOOL_SECONDS_MAX": "0.3"}
    with server_of(tmp_path, files, **seconds) as server:
        error = answer_of(ingest(server, files / "comments.html"))
        assert error["code"] == "DEADLINE_EXCEEDED"
        assert "within 2 seconds" in error["message"]


@pytest.fixture
def six_conversions(tmp_path: Path, files: Path) -> Iterator[Server]:
    """A server with six conversions under way that would take minutes."""
    with server_of(tmp_path, files) as server, ThreadPoolExecutor(6) as threads:
        server.create("notes/tides", "The moon pulls the sea")
        for _ in range(6):
            threads.submit(_ingest_until_it_ends, server, files / "comments.html")
        time.sleep(1.5)
        yield server
        server.stop()


def _ingest_until_it_ends(server: Server, source: Path) -> None:
    with contextlib.suppress(httpx.HTTPError):  # the server is stopped meanwhile
        ingest(server, source)


def test_others_are_served_while_six_conversions_run(six_conversions: Server) -> None:
    server, slowest_s = six_conversions, 0.0
    for number in range(30):
        started_s = time.monotonic()
        server.create(f"notes/{number}", "text")
        found = server.client.get("/search", params={"query": "moon"}).json()
        assert found["results"][0]["document_id"] == "notes/tides"
        assert server.client.get("/health").status_code == 200
        slowest_s = max(slowest_s, time.monotonic() - started_s)
    assert slowest_s < HANG_SECONDS


def test_a_server_with_six_conversions_ends_in_its_grace_period(six_conversions: Server) -> None:
    server = six_conversions
    converters = _converters_of(server.process.pid)
    assert len(converters) == CONVERT_PROCESSES_MAX or sys.platform != "linux"
    server.process.terminate()
    assert server.process.wait(timeout=GRACE_SECONDS + HANG_SECONDS) == 0
    assert not any(is_running(pid) for pid in converters)


def _converters_of(pid: int) -> list[int]:
    """The converter processes that this process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent_pid = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        if parent_pid == pid and b"zibaldone.ingest.worker" in command:
            found.append(int(entry.name))
    return found
