"""What serve writes: for people on a terminal, JSON lines for programs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.drivers.keys import create_key
from tests.drivers.rag import HASHED, wait_until_indexed
from tests.drivers.server import COMMAND, Server, clean_environment, free_port, run_cli
from zibaldone.index.summary import Outcome, Summary

PATIENCE_SECONDS = 30.0
ESCAPE = "\x1b["


class Terminal:
    """`zibaldone serve` with a terminal of its own as its standard error and output."""

    def __init__(self, data: Path, *arguments: str, environment: dict[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--data", str(data), "--port", str(self.port), *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env=clean_environment({"TERM": "xterm", **HASHED, **environment}, data=data),
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""

    def read_until(self, text: str) -> str:
        """All that was shown so far, as soon as it has the text."""
        deadline_s = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline_s, self.shown
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._ours, 100_000).decode().replace("\r\n", "\n")
                except OSError:  # the other end is closed
                    raise AssertionError(self.shown) from None
        return self.shown

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._ours)


@contextmanager
def terminal(data: Path, *arguments: str, **environment: str) -> Iterator[Terminal]:
    opened = Terminal(data, *arguments, environment=environment)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.engine("sqlite", reason="it is about the log")
def test_people_see_where_it_is_what_it_has_and_what_happens(data: Path) -> None:
    with terminal(data, NO_COLOR="1") as screen:
        shown = screen.read_until("Press Ctrl-C to stop.")
        rows = dict(re.findall(r"^  (\w+) +(.+)$", shown, re.MULTILINE))
        created, start = shown.splitlines()[:2]
        assert re.fullmatch(r"\d\d:\d\d:\d\d creating the SQLite file .+", created)
        assert start.startswith("Zibaldone ")
        assert rows["Address"] == f"{screen.url}/mcp"
        assert rows["Documents"].startswith("none yet")
        assert "hashed" in rows["Model"].lower()
        assert rows["Keys"].startswith("none: whoever can reach this address")
        assert rows["Connect"].endswith(f"{screen.url}/mcp")
        assert rows["Data"] == str(data)
        given = {"path": "notes/\x1b[31mred", "content": "heliotrope"}
        httpx.post(f"{screen.url}/documents", json={**given, "path": "notes/a"}).raise_for_status()
        refused = httpx.post(f"{screen.url}/documents", json=given)
        assert refused.status_code == 422
        shown = screen.read_until("indexed 1 document: 1 ready")
        assert re.search(r"^\d\d:\d\d:\d\d local upload_document notes/a: ok$", shown, re.MULTILINE)
        assert '"level"' not in shown
        assert "uvicorn" not in shown.lower()
        assert "heliotrope" not in shown
        assert "\x1b" not in shown
        screen.process.send_signal(signal.SIGTERM)
        screen.read_until("shutting down")
        assert screen.process.wait(PATIENCE_SECONDS) in (0, -signal.SIGTERM)


@pytest.mark.engine("postgres", reason="the other engine's start is in the test above")
def test_colour_on_a_terminal_that_wants_it_and_what_is_there(data: Path) -> None:
    assert run_cli("put", "a", data=data, stdin="x").returncode == 0
    create_key(data)
    with terminal(data, NO_COLOR="") as screen:
        shown = screen.read_until("Press Ctrl-C to stop.")
        assert ESCAPE in shown
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        rows = dict(re.findall(r"^  (\w+) +(.+)$", plain, re.MULTILINE))
        assert rows["Store"].startswith("the PostgreSQL database")
        assert rows["Documents"] == "1"
        assert rows["Keys"] == "1 key; every call needs one"


@pytest.mark.engine("sqlite", reason="it is about the log")
def test_programs_get_json_lines_even_on_a_terminal_if_they_ask_for_it(data: Path) -> None:
    with terminal(data, "--log-format", "json") as screen:
        shown = screen.read_until("Uvicorn running")
        shown = screen.read_until("\n")
        complete = shown[: shown.rindex("\n")].splitlines()
        assert all(json.loads(line)["level"] == "info" for line in complete)


@pytest.mark.engine("sqlite", reason="it is about the log")
def test_a_log_that_is_no_terminal_can_be_text_but_has_no_colour(tmp_path: Path) -> None:
    environment = {"ZIBALDONE_LOG_FORMAT": "text"}
    with Server(tmp_path / "text", environment=environment) as server:
        assert server.client.get("/live").status_code == 200
    assert server.log().splitlines()[1].startswith("Zibaldone ")
    assert ESCAPE not in server.log()
    wrong = run_cli("serve", data=tmp_path / "x", environment={"ZIBALDONE_LOG_FORMAT": "xml"})
    assert wrong.returncode == 2
    assert "must be one of auto, text, json" in wrong.stderr


@pytest.mark.engine("sqlite", reason="it is about the log")
def test_the_start_has_an_address_that_works_here_and_counts_keys_that_are_valid(
    data: Path,
) -> None:
    keys = [create_key(data), create_key(data)]
    assert run_cli("key", "revoke", keys[0].key_id, data=data).returncode == 0
    arguments, environment = ("--host", "0.0.0.0"), {"ZIBALDONE_LOG_FORMAT": "text"}
    with Server(data, arguments=arguments, environment=environment) as server:
        assert server.client.get("/live").status_code == 200
    rows = dict(re.findall(r"^  (\w+) +(.+)$", server.log(), re.MULTILINE))
    assert rows["Address"] == f"http://127.0.0.1:{server.port}/mcp"
    assert rows["Keys"] == "1 key; every call needs one"
    assert rows["Model"] == "none: found by keyword only, not by meaning", "as it was set"


@pytest.mark.engine("sqlite", reason="it is about the log")
def test_there_is_no_line_for_each_indexed_document(data: Path) -> None:
    with Server(data, environment=HASHED) as server:
        for number in range(40):
            server.create(f"many/{number}", f"text number {number}")
        wait_until_indexed(server)
    lines = [json.loads(line) for line in server.log().splitlines()]
    said = [line["message"] for line in lines if line["logger"] == "zibaldone.index"]
    assert 1 <= len(said) <= 4, said
    assert sum(int(re.findall(r"indexed (\d+) document", line)[0]) for line in said) == 40


def test_documents_that_fail_for_one_reason_share_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    summary = Summary()
    summary.add([Outcome("waits", f"d/{number}", reason="The model is down.") for number in "123"])
    assert caplog.messages == ["d/1 and 2 more: waits, The model is down."]
