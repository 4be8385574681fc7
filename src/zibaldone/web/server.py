"""The HTTP server under the application: uvicorn with our connections, and an end that comes.

From the first signal on a thread counts the time down: whatever still runs then (a thread that
cannot be interrupted, a client that does not read), the store is closed and the process ends. That
loses nothing: what was acknowledged is on disk.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from socket import SO_SNDBUF, SOL_SOCKET, socket
from types import FrameType
from typing import Any

import uvicorn

from zibaldone.limits import SEND_BUFFER_BYTES, THREADS, Limits
from zibaldone.web.accept import Acceptor, accepts_one_by_one
from zibaldone.web.app import App
from zibaldone.web.connections import Connections
from zibaldone.web.guard import STOPPING
from zibaldone.web.lag import loop_lag
from zibaldone.web.wire import Connection, connection_class

_BACKLOG = 2048
_TICKS_PER_SECOND = 10
_TICK_SECONDS = 1 / _TICKS_PER_SECOND

_SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps the interpreter from the event loop and from threads that
answer others, five times less than Python's own setting: a small write waits for it many times."""

_REQUESTS_SHARE = 0.7
"""Of the time until the end, how much running requests get; the rest is to clean up."""

_CLOSE_SECONDS_MAX = 1.0
"""How long the store may take to close when the time is over."""

_log = logging.getLogger("zibaldone.web")


def server(
    app: App,
    host: str,
    port: int,
    limits: Limits | None = None,
    *,
    close: Callable[[], None] = lambda: None,
    started: Callable[[int], None] = lambda port: None,
    connection: type[Connection] | None = None,
) -> Server:
    """`close` closes the store; it is called when time is over and nobody else has ended.

    `started` is told the port when the server listens.
    """
    limits = limits or Limits()
    connections = Connections(limits)
    made: Any = functools.partial(_connect, connection or connection_class(), connections)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=made,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # who calls through a proxy is decided in web/auth.py
        timeout_keep_alive=int(limits.idle_seconds_max),
        backlog=_BACKLOG,
    )
    return Server(config, connections, limits.shutdown_seconds_max, close, started)


def _connect(kind: type[Connection], connections: Connections, **arguments: Any) -> Connection:
    made = kind(**arguments)
    made.registry = connections
    return made


class Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        connections: Connections,
        seconds_max: float,
        close: Callable[[], None],
        on_started: Callable[[int], None],
    ) -> None:
        super().__init__(config)
        self._connections = connections
        self._seconds_max = seconds_max
        self._close = close
        self._on_started = on_started
        self._acceptors: list[Acceptor] = []
        self._signalled_s: float | None = None
        self._ticked_s = 0.0

    async def startup(self, sockets: list[socket] | None = None) -> None:
        # The same on machines with few cores, where asyncio would have six of them.
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="zibaldone-work")
        asyncio.get_running_loop().set_default_executor(threads)
        await super().startup(sockets)
        sys.setswitchinterval(_SWITCH_SECONDS)
        if self.started:
            # Modules, tools and schemas stay for good. The collector looks at what it knows every
            # few hundred requests, and nobody is served while it looks at all of them: 40 ms.
            gc.collect()
            gc.freeze()
            listening = [found for each in self.servers for found in each.sockets]
            for found in listening:  # connections inherit it
                found.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)
            if accepts_one_by_one(asyncio.get_running_loop()):
                self._acceptors = [Acceptor(found, self._make_connection) for found in listening]
            self._on_started(listening[0].getsockname()[1])

    def _make_connection(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        made: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    async def on_tick(self, counter: int) -> bool:
        now_s = time.monotonic()
        if counter:
            loop_lag.observe(now_s - self._ticked_s - _TICK_SECONDS)
        if counter % _TICKS_PER_SECOND == 0:
            self._connections.sweep()
        self._ticked_s = time.monotonic()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._signalled_s is None:
            self._signalled_s = time.monotonic()
            threading.Thread(target=self._end_in_time, name="zibaldone-end", daemon=True).start()
        super().handle_exit(sig, frame)

    def _end_in_time(self) -> None:
        time.sleep(max(0.0, self._seconds_max - _CLOSE_SECONDS_MAX))
        _log.warning(
            "work that cannot be interrupted is still running; the process ends without it"
        )
        closing = threading.Thread(target=self._close_store, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS_MAX)
        sys.stderr.flush()
        os._exit(0)

    def _close_store(self) -> None:
        with suppress(Exception):  # it may be half closed already; the process ends anyway
            self._close()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Answer what runs, for as long as there is time; then end it, and the background work."""
        _log.info("shutting down")
        for acceptor in self._acceptors:
            acceptor.close()
        for listener in self.servers:
            listener.close()
        for listening in sockets or ():
            listening.close()
        self._connections.shutdown()
        started_s = self._signalled_s or time.monotonic()
        requests_end_s = started_s + self._seconds_max * _REQUESTS_SHARE
        await self._until_quiet(requests_end_s)
        tasks = tuple(self.server_state.tasks)
        if tasks:
            _log.warning("%d requests are ended before their answer", len(tasks))
            self._connections.end_answers()
            for task in tasks:
                task.cancel(msg=STOPPING)
            await asyncio.wait(tasks, timeout=_TICK_SECONDS * 5)
            await asyncio.sleep(_TICK_SECONDS)  # what was just said leaves before the end
        self._connections.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds_max * (1 - _REQUESTS_SHARE) / 2):
                await self.lifespan.shutdown()

    async def _until_quiet(self, end_s: float) -> None:
        state = self.server_state
        while (state.tasks or state.connections) and not self.force_exit:
            if time.monotonic() > end_s:
                return
            await asyncio.sleep(_TICK_SECONDS / 2)
