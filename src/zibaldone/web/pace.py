"""How much of the event loop one key may take at a time.

Many requests are answered without waiting for anything, in a stretch on the event loop; a list of a
megabyte takes tens of milliseconds. A key that sends sixty of them at once would keep everybody
else waiting for all of them. So after a stretch that was long, the key's next one waits: first
come all others that are there, and if other keys are about, they have the loop for a while. Short
stretches wait for nobody.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from zibaldone.tools.call import resumed

T = TypeVar("T")

LONG_SECONDS = 0.005
"""A stretch that took no longer is not followed by a pause."""

_PAUSE_SHARE = 0.5
"""Of the time that a long stretch took, others have the loop for this much before the next."""

_PAUSE_SECONDS_MAX = 0.05

_PRESENT_SECONDS = 2.0
"""Others are about for so long after the last of their requests began."""


class Pace:
    """For the tasks of one event loop."""

    def __init__(self) -> None:
        self._free_at_s: dict[str, float] = {}
        """By key: when it may go on. A key of which nothing long ran lately is not there."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._last_key_id = ""
        self._changed_at_s = float("-inf")
        """When a request came that was not of the same key as the one before it."""

    async def run(self, key_id: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is begun when its key may go on."""
        if key_id in self._free_at_s:
            try:
                await self._turn(key_id)
            except BaseException:
                work.close()
                raise
        if key_id != self._last_key_id:
            self._last_key_id, self._changed_at_s = key_id, time.monotonic()
        began_cpu_s = time.thread_time()
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        finally:
            seconds = time.thread_time() - began_cpu_s
            if seconds > LONG_SECONDS:
                self._pause(key_id, seconds)
        return await resumed(work, waits_for)

    async def _turn(self, key_id: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key_id, deque()).append(granted)
        await granted

    def _pause(self, key_id: str, seconds: float) -> None:
        now_s = time.monotonic()
        is_alone = now_s - self._changed_at_s > _PRESENT_SECONDS
        pause_s = 0.0 if is_alone else min(seconds * _PAUSE_SHARE, _PAUSE_SECONDS_MAX)
        is_looked_after = key_id in self._free_at_s
        self._free_at_s[key_id] = now_s + pause_s
        if not is_looked_after:
            asyncio.get_running_loop().call_later(pause_s, self._go_on, key_id)

    def _go_on(self, key_id: str) -> None:
        """Let one go on, if it is time, and come back after it."""
        loop = asyncio.get_running_loop()
        left_s = self._free_at_s[key_id] - time.monotonic()
        if left_s > 0:
            loop.call_later(left_s, self._go_on, key_id)
            return
        waiting = self._waiting.get(key_id, ())
        while waiting:
            granted = waiting.popleft()
            if not granted.done():
                granted.set_result(None)
                loop.call_soon(self._go_on, key_id)  # its task is called before this
                return
        self._waiting.pop(key_id, None)
        del self._free_at_s[key_id]
