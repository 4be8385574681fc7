"""Answers leave whole: the head and the body by one write, whatever the request was like."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.drivers.server import Server


class Wire:
    """A connection on which bytes are looked at as they come."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)

    def send(self, method: str, path: str, *headers: str, body: bytes = b"") -> None:
        lines = (f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *headers, "", "")
        self._socket.sendall("\r\n".join(lines).encode() + body)

    def piece(self) -> bytes:
        """What is there as soon as something is there."""
        return self._socket.recv(1 << 20)

    def answer(self) -> tuple[bytes, bytes]:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields[b"content-length"]):
            body += self._more()
        return head, body

    def _more(self) -> bytes:
        piece = self.piece()
        assert piece, "the connection closed within an answer"
        return piece

    def send_body(self, body: bytes) -> None:
        self._socket.sendall(body)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def wire(shared_server: Server) -> Iterator[Wire]:
    opened = Wire(shared_server)
    yield opened
    opened.close()


def test_the_head_and_the_body_come_together(wire: Wire) -> None:
    for _ in range(50):
        wire.send("GET", "/documents?prefix=nothing-here/")
        head, mark, body = wire.piece().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert mark
        assert body.startswith(b'{"items":[]')
        assert body.endswith(b"}")


def test_an_answer_without_a_body_comes_too_and_the_connection_goes_on(wire: Wire) -> None:
    wire.send("HEAD", "/documents")
    assert wire.piece().endswith(b"\r\n\r\n")
    wire.send("GET", "/documents")
    assert wire.answer()[0].startswith(b"HTTP/1.1 200")


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(wire: Wire) -> None:
    body = b'{"path": "asked/first", "content": "text", "upsert": true}'
    headers = (f"content-length: {len(body)}", "expect: 100-continue")
    wire.send("POST", "/documents", *headers)
    assert wire.piece() == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.send_body(body)
    assert wire.answer()[0].startswith(b"HTTP/1.1 20")


def test_the_last_answer_is_whole_before_the_connection_closes(wire: Wire) -> None:
    wire.send("GET", "/documents", "connection: close")
    assert wire.answer()[1].endswith(b"}")
    assert wire.piece() == b""


def test_what_is_no_http_is_refused_and_the_connection_closes(wire: Wire) -> None:
    wire.send_body(b"\x16\x03\x01\x02\x00 not http\r\n\r\n")
    received = b""
    while piece := wire.piece():
        received += piece
    assert received.startswith(b"HTTP/1.1 400")


def test_requests_sent_in_one_go_are_answered_in_order(wire: Wire, shared_server: Server) -> None:
    for name in ("one", "two", "three"):
        shared_server.client.post("/documents", json={"path": f"pipe/{name}", "content": name})
    for name in ("one", "two", "three"):
        wire.send("GET", f"/documents/pipe/{name}")
    received = b""
    while received.count(b'"content_length"') < 3:
        received += wire.piece()
    places = [received.index(b'"content":"' + name) for name in (b"one", b"two", b"three")]
    assert places == sorted(places)


def test_a_body_that_fills_every_buffer_arrives_whole(wire: Wire, shared_server: Server) -> None:
    content = "0123456789abcdef" * (6 << 16)
    shared_server.client.post("/documents", json={"path": "large/one", "content": content})
    wire.send("GET", "/documents/large/one")
    _, body = wire.answer()
    assert content.encode() in body


_STARTING = """
import gc
from zibaldone.web.server import server

async def app(scope, receive, send):
    pass

def started(port):
    print(gc.get_freeze_count(), len(gc.get_objects()))
    made.should_exit = True

made = server(app, "127.0.0.1", 0, started=started)
made.run()
"""


def test_what_is_there_from_the_start_is_not_looked_at_by_the_collector() -> None:
    """Nobody is served while it looks; at all modules and schemas it looked for 40 ms or more."""
    command = [sys.executable, "-c", _STARTING]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    frozen, left = map(int, run.stdout.split())
    assert frozen > 10 * left
