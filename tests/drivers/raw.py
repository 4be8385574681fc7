"""Requests made of bytes, for what a proper client would not send."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

from tests.drivers.server import Server


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    body: bytes

    def refused(self, status: int, code: str) -> None:
        assert self.status == status, self.body
        assert json.loads(self.body)["code"] == code


def exchange(server: Server, request: bytes, seconds_max: float = 10) -> RawAnswer:
    """Send these bytes, as they are, on a connection of their own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds_max) as connection:
        connection.sendall(request)
        return received(connection)


def received(connection: socket.socket) -> RawAnswer:
    """What the server says; status 0 where it closes without a word."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return RawAnswer(0, data)
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in lines[1:])
    }
    length = int(headers.get(b"content-length", b"-1"))
    while length < 0 or len(body) < length:
        part = connection.recv(65536)
        if not part:
            break
        body += part
    return RawAnswer(int(lines[0].split()[1]), body)


def raw_request(target: bytes, *headers: bytes, method: bytes = b"GET", body: bytes = b"") -> bytes:
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close"]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, *headers, b"", body])
