"""Clients that mean harm, for a soak: each does one thing again and again until it is told to stop.

None of them checks what it gets. What they do to the others is what is looked at.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable

from tests.nightly.cases import Cases, Surface, request_of

_IDLE_CONNECTIONS = 40
_OVERSIZE_BYTES = 40 * 1024 * 1024
_PAUSE_SECONDS = 0.2


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def slow_reader(port: int, headers: str, stop: threading.Event) -> None:
    """Asks for much and reads a byte now and then."""
    while not stop.is_set():
        with contextlib.suppress(OSError), _connect(port) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            ask = f"GET /documents/big HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"
            connection.sendall(ask.encode() * 4)
            for _ in range(50):
                if stop.wait(_PAUSE_SECONDS) or not connection.recv(1):
                    break


def slow_writer(port: int, headers: str, stop: threading.Event) -> None:
    """Sends a body a byte at a time."""
    while not stop.is_set():
        with contextlib.suppress(OSError), _connect(port) as connection:
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: 100000\r\n\r\n"
            )
            connection.sendall(head.encode())
            while not stop.wait(_PAUSE_SECONDS):
                connection.sendall(b" ")


def idler(port: int, headers: str, stop: threading.Event) -> None:
    """Opens connections and says nothing, or half of something."""
    while not stop.is_set():
        with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
            for number in range(_IDLE_CONNECTIONS):
                connection = opened.enter_context(_connect(port))
                if number % 2:
                    connection.sendall(f"GET /health HTTP/1.1\r\n{headers}X-Half".encode())
            stop.wait(10)


def oversize(port: int, headers: str, stop: threading.Event) -> None:
    """Sends bodies over the limit, announced or not, and headers without end."""
    block = b"x" * 65_536
    number = 0
    while not stop.is_set():
        number += 1
        with contextlib.suppress(OSError), _connect(port) as connection:
            start = f"POST /documents HTTP/1.1\r\nHost: localhost\r\n{headers}"
            if number % 3 == 0:
                connection.sendall(start.encode() + b"X-Long: ")
            elif number % 3 == 1:
                connection.sendall(f"{start}Content-Length: {_OVERSIZE_BYTES}\r\n\r\n".encode())
            else:
                connection.sendall(f"{start}Transfer-Encoding: chunked\r\n\r\n".encode())
                block = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
            for _ in range(_OVERSIZE_BYTES // len(block)):
                connection.sendall(block)
        stop.wait(_PAUSE_SECONDS)


def marks(port: int, headers: str, stop: threading.Event) -> None:
    """Searches and writes with long runs of combining marks."""
    text = "a" + "\u0301\u0323" * 60_000
    bodies = (
        ("/search", {"query": "x", "tags": [text]}),
        ("/search", {"query": text[:4_000]}),
        ("/documents", {"path": "hostile/marks", "content": text, "upsert": True}),
        ("/documents", {"path": "hostile/title", "content": "x", "title": text, "upsert": True}),
        ("/documents", {"path": text[:2_000], "content": "x"}),
        ("/documents", {"path": "hostile/metadata", "content": "x", "metadata": {"Tags": text}}),
    )
    for number in range(10**9):
        if stop.wait(_PAUSE_SECONDS):
            return
        url, body = bodies[number % len(bodies)]
        _post(port, url, json.dumps(body).encode(), headers)


def _post(port: int, url: str, body: bytes, headers: str) -> None:
    given = dict(line.split(": ", 1) for line in headers.split("\r\n") if line)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("POST", url, body, {"content-type": "application/json", **given})
        connection.getresponse().read()
    connection.close()


def fuzzer(surface: Surface) -> Callable[[int, str, threading.Event], None]:
    def run(port: int, headers: str, stop: threading.Event) -> None:
        """Sends the fuzzer's cases, fifty a second."""
        extra = headers.encode("latin-1")
        for case in Cases(surface, random.Random(time.time_ns())).in_process(file_share=0.0):
            if stop.wait(0.02):
                return
            request = request_of(case)
            lines = b"".join(
                name + b": " + value + b"\r\n"
                for name, value in request.headers
                if name not in (b"content-length", b"authorization", b"x-api-key")
            )
            head = b"%s %s HTTP/1.1\r\n%s%scontent-length: %d\r\nconnection: close\r\n\r\n" % (
                request.method.encode(), request.target or b"/", lines, extra, len(request.body)
            )  # fmt: skip
            with contextlib.suppress(OSError), _connect(port) as connection:
                connection.sendall(head + request.body)
                while connection.recv(65_536):
                    pass

    return run


KINDS: dict[str, Callable[[int, str, threading.Event], None]] = {
    "slow reader": slow_reader,
    "slow writer": slow_writer,
    "idler": idler,
    "oversize": oversize,
    "marks": marks,
}
