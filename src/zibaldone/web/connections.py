"""All open connections: how many there may be, how long each may take, what unread answers weigh.

One look a second over all of them takes the place of timers: a request sets none and clears none.
Time limits are therefore kept to within a second.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from prometheus_client import Counter as Count
from prometheus_client import Gauge

from zibaldone.errors import RequestTimeout, TooManyConnections
from zibaldone.limits import (
    LINGER_SECONDS_MAX,
    STALLED_SECONDS,
    TRANSFER_BYTES_PER_SECOND_MIN,
    Limits,
)

if TYPE_CHECKING:
    from zibaldone.web.wire import Connection

if sys.platform != "win32":
    import resource

_OPEN = Gauge("zibaldone_connections", "Open HTTP connections.")
_ENDED = Count("zibaldone_connections_ended", "Connections ended by the server.", ("reason",))

_FILES_RESERVED = 128
"""Files of the process that are not connections: the store, the log, conversions."""

_SCAN_SECONDS_MIN = 0.1
"""Where no connection could make room, how soon one is looked for again."""

_STRANGERS_SECONDS_MIN = 0.005
"""The same before a connection of somebody known makes room for a stranger."""


class Phase(Enum):
    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    RUNNING = "running"
    DISCARDING = "discarding"
    """The request was answered; what still arrives of it is thrown away."""


def _may_go(connection: Connection) -> bool:
    """Nobody who was admitted waits for an answer: a stranger could wait for one, or leave it
    unread, on every connection there may be."""
    return connection.phase() is not Phase.RUNNING or not connection.is_needed


@dataclass(slots=True)
class Unread:
    """An answer, or a part of one, that the client has not read yet."""

    key_id: str
    since_s: float
    size_bytes: int
    read_bytes: int = 0


class Connections:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._max = min(limits.connections_max, _files_max(limits.connections_max))
        self._open: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._unread: dict[Connection, Unread] = {}
        self._waiting: deque[Connection] = deque()
        """Those that could make room when last looked for, the first to go first: strangers."""
        self._waiting_of: dict[str, deque[Connection]] = {}
        self._barren_until_s = float("-inf")
        self._scanned_s = float("-inf")
        self._resting: deque[Connection] = deque()
        """Those that brought much, in the order in which they are read again."""
        self._following: deque[Connection] = deque()
        """Those that sent requests ahead, in the order in which these are begun."""
        self._is_ending = False

    def __len__(self) -> int:
        return len(self._open)

    # Coming and going

    def enter(self, connection: Connection) -> None:
        """Admit a new connection; where there is no room, another one makes it or it is refused."""
        address = connection.address
        has_room = (
            self._by_address[address] < self._limits.connections_per_address_max
            or self._evict(address)
        ) and (len(self._open) < self._max or self._evict(None))
        self._open.add(connection)
        self._by_address[address] += 1
        connection.since_s = time.monotonic()
        if not has_room:
            _ENDED.labels("refused").inc()
            connection.refuse(TooManyConnections("The server has too many connections; try later."))
            connection.transport.close()
        elif self._is_ending:
            connection.shutdown()

    def leave(self, connection: Connection) -> None:
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._unread.pop(connection, None)
        address = connection.address
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _evict(self, address: str | None) -> bool:
        """Close the connection that has waited longest, of the address or of all."""
        victim = self._next_victim(address)
        if victim is None and time.monotonic() > self._barren_until_s:
            self._scan()
            victim = self._next_victim(address)
            if victim is None:
                self._barren_until_s = time.monotonic() + _SCAN_SECONDS_MIN
        if victim is None:
            return False
        _ENDED.labels("evicted").inc()
        victim.abort()
        self.leave(victim)
        return True

    def _next_victim(self, address: str | None) -> Connection | None:
        waiting = self._waiting if address is None else self._waiting_of.get(address)
        is_old = time.monotonic() - self._scanned_s > _STRANGERS_SECONDS_MIN
        while waiting:
            if is_old and _is_known(waiting[0]):
                return None  # strangers may have come since
            connection = waiting.popleft()
            if connection in self._open and _may_go(connection):
                return connection
        return None

    def _scan(self) -> None:
        """List those that can make room, so that each of the next needs no look at all of them."""
        self._scanned_s = time.monotonic()
        waiting = [found for found in self._open if _may_go(found)]
        # Those that never had a request admitted first: whoever has no key can push out nobody who
        # has. Then the longest wait. An address with many connections loses before one with few:
        # each of its connections counts as a second more.
        waiting.sort(
            key=lambda found: (
                _is_known(found),
                found.since_s - self._by_address[found.address],
            )
        )
        self._waiting = deque(waiting)
        self._waiting_of = {}
        for connection in waiting:
            self._waiting_of.setdefault(connection.address, deque()).append(connection)

    # Those that send much

    def rest(self, connection: Connection) -> None:
        """Read on from it in a later step of the event loop: from one such connection in each."""
        if not self._resting:
            connection.loop.call_soon(self._read_next)
        self._resting.append(connection)

    def _read_next(self) -> None:
        connection = self._resting.popleft()
        if self._resting:  # first: an error must not leave the others waiting
            connection.loop.call_soon(self._read_next)
        connection.read_on()

    # Those that send ahead

    def follow(self, connection: Connection) -> None:
        """Begin its next request in a later step of the event loop: one such request in each.

        New connections are accepted once in each step, so steps have to be short: a thousand
        strangers who send sixty requests ahead would keep everybody else at the door.
        """
        if not self._following:
            connection.loop.call_soon(self._start_next)
        self._following.append(connection)

    def _start_next(self) -> None:
        connection = self._following.popleft()
        if self._following:
            connection.loop.call_soon(self._start_next)
        connection.start_next()

    # Time limits

    def sweep(self) -> None:
        """Look at every connection and end those that took too long."""
        now_s = time.monotonic()
        for connection in tuple(self._open):
            self._look_at(connection, now_s)
        for connection, unread in tuple(self._unread.items()):
            self._look_at_unread(connection, unread, now_s)
        _OPEN.set(len(self._open))

    def _look_at(self, connection: Connection, now_s: float) -> None:
        phase = connection.phase()
        seen = (phase, connection.requests_served)
        if seen != connection.seen:
            connection.seen = seen
            connection.since_s = now_s
            return
        waited_s = now_s - connection.since_s
        limits = self._limits
        match phase:
            case Phase.IDLE:
                # One that never sent a request has no claim to be kept for the next.
                is_used = connection.requests_served > 0
                if waited_s > (limits.idle_seconds_max if is_used else limits.head_seconds_max):
                    _ENDED.labels("idle").inc()
                    connection.transport.close()
            case Phase.HEAD if waited_s > limits.head_seconds_max:
                _ENDED.labels("slow head").inc()
                connection.refuse(RequestTimeout("The headers took too long to arrive."))
            case Phase.BODY if connection.is_held_back:
                connection.since_s = now_s  # it is we who do not read
            case Phase.BODY if waited_s > limits.body_seconds_max + _seconds(connection.body_bytes):
                _ENDED.labels("slow body").inc()
                connection.refuse(RequestTimeout("The body took too long to arrive."))
            case Phase.DISCARDING if waited_s > LINGER_SECONDS_MAX:
                connection.abort()

    # Answers that are not read

    def stalled(self, connection: Connection) -> None:
        """The client reads more slowly than it is written to."""
        now_s = time.monotonic()
        size_bytes = connection.transport.get_write_buffer_size()
        unread = Unread(connection.key_id, now_s, size_bytes)
        self._unread[connection] = unread
        self._bound_unread(connection, now_s, unread.key_id)
        self._bound_unread(connection, now_s, None)

    def flowing(self, connection: Connection) -> None:
        """The client has caught up."""
        self._unread.pop(connection, None)

    def _look_at_unread(self, connection: Connection, unread: Unread, now_s: float) -> None:
        size_bytes = connection.transport.get_write_buffer_size()
        unread.read_bytes += max(0, unread.size_bytes - size_bytes)
        unread.size_bytes = size_bytes
        seconds_max = self._limits.write_seconds_max + _seconds(unread.read_bytes)
        if now_s - unread.since_s > seconds_max:
            self._drop(connection)

    def _bound_unread(self, newest: Connection, now_s: float, key_id: str | None) -> None:
        """Drop answers until those of the key, or all, fit: first those stalled for long."""
        bytes_max = (
            self._limits.bytes_in_flight_max
            if key_id is None
            else self._limits.bytes_in_flight_per_key_max
        )
        held = [
            (connection, unread)
            for connection, unread in self._unread.items()
            if key_id is None or unread.key_id == key_id
        ]
        size_bytes = sum(unread.size_bytes for _, unread in held)
        for connection, unread in held:  # oldest first
            if size_bytes <= bytes_max:
                return
            if now_s - unread.since_s > STALLED_SECONDS:
                size_bytes -= unread.size_bytes
                self._drop(connection)
        if size_bytes > bytes_max:
            self._drop(newest)

    def _drop(self, connection: Connection) -> None:
        _ENDED.labels("unread").inc()
        self._unread.pop(connection, None)
        connection.loop.call_soon(connection.abort)  # not now: we may be inside its `write`

    # The end

    def shutdown(self) -> None:
        """Answer what runs, and nothing else; who was let in but has not entered yet does not."""
        self._is_ending = True
        for connection in tuple(self._open):
            connection.shutdown()

    def end_answers(self) -> None:
        """Cut off answers that have begun; who has got nothing yet can still be told why."""
        for connection in tuple(self._open):
            connection.end_request()

    def abort(self) -> None:
        for connection in tuple(self._open):
            connection.abort()


def _is_known(connection: Connection) -> bool:
    return connection.is_known or bool(connection.key_id)


def _seconds(size_bytes: int) -> float:
    return size_bytes / TRANSFER_BYTES_PER_SECOND_MIN


def _files_max(wanted: int) -> int:
    """How many connections the system lets us have; asks it for as many as are wanted."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _FILES_RESERVED
    if soft != resource.RLIM_INFINITY and soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        return max(1, min(wanted, soft - _FILES_RESERVED))
    return wanted
