"""What runs at once, and how many bytes of requests are held for it.

A request passes the gate after its body has arrived, so a peer that sends slowly holds no place in
it. A body that came with its headers costs nothing here; a longer one first reserves its bytes, in
all and for its key, and waits a while for others to leave. Beyond that a caller is told to come
back.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import dataclass

from zibaldone.access.principal import Principal
from zibaldone.access.turns import TaskTurns, Turns
from zibaldone.errors import TooManyRequests
from zibaldone.limits import (
    BATCHES,
    BATCHES_EXTRA,
    BATCHES_PER_KEY,
    BODY_EXTRA_BYTES_MAX,
    BODY_WAIT_SECONDS_MAX,
    JSON_VALUES_MAX,
    TOOL_REQUEST_BYTES_MAX,
    UNCOUNTED_BYTES_MAX,
    Limits,
)
from zibaldone.text.json_values import ValueCount
from zibaldone.web.http import (
    KEY_ID_KEY,
    HttpScope,
    Receive,
    header,
    next_part,
    payload_too_large,
)
from zibaldone.web.pace import Pace
from zibaldone.web.rate import Rate

RETRY_AFTER_SECONDS = 1
_BODILESS = frozenset({"GET", "HEAD", "DELETE"})
_PROMPT_SECONDS = 0.05
"""A body that took longer did not come with its headers."""


@dataclass(slots=True)  # made for every request: frozen costs three times as much
class Admission:
    """A request that is in: its body, and what it takes."""

    key_id: str
    body: bytes = b""
    has_waited: bool = False
    """The body took its time: the key may have been revoked meanwhile."""
    held_bytes: int = 0
    count: ValueCount | None = None
    """Of the values in a body that came in several parts."""


class Gate:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: dict[str, int] = {}
        """Requests that run, by key; a key without one is not there."""
        self._total = 0
        self._arriving: Counter[str] = Counter()
        """Requests whose body is still arriving, by key."""
        self._rate = Rate(limits.requests_per_minute_max)
        self.pace = Pace()
        self.batches = TaskTurns(Turns(BATCHES, per_share=BATCHES_PER_KEY, extra=BATCHES_EXTRA))
        """Held by a batch from its first message until its answer is handed over."""
        self._memory = Memory(limits.bytes_in_flight_max, limits.bytes_in_flight_per_key_max)

    async def admit(self, principal: Principal, scope: HttpScope, receive: Receive) -> Admission:
        """Read the body, then take a place among those that run. Whoever is let in must `leave`."""
        key_id = principal.key_id
        scope[KEY_ID_KEY] = key_id
        self._rate.count(key_id)
        admission = Admission(key_id)
        if scope["method"] not in _BODILESS:
            began_s = time.monotonic()
            bytes_max = self._body_bytes_max(principal)
            part, has_more = await next_part(receive)
            if has_more:
                await self._read_rest(admission, part, scope, receive, bytes_max)
            elif len(part) > bytes_max:
                raise payload_too_large(bytes_max)
            else:
                admission.body = part
            admission.has_waited = time.monotonic() - began_s > _PROMPT_SECONDS
        try:
            self._enter(key_id)
        except TooManyRequests:
            self._release(admission)
            raise
        return admission

    def count_more(self, principal: Principal, requests: int) -> None:
        """A request holds so many more: each message of a batch counts."""
        self._rate.count(principal.key_id, requests)

    def leave(self, admission: Admission) -> None:
        key_id = admission.key_id
        self._total -= 1
        running = self._running[key_id] - 1
        if running:
            self._running[key_id] = running
        else:
            del self._running[key_id]
        self._release(admission)

    def _enter(self, key_id: str) -> None:
        limits = self._limits
        running = self._running.get(key_id, 0)
        if running >= limits.requests_per_key_max:
            raise _too_many(
                f"This key has {limits.requests_per_key_max} requests running. Try again."
            )
        if self._total >= limits.requests_max and running >= self._even_part(key_id):
            raise _too_many("The server is busy. Try again.")
        self._total += 1
        self._running[key_id] = running + 1

    def _even_part(self, key_id: str) -> int:
        """What a key may have though all places are taken: a few busy keys must not keep all others
        out. How many get in so is bounded by the connections."""
        keys = len(self._running) + (key_id not in self._running)
        return max(1, self._limits.requests_max // keys)

    def _release(self, admission: Admission) -> None:
        if admission.held_bytes:
            self._memory.release(admission.key_id, admission.held_bytes)
            admission.held_bytes = 0

    def _body_bytes_max(self, principal: Principal) -> int:
        """Who may not write has no text to send: parsing megabytes would hold up others."""
        bytes_max = self._limits.request_body_bytes_max
        return bytes_max if "write" in principal.effects else min(bytes_max, TOOL_REQUEST_BYTES_MAX)

    async def _read_rest(
        self,
        admission: Admission,
        first: bytes,
        scope: HttpScope,
        receive: Receive,
        bytes_max: int,
    ) -> None:
        key_id = admission.key_id
        if self._arriving[key_id] >= self._limits.requests_per_key_max:
            raise _too_many(f"This key has {self._arriving[key_id]} bodies arriving. Try again.")
        self._arriving[key_id] += 1
        try:
            await self._read_parts(admission, first, scope, receive, bytes_max)
        except BaseException:
            self._release(admission)
            raise
        finally:
            self._arriving[key_id] -= 1
            if not self._arriving[key_id]:
                del self._arriving[key_id]

    async def _read_parts(
        self,
        admission: Admission,
        first: bytes,
        scope: HttpScope,
        receive: Receive,
        bytes_max: int,
    ) -> None:
        announced = header(scope, b"content-length")
        # A body of unknown length may become as long as is allowed: it cannot wait halfway.
        expected = int(announced) if announced and announced.isdecimal() else bytes_max
        if expected > bytes_max:
            raise payload_too_large(bytes_max)
        parts, size_bytes, has_more = [first], len(first), True
        # Now, while others are served between the parts.
        count = admission.count = ValueCount()
        count.add(first)
        while has_more:
            if size_bytes > bytes_max:
                raise payload_too_large(bytes_max)
            if size_bytes > UNCOUNTED_BYTES_MAX and not admission.held_bytes:
                await self._memory.reserve(admission.key_id, expected)
                admission.held_bytes = expected
            part, has_more = await next_part(receive)
            size_bytes += len(part)
            parts.append(part)
            if count.values <= JSON_VALUES_MAX:
                count.add(part)
        if size_bytes > bytes_max:
            raise payload_too_large(bytes_max)
        admission.body = b"".join(parts)


class Memory:
    """Bytes that may be held, in all and by key. Who finds no room waits in turn, for a while."""

    def __init__(self, all_max: int, per_key_max: int) -> None:
        self._all_max = all_max
        self._per_key_max = per_key_max
        self._all = 0
        self._by_key: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        """By key: within one in order, between them in turn."""

    async def reserve(self, key_id: str, size_bytes: int) -> None:
        if not self._waiting and self._fits(key_id, size_bytes):
            self._take(key_id, size_bytes)
            return
        granted = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key_id, deque())
        waiting.append((size_bytes, granted))
        self._grant()
        try:
            async with asyncio.timeout(BODY_WAIT_SECONDS_MAX):
                await granted
        except BaseException as problem:
            if granted.done() and not granted.cancelled():
                self.release(key_id, size_bytes)
            else:
                self._forget(key_id, granted)
            if isinstance(problem, TimeoutError):
                message = "Too many large requests are held in memory. Try again."
                raise _too_many(message) from None
            raise

    def release(self, key_id: str, size_bytes: int) -> None:
        self._all -= size_bytes
        self._by_key[key_id] -= size_bytes
        if not self._by_key[key_id]:
            del self._by_key[key_id]
        self._grant()

    def _fits(self, key_id: str, size_bytes: int) -> bool:
        has_room = self._has_room(size_bytes) or self._is_extra(key_id, size_bytes)
        return has_room and self._is_in_share(key_id, size_bytes)

    def _has_room(self, size_bytes: int) -> bool:
        return self._all + size_bytes <= self._all_max

    def _is_in_share(self, key_id: str, size_bytes: int) -> bool:
        return self._by_key[key_id] + size_bytes <= self._per_key_max

    def _is_extra(self, key_id: str, size_bytes: int) -> bool:
        """Taken whatever others hold or wait for."""
        return not self._by_key[key_id] and size_bytes <= BODY_EXTRA_BYTES_MAX

    def _take(self, key_id: str, size_bytes: int) -> None:
        self._all += size_bytes
        self._by_key[key_id] += size_bytes

    def _grant(self) -> None:
        """Let in who fits now; the key that gets a grant goes to the end of the line.

        Nobody but the first small one of a key passes by one for whom only the room of all is too
        small: where many come and go, there would never be enough for a large one. Who waits for
        others of its own key is passed by.
        """
        is_full = False
        for key_id in tuple(self._waiting):
            waiting = self._waiting[key_id]
            while waiting and waiting[0][1].done():  # gave up, and will say so when it runs
                waiting.popleft()
            if not waiting:
                del self._waiting[key_id]
                continue
            size_bytes, granted = waiting[0]
            if not self._is_in_share(key_id, size_bytes):
                continue
            if not self._is_extra(key_id, size_bytes):
                is_full = is_full or not self._has_room(size_bytes)
                if is_full:
                    continue
            self._take(key_id, size_bytes)
            waiting.popleft()
            granted.set_result(None)
            del self._waiting[key_id]
            if waiting:
                self._waiting[key_id] = waiting

    def _forget(self, key_id: str, granted: asyncio.Future[None]) -> None:
        if (waiting := self._waiting.get(key_id)) is not None:
            kept = deque(entry for entry in waiting if entry[1] is not granted)
            if kept:
                self._waiting[key_id] = kept
            else:
                del self._waiting[key_id]
        self._grant()


def _too_many(message: str) -> TooManyRequests:
    return TooManyRequests(message, retry_after=RETRY_AFTER_SECONDS)
