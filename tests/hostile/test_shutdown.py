"""SIGTERM ends the server in time, whatever runs, and without a traceback."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.drivers.raw import raw_request
from tests.drivers.server import Server, run_cli
from tests.hostile.faulty import FaultyServer
from tests.hostile.peers import Peer, post_head

GRACE_SECONDS = 3.0
ENVIRONMENT = {"ZIBALDONE_SHUTDOWN_SECONDS_MAX": str(GRACE_SECONDS)}
MACHINE_SECONDS = 15.0
"""What a busy machine may add."""
MIB = 1 << 20


@pytest.fixture(params=["httptools", "h11"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultyServer]:
    environment = {**ENVIRONMENT, "HOSTILE_HTTP": request.param}
    with FaultyServer(tmp_path / "data", environment=environment) as running:
        running.create("kept", "text")
        yield running


def ended(server: Server, seconds_max: float) -> None:
    """The hanging work would hold it for a minute and more."""
    server.process.terminate()
    assert server.process.wait(timeout=seconds_max + MACHINE_SECONDS) == 0
    assert "Traceback" not in server.log()


def test_unfinished_requests_are_told_and_closed(server: FaultyServer) -> None:
    requests = [
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: unfinished",
        post_head("/documents", 1000) + b'{"path": "never',
        post_head("/mcp", 1000, "accept: text/event-stream") + b"{",
    ]
    opened = [Peer(server) for _ in range(4)]
    for peer, request in zip(opened[1:], requests, strict=True):
        peer.send(request)
    time.sleep(0.5)
    ended(server, GRACE_SECONDS)
    assert opened[0].answer().status == 0, "one that asked for nothing is told nothing"
    for peer in opened[1:]:
        peer.answer().refused(503, "SHUTTING_DOWN")
    for peer in opened:
        peer.close()


@pytest.mark.parametrize(
    "paths",
    [["/hang/stream"] * 2, ["/hang/reader"] * 6, ["/hang/thread"] * 2, ["/hang/writer"]],
    ids=["streams", "readers", "threads", "writer"],
)
def test_work_that_cannot_be_interrupted(server: FaultyServer, paths: Sequence[str]) -> None:
    opened = [Peer(server) for _ in paths]
    for peer, path in zip(opened, paths, strict=True):
        peer.send(raw_request(path.encode()))
    time.sleep(0.5)
    ended(server, GRACE_SECONDS)
    for peer in opened:
        peer.answer()
        peer.close()
    assert "kept" in run_cli("ls", data=server.data).stdout


def test_answers_that_are_not_read(server: FaultyServer) -> None:
    server.create("large", "0123456789abcde\n" * (8 * MIB // 16))
    with Peer(server, small=True) as peer:
        peer.send(raw_request(b"/documents/large"))
        time.sleep(1)
        ended(server, GRACE_SECONDS)


def test_a_request_that_runs_is_answered_first(tmp_path: Path) -> None:
    """What takes less than the grace period is not cut off."""
    with Server(tmp_path / "data") as server, Peer(server) as peer:
        peer.send(post_head("/documents", 9) + b'{"path":1')
        assert peer.answer().status in (400, 422)
        ended(server, 5)
