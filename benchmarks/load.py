"""Load on a server: HTTP/1.1 on kept-alive connections, one request at a time on each.

The client shares the machine with the server it measures, so it does as little as it can: requests
are bytes made beforehand, and of an answer only its status and its end are looked at.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import uvloop

from benchmarks.report import percentile
from benchmarks.servers.process import ServerProcess

_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"


def request(
    method: str, path: str, body: bytes | None = None, headers: Iterable[str] = ()
) -> bytes:
    """A whole request as bytes. The header lines are those of an ordinary client."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: 127.0.0.1:8321",
        "accept-encoding: identity",
        *headers,
    ]
    if not any(line.lower().startswith("accept:") for line in lines):
        lines.append("accept: application/json")
    if body is not None:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and what is asked of it."""

    name: str
    server: ServerProcess
    requests: Sequence[bytes]
    """Sent over and over, in order."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one target did while it had the machine for itself."""

    seconds: float
    cpu_us: float
    """Server CPU for each request."""
    latencies_us: tuple[float, ...]
    """Ascending."""

    @property
    def per_second(self) -> float:
        return len(self.latencies_us) / self.seconds

    @property
    def p50_us(self) -> float:
        return percentile(self.latencies_us, 50)

    @property
    def p95_us(self) -> float:
        return percentile(self.latencies_us, 95)


def interleaved(
    targets: Sequence[Target], *, connections: int = 1, rounds: int, seconds: float
) -> dict[str, list[Stretch]]:
    """Each target in turn, again and again, so that what else the machine does hits all alike.

    Short stretches and many rounds: a busy moment of the machine spoils few of them, and the
    median of the rounds does not see those.
    """
    found: dict[str, list[Stretch]] = {target.name: [] for target in targets}
    for target in targets:
        run_stretch(target, connections=connections, seconds=seconds / 2)  # warms caches
    for number in range(rounds):
        turn = number % len(targets)
        for target in (*targets[turn:], *targets[:turn]):
            stretch = run_stretch(target, connections=connections, seconds=seconds)
            found[target.name].append(stretch)
    return found


def run_stretch(target: Target, *, connections: int, seconds: float) -> Stretch:
    def within_time() -> Iterator[bytes]:
        until_s = time.perf_counter() + seconds
        for made in itertools.cycle(target.requests):
            if time.perf_counter() >= until_s:
                return
            yield made

    return send_all(target.server, within_time(), connections=connections)


def send_all(server: ServerProcess, requests: Iterator[bytes], *, connections: int) -> Stretch:
    """Send every request; each connection takes the next one when it has its answer."""
    return spread_all((server,), requests, connections=connections)


def spread_all(
    servers: Sequence[ServerProcess], requests: Iterator[bytes], *, connections: int
) -> Stretch:
    """The same over several servers, which have as many connections each. CPU is that of all."""

    def cpu_seconds() -> float:
        return sum(server.cpu_seconds() for server in servers)

    ports = [servers[number % len(servers)].port for number in range(connections)]
    cpu_before_s, started_s = cpu_seconds(), time.perf_counter()
    latencies_us = uvloop.run(_send(ports, requests))
    seconds = time.perf_counter() - started_s
    cpu_us = (cpu_seconds() - cpu_before_s) * 1e6 / len(latencies_us)
    return Stretch(seconds, cpu_us, tuple(sorted(latencies_us)))


def fetch(server: ServerProcess, made: bytes) -> bytes:
    """The body of one answer."""
    return fetch_whole(server, made).partition(b"\r\n\r\n")[2]


def fetch_whole(server: ServerProcess, made: bytes) -> bytes:
    """One answer as it came, with its head."""
    answers: list[bytes] = []
    uvloop.run(_send((server.port,), iter((made,)), answers.append))
    return answers[0]


async def _send(
    ports: Sequence[int],
    requests: Iterator[bytes],
    keep: Callable[[bytes], None] | None = None,
) -> list[float]:
    loop = asyncio.get_running_loop()
    latencies_us: list[float] = []
    over = [loop.create_future() for _ in ports]
    for port, done in zip(ports, over, strict=True):
        await loop.create_connection(
            lambda done=done: _Connection(requests, latencies_us, done, keep),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    await asyncio.gather(*over)
    return latencies_us


class _Connection(asyncio.Protocol):
    def __init__(
        self,
        requests: Iterator[bytes],
        latencies_us: list[float],
        over: asyncio.Future[None],
        keep: Callable[[bytes], None] | None,
    ) -> None:
        self._requests = requests
        self._latencies_us = latencies_us
        self._over = over
        self._keep = keep
        self._received = b""
        self._sent_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send_next()

    def _send_next(self) -> None:
        made = next(self._requests, None)
        if made is None:
            self._over.set_result(None)
            self._transport.close()
            return
        self._sent_s = time.perf_counter()
        self._transport.write(made)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        if not _is_whole(received):
            self._received = received
            return
        self._latencies_us.append((time.perf_counter() - self._sent_s) * 1e6)
        self._received = b""
        if not received.startswith(b"HTTP/1.1 20"):
            self._fail(f"unexpected answer: {received[:500]!r}")
            return
        if self._keep is not None:
            self._keep(received)
        self._send_next()

    def connection_lost(self, problem: Exception | None) -> None:
        self._fail(f"the connection closed before the answer was whole: {problem}")

    def _fail(self, why: str) -> None:
        if not self._over.done():
            self._over.set_exception(RuntimeError(why))
            self._transport.close()


def _is_whole(received: bytes) -> bool:
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _CONTENT_LENGTH.search(received, 0, end + 2)
    if length is not None:
        return len(received) >= end + 4 + int(length.group(1))
    if _CHUNKED.search(received, 0, end + 2):
        return received.endswith(_LAST_CHUNK)
    return True
