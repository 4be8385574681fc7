"""HTTP over a socket by hand: answers are read strictly, and a request costs little."""

from __future__ import annotations

import asyncio
import contextlib
import json
from types import TracebackType
from typing import Any, Self

from tests.nightly.verdict import Answer


class Broken(Exception):
    """The server closed the connection within an answer, or sent what is no HTTP."""


async def read_answer(reader: asyncio.StreamReader, method: str) -> Answer | None:
    """One answer; None where the server closed without a word."""
    while True:
        head = await _head(reader)
        if head is None:
            return None
        lines = head.split(b"\r\n")
        version, _, rest = lines[0].partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise Broken(f"no status line: {lines[0][:60]!r}")
        status = int(rest[:3])
        if status >= 200 or status == 101:
            break
    answer = Answer(status)
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        answer.headers.append((name.strip().lower(), value.strip()))
    if method != "HEAD" and status not in (101, 204):
        answer.body = await _body(reader, answer)
    answer.is_complete = True
    return answer


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = await reader.readline()
        if not line:
            if head:
                raise Broken("the answer ends within its head")
            return None
        head += line
    return head[:-4]


async def _body(reader: asyncio.StreamReader, answer: Answer) -> bytes:
    length = answer.header(b"content-length")
    if length:
        return await reader.readexactly(int(length))
    if not answer.header(b"transfer-encoding"):
        return await reader.read()
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return body


class Wire:
    """One kept-alive connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, limit=2**20
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def request(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON. A connection that ends before that is a ConnectionError."""
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self._writer.write(head.encode() + data)
        try:
            answer = await read_answer(self._reader, method)
        except (Broken, asyncio.IncompleteReadError) as problem:
            raise ConnectionError("the answer was cut off") from problem
        if answer is None:
            raise ConnectionError("no answer")
        return answer.status, json.loads(answer.body) if answer.body else None
