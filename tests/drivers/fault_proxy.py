"""A proxy in a process of its own that breaks what passes through it, in ways networks do.

    python -m tests.drivers.fault_proxy PORT UPSTREAM_PORT

`POST /__faults` sets what comes next, `GET /__faults` tells what came. Each request that calls a
tool takes the next fault of the script; after the script, or without one, all goes well. Faults
that end in `_after` happen when the request has been carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from typing import Any

import httpx2 as httpx

FAULTS = (
    *("refused", "reset", "reset_after", "slow", "slow_after", "trickle_after"),
    *("cut_request", "cut_after", "429", "502", "503", "504", "502_after", "503_after"),
    *("504_after", "401", "forget_session"),
)
_SLOW_SECONDS = 0.8
"""Longer than the clients of the tests wait."""
_REFUSED_SECONDS = 0.1
_CONTROL = b"/__faults"


class Proxy:
    def __init__(self, port: int, upstream_port: int) -> None:
        self._port = port
        self._upstream_port = upstream_port
        self._script: deque[str] = deque()
        self._seen: list[str] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        await self._listen()
        await asyncio.Event().wait()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, reuse_address=True
        )

    async def _refuse(self) -> None:
        """Nobody listens for a while."""
        assert self._server is not None
        self._server.close()
        await asyncio.sleep(_REFUSED_SECONDS)
        await self._listen()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                await self._pass_on(*request, writer)
        except (OSError, EOFError, asyncio.IncompleteReadError, _Ended):
            pass
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    async def _pass_on(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        if head.split(b" ", 2)[1] == _CONTROL:
            await self._control(head, body, writer)
            return
        fault = self._next_fault(body)
        await self._break_before(fault, head, body, writer)
        try:
            answer = await self._ask(head, body)
        except OSError:
            await _send(writer, 502, "the server is away")
            return
        await self._break_after(fault, answer, writer)
        writer.write(answer)
        await writer.drain()

    def _next_fault(self, body: bytes) -> str:
        if b'"tools/call"' not in body:
            return ""
        fault = self._script.popleft() if self._script else ""
        self._seen.append(fault)
        return fault

    async def _break_before(
        self, fault: str, head: bytes, body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        if fault == "refused":
            _reset(writer)
            await self._refuse()
            raise _Ended
        if fault == "reset":
            _reset(writer)
            raise _Ended
        if fault == "slow":
            await asyncio.sleep(_SLOW_SECONDS)
            raise _Ended  # whoever asked has gone
        if fault == "cut_request":
            with contextlib.suppress(OSError):
                await self._ask(head, body[: len(body) // 2], is_cut=True)
            raise _Ended
        if fault == "forget_session":
            await _send(writer, 404, "Session not found")
            raise _Ended
        if fault.isdigit():
            await _send(writer, int(fault), fault)
            raise _Ended

    async def _break_after(self, fault: str, answer: bytes, writer: asyncio.StreamWriter) -> None:
        if not fault.endswith("_after"):
            return
        name = fault.removesuffix("_after")
        if name == "reset":
            _reset(writer)
        elif name == "slow":
            await asyncio.sleep(_SLOW_SECONDS)
        elif name == "cut":
            writer.write(answer[: len(answer) - 20])
            await writer.drain()
        elif name == "trickle":
            for byte in answer[:-1]:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)
        elif name == "hold":
            self._seen[-1] = "held"
            await asyncio.sleep(30)
        else:
            await _send(writer, int(name), name)
        raise _Ended

    async def _ask(self, head: bytes, body: bytes, *, is_cut: bool = False) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        try:
            writer.write(head + body)
            await writer.drain()
            if is_cut:
                return b""
            status = await reader.readuntil(b"\r\n\r\n")
            length = _length(status)
            return status + await reader.readexactly(length)
        finally:
            writer.close()

    async def _control(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"POST"):
            self._script = deque(json.loads(body))
            self._seen = []
        await _send(writer, 200, json.dumps({"seen": self._seen, "left": len(self._script)}))


class _Ended(Exception):
    """The connection is to be closed."""


async def _read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    return head, await reader.readexactly(_length(head))


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _send(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status} Fault\r\nContent-Length: {len(body)}\r\nRetry-After: 0\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    opened = writer.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


class FaultProxy:
    """The proxy from outside."""

    def __init__(self, port: int, upstream_port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(port), str(upstream_port)]
        )
        self._client = httpx.Client(base_url=self.url, timeout=10, trust_env=False)
        deadline_s = time.monotonic() + 30
        while True:
            try:
                self.script([])
                return
            except httpx.ConnectError:
                assert time.monotonic() < deadline_s, "the proxy did not start"
                time.sleep(0.02)

    def script(self, faults: list[str]) -> None:
        self._ask("POST", json=faults)

    def seen(self) -> list[str]:
        """The fault of each call of a tool since the last script; empty: none."""
        seen: list[str] = self._ask("GET")["seen"]
        return seen

    def _ask(self, method: str, **more: Any) -> Any:
        return self._client.request(method, "/__faults", **more).json()

    def close(self) -> None:
        self._client.close()
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    asyncio.run(Proxy(int(sys.argv[1]), int(sys.argv[2])).run())
