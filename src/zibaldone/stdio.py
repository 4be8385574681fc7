"""MCP over standard input and output: one JSON message per line.

Only protocol messages go to standard output; anything else that prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

from zibaldone.access.principal import Principal
from zibaldone.protocol.admission import admit_modern_body
from zibaldone.protocol.constants import PROTOCOL_VERSION_META_KEY
from zibaldone.protocol.dispatch import dispatch, dispatch_batch
from zibaldone.protocol.jsonrpc import (
    INVALID_REQUEST,
    Message,
    ProtocolError,
    RequestId,
    dumps_line,
    error_envelope,
    id_of,
    parse_body,
    parse_message,
)
from zibaldone.protocol.methods import Request
from zibaldone.protocol.surface import Surface
from zibaldone.protocol.versions import ASSUMED_LEGACY, Version, negotiated
from zibaldone.tools.spec import Call, Runtime

_RUNNING_MAX = 64
"""Concurrent requests; further lines are not read yet."""


class StdioServer:
    def __init__(self, surface: Surface, runtime: Runtime, principal: Principal) -> None:
        self._surface = surface
        self._runtime = runtime
        self._principal = principal
        self._version: Version = ASSUMED_LEGACY
        self._running: set[asyncio.Task[None]] = set()
        self._by_id: dict[RequestId, asyncio.Task[None]] = {}
        self._write: Callable[[Any], None] = lambda envelope: None

    async def serve(self, source: BinaryIO, sink: BinaryIO) -> None:
        """Answer messages until the input ends or nobody reads, then finish what is running."""
        lines = _Lines(source)

        def write(envelope: Any) -> None:
            if lines.is_over:
                return
            try:
                sink.write(dumps_line(envelope) + b"\n")
                sink.flush()
            except OSError:  # the client is gone; each further try would fail as well
                lines.end()

        self._write = write
        try:
            await self._read(lines)
            await asyncio.gather(*self._running, return_exceptions=True)
        finally:
            lines.end()

    async def _read(self, lines: _Lines) -> None:
        bytes_max = self._runtime.limits.request_body_bytes_max
        while line := await lines.next(bytes_max + 1):
            if len(line) > bytes_max:
                while line and not line.endswith(b"\n"):
                    line = await lines.next(bytes_max + 1)
                problem = ProtocolError(
                    INVALID_REQUEST, f"A message is larger than {bytes_max} bytes."
                )
                self._write(error_envelope(None, problem))
            elif line.strip():
                await self._receive(line)

    async def _receive(self, line: bytes) -> None:
        value: Any = None
        try:
            value = parse_body(line)
            if isinstance(value, list):
                await self._start(self._answer_batch(value, self._version, len(line)))
                return
            message = parse_message(value)
            if not message.is_request:
                self._receive_notification(message)
                return
            version = self._version_of(message)
        except ProtocolError as error:
            self._write(error_envelope(id_of(value), error))
            return
        task = await self._start(self._answer(message, version, len(line)))
        self._by_id[message.id] = task
        task.add_done_callback(lambda done: self._forget(message.id, done))

    async def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if len(self._running) >= _RUNNING_MAX:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _forget(self, request_id: RequestId, done: asyncio.Task[None]) -> None:
        """Unless another request has used the same id meanwhile."""
        if self._by_id.get(request_id) is done:
            del self._by_id[request_id]

    def _version_of(self, message: Message) -> Version:
        if PROTOCOL_VERSION_META_KEY in message.meta:
            return admit_modern_body(message)
        if message.method == "initialize":
            self._version = negotiated(message.params.get("protocolVersion"))
        return self._version

    def _receive_notification(self, message: Message) -> None:
        request_id = message.params.get("requestId")
        if message.method == "notifications/cancelled" and isinstance(request_id, str | int):
            task = self._by_id.get(request_id)
            if task is not None:
                task.cancel()

    async def _answer(self, message: Message, version: Version, request_bytes: int) -> None:
        call = Call(
            self._runtime, self._principal, f"stdio-{message.id}", request_bytes=request_bytes
        )
        if self._surface.streams(message):
            call = call.with_notify(self._notify, message.meta.get("progressToken"))
        envelope, _ = await dispatch(Request(message, version, self._surface, call))
        self._write(envelope)

    async def _answer_batch(self, values: list[Any], version: Version, request_bytes: int) -> None:
        call = Call(self._runtime, self._principal, "stdio-batch", request_bytes=request_bytes)
        try:
            envelopes = await dispatch_batch(values, version, self._surface, call)
        except ProtocolError as error:
            self._write(error_envelope(None, error))
            return
        if envelopes:
            self._write(envelopes)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})


class _Lines:
    """Reads lines in a thread of its own, which the end of the process does not wait for.

    A line may never come; the threads of asyncio would be waited for all the same.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._wanted: SimpleQueue[tuple[asyncio.Future[bytes], int] | None] = SimpleQueue()
        self._next: asyncio.Future[bytes] | None = None
        self._loop = asyncio.get_running_loop()
        self.is_over = False
        """Nobody is there to be answered."""
        threading.Thread(target=self._run, name="zibaldone-stdin", daemon=True).start()

    async def next(self, bytes_max: int) -> bytes:
        """The next line, or so much of it; empty at the end."""
        if self.is_over:
            return b""
        self._next = self._loop.create_future()
        self._wanted.put((self._next, bytes_max))
        return await self._next

    def end(self) -> None:
        """Whoever waits for a line gets none, nor does anybody later."""
        self.is_over = True
        self._wanted.put(None)
        if self._next is not None:
            _give(self._next, b"")

    def _run(self) -> None:
        while (asked := self._wanted.get()) is not None:
            wanted, bytes_max = asked
            try:
                line = self._source.readline(bytes_max)
            except (OSError, ValueError):  # it is closed
                line = b""
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_give, wanted, line)


def _give(wanted: asyncio.Future[bytes], line: bytes) -> None:
    if not wanted.done():
        wanted.set_result(line)


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output; from now on `print` writes to standard error."""
    # Not `sys.stdin.buffer`: the interpreter closes it at its end, and cannot while it is read.
    source, sink = os.fdopen(os.dup(sys.stdin.fileno()), "rb"), sys.stdout.buffer
    sys.stdout = sys.stderr
    return source, sink
