"""Wake-ups between processes: whoever queued something says so, and workers of others look at once.

They look by themselves, too. So a wake-up may be lost, and nobody waits for one to be sent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

from zibaldone.errors import ZibaldoneError
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Connections, Raw, connect, shut

CHANNEL = "zibaldone_queue"

_INTERVAL_SECONDS = 0.1
"""Between two wake-ups of one process: one stands for all that was queued meanwhile."""

_CLOSE_SECONDS_MAX = 2.0
_RECONNECT_SECONDS = 0.5
_LOOK_SECONDS = 30.0
"""How often a listener sees to it that its connection is still alive."""

_SEND = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%(channel)s, %(name)s)"
"""Nothing is lost with a wake-up, so it waits for no disk and no standby."""

_log = logging.getLogger("zibaldone.store")


class Bell:
    """Sends wake-ups from a thread of its own, after the commit.

    In the transaction of a write, NOTIFY would make commits wait for each other: PostgreSQL holds a
    lock for all of them from before the commit until it is on disk.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.name = f"{os.getpid()}-{id(self):x}-{time.monotonic_ns():x}"
        """Sent along, so that a process need not heed its own."""
        self._is_due = False
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ring(self) -> None:
        """Something was queued; it is committed."""
        if self._is_due:
            return
        with self._lock:
            self._is_due = True
            self._changed.set()
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="zibaldone-bell", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """What is due is sent before."""
        with self._lock:
            self._closing.set()
            self._changed.set()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            self._changed.wait()
            self._changed.clear()
            is_closing = self._closing.is_set()
            if self._is_due:
                self._is_due = False
                self._send()
            self._closing.wait(_INTERVAL_SECONDS)

    def _send(self) -> None:
        try:
            raw = self._connections.take()
            try:
                raw.execute(_SEND, {"channel": CHANNEL, "name": self.name})
            finally:
                self._connections.give_back(raw)
        except (psycopg.Error, ZibaldoneError) as problem:
            _log.debug("a wake-up was not sent: %s", type(problem).__name__)


class Listener:
    """Hears the wake-ups of others, on a connection and in a thread of its own."""

    def __init__(self, address: Address, own_name: str) -> None:
        self._address = address.direct
        self._own_name = own_name

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` for each, until cancelled. Returns where a pooler is in between."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def in_loop(call: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(call)

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        ear = _Ear(
            self._address,
            self._own_name,
            heard=lambda: in_loop(wake),
            ended=lambda: in_loop(end),
        )
        ear.start()
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            ear.stop()
            await asyncio.wait([ended], timeout=_CLOSE_SECONDS_MAX)
            raise


class _Ear(threading.Thread):
    def __init__(
        self,
        address: Address,
        own_name: str,
        *,
        heard: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        super().__init__(name="zibaldone-listen", daemon=True)
        self._address = address
        self._own_name = own_name
        self._heard = heard
        self._ended = ended
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._raw: Raw | None = None

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._raw is not None:
                shut(self._raw)

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self._listen():
                    return
        finally:
            self._ended()

    def _listen(self) -> bool:
        """Until the connection is lost. False: it is no use."""
        try:
            raw = connect(self._address)
        except ZibaldoneError as problem:
            _log.debug("wake-ups are not heard: %s", problem.message)
            self._stopping.wait(_RECONNECT_SECONDS)
            return True
        try:
            if raw.is_pooled:
                _log.info(
                    "a pooler is in between, so that wake-ups of other servers are not heard: "
                    "workers look twice a second; direct_host in the URL of the store mends that"
                )
                return False
            with self._lock:
                self._raw = raw
                if self._stopping.is_set():
                    return False
            self._hear(raw)
        except (psycopg.Error, OSError) as problem:
            if not self._stopping.is_set():
                _log.info("the connection for wake-ups was lost: %s", type(problem).__name__)
                self._stopping.wait(_RECONNECT_SECONDS)
        finally:
            with self._lock:
                self._raw = None
            raw.close()
        return True

    def _hear(self, raw: Raw) -> None:
        raw.execute(f"LISTEN {CHANNEL}".encode())
        while not self._stopping.is_set():
            self._heard()  # of what was queued before, while nobody listened
            for notification in raw.notifies(timeout=_LOOK_SECONDS):
                if notification.payload != self._own_name:
                    self._heard()
            raw.execute("SELECT 1")
