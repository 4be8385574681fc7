"""How much of the event loop one key may take at a time.

Many requests are answered without waiting for anything, in a stretch on the event loop. The loop
goes round once for everything that is ready, and a request takes several rounds: a key that sends
sixty requests at once would keep everybody else waiting for all sixty, several times. So while
other keys are about, a key begins one stretch in a round. After a stretch that was long, others
have the loop for a while before the key's next one; a list of a megabyte takes tens of
milliseconds.

Other requests go on in threads, which need the interpreter too. A loop that is never idle lets them
have it once in a millisecond, and a small write asks for it dozens of times. So while a request of
another key goes on elsewhere, a key that sends without end pauses after every few stretches.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from zibaldone.access.presence import Presence
from zibaldone.tools.call import resumed

T = TypeVar("T")

STRANGERS = ""
"""In place of the key of those who have none that is valid."""

LONG_SECONDS = 0.005
"""A stretch that took no longer is not followed by a pause."""

_PAUSE_SHARE = 0.5
"""Of the time that a long stretch took, others have the loop for this much before the next."""

_PAUSE_SECONDS_MAX = 0.05

_STRETCHES_MAX = 2
"""Begun by a key one after the other, while a request of another key goes on elsewhere."""

_IDLE_SECONDS = 0.001
"""Then the loop is left to be idle for so long, if nobody else has something for it to do."""


class Pace:
    """For the tasks of one event loop."""

    def __init__(self) -> None:
        self._free_at_s: dict[str, float] = {}
        """By key: when it may go on. A key of which nothing ran in the last round, or that is alone
        and of which nothing long ran, is not there."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._stretches: Counter[str] = Counter()
        """By key: how many were begun since its last pause, one after the other."""
        self._elsewhere: Counter[str] = Counter()
        """By key: requests that wait for a thread, or something else beside the loop."""
        self._presence = Presence()

    async def run(self, key_id: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is begun when its key may go on."""
        try:
            await self._may_begin(key_id)
        except BaseException:
            work.close()
            raise
        began_cpu_s = time.thread_time()
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        finally:
            self._note(key_id, time.thread_time() - began_cpu_s)
        self._elsewhere[key_id] += 1
        try:
            return await resumed(work, waits_for)
        finally:
            self._elsewhere[key_id] -= 1
            if not self._elsewhere[key_id]:
                del self._elsewhere[key_id]

    async def turn(self, key_id: str) -> None:
        """Wait until the key may go on: for a stretch that is always short."""
        await self._may_begin(key_id)
        self._note(key_id, 0.0)

    async def _may_begin(self, key_id: str) -> None:
        self._presence.note(key_id)
        if key_id in self._free_at_s:
            granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(key_id, deque()).append(granted)
            await granted

    def _note(self, key_id: str, seconds: float) -> None:
        """A stretch has ended."""
        now_s = time.monotonic()
        is_alone = not self._presence.has_others(key_id)
        is_long = seconds > LONG_SECONDS
        if is_alone and not is_long:
            return
        pause_s = 0.0
        if is_long and not is_alone:
            pause_s = min(seconds * _PAUSE_SHARE, _PAUSE_SECONDS_MAX)
        is_looked_after = key_id in self._free_at_s
        self._free_at_s[key_id] = now_s + pause_s
        if not is_looked_after:
            asyncio.get_running_loop().call_soon(self._go_on, key_id)

    def _go_on(self, key_id: str) -> None:
        """Let one go on, if it is time, and come back after it."""
        loop = asyncio.get_running_loop()
        left_s = self._free_at_s[key_id] - time.monotonic()
        if left_s > 0:
            loop.call_later(left_s, self._go_on, key_id)
            return
        waiting = self._waiting.get(key_id, ())
        if waiting and self._is_to_pause(key_id):
            loop.call_later(_IDLE_SECONDS, self._go_on, key_id)
            return
        while waiting:
            granted = waiting.popleft()
            if not granted.done():
                granted.set_result(None)
                self._stretches[key_id] += 1
                loop.call_soon(self._go_on, key_id)  # its task is called before this
                return
        self._waiting.pop(key_id, None)
        self._stretches.pop(key_id, None)
        del self._free_at_s[key_id]

    def _is_to_pause(self, key_id: str) -> bool:
        """Whether the key has begun enough while others wait for threads; then it begins anew."""
        if self._stretches[key_id] < _STRETCHES_MAX:
            return False
        del self._stretches[key_id]
        return any(other != key_id for other in self._elsewhere)
