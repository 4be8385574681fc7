"""A hostile peer on a raw socket, and a second client that measures whether it is still served."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Self

import httpx2 as httpx
import psutil

from tests.drivers.raw import RawAnswer, received
from tests.drivers.server import Server

SERVED_SECONDS_MAX = 10.0
"""How long the second client may ever wait for a read and a write, on a machine that runs other
tests at the same time. Alone they take some milliseconds."""


class Peer:
    """One connection on which any bytes can be sent."""

    def __init__(self, server: Server, *, source: str = "127.0.0.1", small: bool = False) -> None:
        self.socket = socket.socket()
        if small:  # so that little of an answer fits into the system's buffers
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.bind((source, 0))
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", server.port))

    def send(self, data: bytes) -> bool:
        """False where the server no longer listens."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def answer(self) -> RawAnswer:
        with contextlib.suppress(ConnectionError):
            return received(self.socket)
        return RawAnswer(0, b"")

    def has_answer(self) -> bool:
        """Whether there is something to read, without waiting for it."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def is_closed(self, seconds_max: float) -> bool:
        """Whether the server closes the connection in that time; what it says is read away."""
        end_s = time.monotonic() + seconds_max
        while (left_s := end_s - time.monotonic()) > 0:
            self.socket.settimeout(left_s)
            try:
                if not self.socket.recv(1 << 20):
                    return True
            except TimeoutError:
                return False
            except ConnectionError:
                return True
        return False

    def read_to_end(self) -> int:
        """How many bytes there are until the server closes."""
        size_bytes = 0
        with contextlib.suppress(ConnectionError):
            while part := self.socket.recv(1 << 20):
                size_bytes += len(part)
        return size_bytes

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def peers(server: Server, count: int, **options: Any) -> Iterator[list[Peer]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Peer(server, **options)) for _ in range(count)]


class Bystander:
    """Reads and writes like any client, all the time; every answer must come, and soon."""

    def __init__(self, server: Server, headers: Mapping[str, str] | None = None) -> None:
        self._client = httpx.Client(
            base_url=server.url, timeout=20, trust_env=False, headers=dict(headers or {})
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.statuses: set[int] = set()
        self.problems: list[str] = []
        self.longest_s = 0.0
        self.count = 0

    def _run(self) -> None:
        while True:  # at least one round, however soon the attack is over
            started_s = time.perf_counter()
            try:
                self.statuses.add(self._client.get("/documents?limit=1").status_code)
                given = {"path": "bystander", "content": "x", "upsert": True}
                self.statuses.add(self._client.post("/documents", json=given).status_code)
            except httpx.HTTPError as problem:
                self.problems.append(repr(problem))
            self.longest_s = max(self.longest_s, time.perf_counter() - started_s)
            self.count += 1
            if self._over.wait(0.02):
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()
        if kind is None:
            self.assert_served()

    def wait_for_a_round(self) -> None:
        """What it is to be measured beside may be over before its first round."""
        count = self.count
        while self.count == count and not self.problems:
            time.sleep(0.01)

    def assert_served(self) -> None:
        assert not self.problems
        assert self.count
        assert self.statuses <= {200, 201}, self.statuses
        assert self.longest_s < SERVED_SECONDS_MAX, f"{self.longest_s:.1f} s"


def resident_mib(server: Server) -> float:
    return float(psutil.Process(server.process.pid).memory_info().rss) / (1 << 20)


def post_head(path: str, length: int, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {length}", *headers)
    return "\r\n".join((*lines, "", "")).encode()


def call(tool: str, arguments: Mapping[str, object]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message).encode()
