"""The HTTP server: uvicorn, with one change.

uvicorn sends the head and the body of an answer by two system calls, and the head wakes a client
that then has to wait for the body. Here they are sent together at the end of the event loop's step,
as are all answers of that step. A small answer costs a third less (docs/benchmarks.md, "HTTP").
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from zibaldone.web.app import App

_KEEP_ALIVE_SECONDS = 75
_SHUTDOWN_SECONDS = 10
_BACKLOG = 2048


def server(app: App, host: str, port: int) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=JoiningProtocol,
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        backlog=_BACKLOG,
    )
    return uvicorn.Server(config)


class JoiningTransport:
    """A transport that joins all writes of one step of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._call_soon = loop.call_soon
        self._waiting: list[bytes] = []
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._waiting:
            self._call_soon(self._flush)
        self._waiting.append(data)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        # Nothing is left where `close` has flushed already; nobody reads where the peer is gone.
        if waiting and not self.is_closing():
            self._transport.writelines(waiting)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class JoiningProtocol(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(JoiningTransport(transport, self.loop))
