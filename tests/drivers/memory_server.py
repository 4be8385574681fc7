"""What the stand-ins for memory servers share: HTTP, sessions, a record of what was asked, faults.

They run in a thread of the test, over real sockets.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    message: dict[str, Any]
    connection: int

    @property
    def rpc_method(self) -> str:
        return str(self.message.get("method", ""))

    @property
    def tool(self) -> str:
        params = self.message.get("params") or {}
        return str(params.get("name", "")) if self.rpc_method == "tools/call" else ""

    @property
    def arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = (self.message.get("params") or {}).get("arguments") or {}
        return arguments


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection ends: with a reset, or after part of an answer."""

    answer: Answer | None = None


Reply = Answer | Broken
Behaviour = Callable[[Asked], Reply | None]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: MemoryServer
    number: int

    def setup(self) -> None:
        super().setup()
        self.owner = cast("_Listener", self.server).owner
        self.number = self.owner.count_connection()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._reply(raw)

    def do_GET(self) -> None:
        self._reply(b"")

    def do_DELETE(self) -> None:
        self._reply(b"")

    def _reply(self, raw: bytes) -> None:
        try:
            message = json.loads(raw) if raw else {}
        except ValueError:
            message = {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, raw, message, self.number)
        with self.owner.lock:
            self.owner.asked.append(asked)
        reply = self.owner.behaviour(asked)
        if reply is None:
            with self.owner.lock:
                reply = self.owner.respond(asked)
            reply = self.owner.after(asked, reply)
        try:
            self._send(reply)
        except OSError:
            self.close_connection = True

    def _send(self, reply: Reply) -> None:
        if isinstance(reply, Broken):
            self.close_connection = True
            if reply.answer is not None:
                self._write(reply.answer, reply.answer.body[: len(reply.answer.body) // 2])
                return
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            return
        self._write(reply, reply.body)

    def _write(self, answer: Answer, body: bytes) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        del format, arguments

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (OSError, ValueError):  # whoever asked is gone, or we closed it ourselves
            self.close_connection = True

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()


class _Listener(ThreadingHTTPServer):
    allow_reuse_address = True
    request_queue_size = 64
    daemon_threads = True
    block_on_close = False
    owner: MemoryServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request, client_address


class MemoryServer:
    """`behaviour` may answer in place of the server; it is asked before anything is done."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.behaviour: Behaviour = lambda asked: None
        self.after: Callable[[Asked, Reply], Reply] = lambda asked, reply: reply
        """May put another reply in the place of the right one, after it was carried out."""
        self.sessions: set[str] = set()
        self.lock = threading.RLock()
        self._connections = 0
        self._server: _Listener | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    # What a kind of server does itself.

    def respond(self, asked: Asked) -> Reply:
        raise NotImplementedError

    # Running.

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp/"

    def start(self) -> None:
        """On the port of before, if it was started before."""
        self._server = _Listener(("127.0.0.1", self.port), _Handler)
        self._server.owner = self
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def count_connection(self) -> int:
        with self.lock:
            self._connections += 1
            return self._connections

    # Looking at what was asked.

    def calls(self, tool: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.tool == tool]

    def count(self, rpc_method: str) -> int:
        return sum(1 for asked in self.asked if asked.rpc_method == rpc_method)

    def new_session(self) -> str:
        session_id = uuid.uuid4().hex
        self.sessions.add(session_id)
        return session_id


def envelope(asked: Asked, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.message.get("id"), "result": result}


def rpc_error(asked: Asked, code: int, message: str) -> dict[str, Any]:
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": asked.message.get("id"), "error": error}


def as_json(value: Any, status: int = 200, **headers: Any) -> Answer:
    return Answer(
        status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers}
    )


def as_event(value: Any, **headers: str) -> Answer:
    body = b"event: message\r\ndata: " + json.dumps(value).encode() + b"\r\n\r\n"
    return Answer(200, body, {"Content-Type": "text/event-stream", **headers})


class FaultScript:
    """Faults for the next calls of tools, one for each; used up, all goes well.

    `…_after` is carried out first: the client does not learn of it.
    """

    NAMES = (
        *("reset", "reset_after", "cut_after", "429", "502", "503", "504"),
        *("502_after", "504_after", "forget_session"),
    )

    def __init__(self, server: MemoryServer, *, only: str = "") -> None:
        """`only`: faults of calls of this tool."""
        self.pending: deque[str] = deque()
        self._server = server
        self._only = only
        server.behaviour = self._before
        server.after = self._after

    def _is_due(self, asked: Asked) -> bool:
        return bool(asked.tool and self.pending and self._only in ("", asked.tool))

    def _before(self, asked: Asked) -> Reply | None:
        if not self._is_due(asked) or self.pending[0].endswith("_after"):
            return None
        name = self.pending.popleft()
        if name == "reset":
            return Broken()
        if name == "forget_session":
            self._server.sessions.clear()
            return None
        return as_json({"error": name}, int(name), **{"Retry-After": "0"})

    def _after(self, asked: Asked, reply: Reply) -> Reply:
        if not self._is_due(asked) or not self.pending[0].endswith("_after"):
            return reply
        name = self.pending.popleft().removesuffix("_after")
        if name == "reset":
            return Broken()
        if name == "cut":
            assert isinstance(reply, Answer)
            return Broken(reply)
        return as_json({"error": name}, int(name))
