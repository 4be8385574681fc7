"""Whose turn it is: a few places, shared fairly by time among all who wait for them.

Each share (`access.share`) has a queue of its own. The next place goes to the share that holds the
fewest, and among those to the one that has used the least time. So somebody who asks for little is
served at once, however long the queue of another is.

A place cannot be taken back from work that runs, so none of what follows may be held by one share:

- `per_share` bounds how many places one share holds, `beside_others` how many while others are
  about;
- `extra` places beyond the ordinary ones are only for shares that hold none;
- with `rest_factor`, a share whose work took long rests in proportion before its next turn, as long
  as others are about. Where there is one place only (a writer), this is what leaves it free;
- with `common_rest_factor`, all shares whose work takes long rest after it, as long as somebody is
  about whose work is short. Else several of them would hold the place in turn, all of the time;
- a step of long work that was divided into many is not kept waiting by these rests, only by one in
  proportion to the step before it (`step_rest_factor`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from zibaldone.access.share import NO_CALLERS, current_share

T = TypeVar("T")

SMALL_SECONDS = 0.005
"""Work of a share that took no longer lately is small."""

REST_SECONDS_MAX = 5.0
"""The longest rest after one piece of work."""

COMMON_REST_SECONDS_MAX = 2.0
"""The same for a rest of all whose work takes long: several who have a deadline wait for it."""

LONG_SECONDS = 0.02
"""Shorter work is not followed by a rest: nobody notices it."""

_PRESENT_SECONDS = 2.0
"""A share is about for so long after its last work ended."""

_TYPICAL_DECAY = 0.8
"""What long work still counts for after each shorter piece."""

_IDLE_SHARES_MAX = 1_000
"""Shares without work that are remembered."""


@dataclass(slots=True)
class _Share(Generic[T]):
    waiting: deque[T] = field(default_factory=deque)
    steps: deque[T] = field(default_factory=deque)
    """Of long work that has begun. They and what waits take turns."""
    was_step: bool = False
    """What it was given last."""
    held: int = 0
    used_s: float = 0.0
    """Time used, on a clock on which everybody who is busy advances alike."""
    typical_s: float = 0.0
    rests_until_s: float = 0.0
    steps_rest_until_s: float = 0.0
    ended_s: float = float("-inf")

    @property
    def is_busy(self) -> bool:
        return bool(self.held or self.waiting or self.steps)


class Turns(Generic[T]):
    """Not safe for threads: whoever shares it holds a lock. `now_s` is a monotonic clock."""

    def __init__(
        self,
        places: int,
        *,
        per_share: int = 1,
        beside_others: int = 1,
        extra: int = 0,
        rest_factor: float = 0.0,
        common_rest_factor: float = 0.0,
        step_rest_factor: float = 0.0,
    ) -> None:
        self._places = places
        self._per_share = per_share
        self._beside_others = beside_others
        self._extra = extra
        self._rest_factor = rest_factor
        self._common_rest_factor = common_rest_factor
        self._common_rest_until_s = 0.0
        self._step_rest_factor = step_rest_factor
        self._shares: dict[str, _Share[T]] = {}
        self._taken = 0
        self._clock_s = 0.0
        self.rest_ends_s: float | None = None
        """When the first of those whom the last `take` passed over has rested. Nothing happens
        then, so whoever gives out the places has to look again; and earlier, since nobody rests
        when the others have gone."""

    @property
    def is_resting(self) -> bool:
        """Whether the last `take` passed over somebody who rests."""
        return self.rest_ends_s is not None

    def __len__(self) -> int:
        """How many wait."""
        return sum(len(share.waiting) + len(share.steps) for share in self._shares.values())

    def add(self, name: str, item: T, *, is_step: bool = False) -> None:
        share = self._shares.get(name)
        if share is None:
            if len(self._shares) >= _IDLE_SHARES_MAX:
                self._forget_idle()
            share = self._shares[name] = _Share()
        if not share.is_busy:  # who was away has saved nothing up
            share.used_s = max(share.used_s, self._clock_s)
        (share.steps if is_step else share.waiting).append(item)

    def discard(self, name: str, item: T) -> bool:
        """Take somebody out of the queue. False: they do not wait (any more)."""
        share = self._shares.get(name)
        for queue in () if share is None else (share.waiting, share.steps):
            if item in queue:
                queue.remove(item)
                return True
        return False

    def take(
        self, now_s: float, *, long_from: Container[str] | None = None
    ) -> tuple[str, T] | None:
        """Whoever is next, if there is a place for them; it must be given back.

        `long_from`: work that may be long is only taken from these shares.
        """
        best: tuple[int, bool, float, str] | None = None
        queue: deque[T] = deque()
        self.rest_ends_s = None
        is_common_rest = self._common_rest_until_s > now_s
        for name, share in self._shares.items():
            if not (share.waiting or share.steps) or not self._has_place(name, share, now_s):
                continue
            if long_from is not None and share.typical_s > SMALL_SECONDS and name not in long_from:
                continue
            ready = self._ready(name, share, now_s)
            if ready is None:
                continue
            # Who has not worked yet may take long, too.
            is_new = is_common_rest and share.ended_s == float("-inf")
            rank = (share.held, is_new, share.used_s, name)
            if best is None or rank[:3] < best[:3]:
                best, queue = rank, ready
        if best is None:
            return None
        share = self._shares[best[3]]
        self._clock_s = max(self._clock_s, share.used_s)
        self._taken += 1
        share.held += 1
        share.was_step = queue is share.steps
        return best[3], queue.popleft()

    def _ready(self, name: str, share: _Share[T], now_s: float) -> deque[T] | None:
        """What the share may go on with. None: all that it has rests."""
        queues = [
            (share.steps, share.steps_rest_until_s),
            (share.waiting, self._rest_end(name, share, now_s)),
        ]
        for queue, rest_ends_s in reversed(queues) if share.was_step else queues:
            if queue and (rest_ends_s <= now_s or not self._others_present(name, now_s)):
                return queue
            if queue:
                self.rest_ends_s = min(self.rest_ends_s or float("inf"), rest_ends_s)
        return None

    def give_back(
        self,
        name: str,
        seconds: float,
        now_s: float,
        *,
        worked_s: float | None = None,
        is_step: bool = False,
    ) -> None:
        """`worked_s`: how much of the time was work, where the rest was waiting."""
        share = self._shares[name]
        self._taken -= 1
        share.held -= 1
        share.used_s += seconds
        share.ended_s = now_s
        worked_s = seconds if worked_s is None else worked_s
        share.typical_s = max(worked_s, share.typical_s * _TYPICAL_DECAY)
        if is_step:
            rest_s = min(worked_s * self._step_rest_factor, REST_SECONDS_MAX)
            share.steps_rest_until_s = now_s + rest_s
        elif worked_s >= LONG_SECONDS:
            self._rest_after_long(share, seconds, now_s)

    def charge(self, name: str, seconds: float, now_s: float) -> None:
        """Add what long work still cost after its end. The share may have been forgotten since."""
        share = self._shares.setdefault(name, _Share())
        share.used_s += seconds
        self._rest_after_long(share, seconds, now_s)

    def _rest_after_long(self, share: _Share[T], seconds: float, now_s: float) -> None:
        start_s = max(now_s, share.rests_until_s)
        longest_s = now_s + REST_SECONDS_MAX
        share.rests_until_s = min(start_s + seconds * self._rest_factor, longest_s)
        start_s = max(now_s, self._common_rest_until_s)
        longest_s = now_s + COMMON_REST_SECONDS_MAX
        self._common_rest_until_s = min(start_s + seconds * self._common_rest_factor, longest_s)

    def _rest_end(self, name: str, share: _Share[T], now_s: float) -> float:
        """When the share has rested, if others are about."""
        if (
            self._common_rest_until_s > max(now_s, share.rests_until_s)
            and share.typical_s >= LONG_SECONDS
            and self._others_present(name, now_s, typical_s_max=SMALL_SECONDS)
        ):
            return self._common_rest_until_s
        return share.rests_until_s

    def waits_beside(self, name: str) -> bool:
        """Whether another share waits."""
        return any(
            share.waiting or share.steps for other, share in self._shares.items() if other != name
        )

    def _has_place(self, name: str, share: _Share[T], now_s: float) -> bool:
        if share.held == 0:
            return self._taken < self._places + self._extra
        if self._taken >= self._places or share.held >= self._per_share:
            return False
        return share.held < self._beside_others or not self._others_present(name, now_s)

    def _others_present(
        self, name: str, now_s: float, *, typical_s_max: float = float("inf")
    ) -> bool:
        """`typical_s_max`: others whose work takes no longer."""
        return any(
            share.is_busy or now_s - share.ended_s < _PRESENT_SECONDS
            for other, share in self._shares.items()
            if other != name and other not in NO_CALLERS and share.typical_s <= typical_s_max
        )

    def _forget_idle(self) -> None:
        self._shares = {name: share for name, share in self._shares.items() if share.is_busy}


class TaskTurns:
    """Turns for the tasks of one event loop: `async with turns: …`, once in a task at a time."""

    def __init__(self, turns: Turns[asyncio.Future[None]]) -> None:
        self._turns = turns
        self._started_s: dict[asyncio.Task[Any] | None, tuple[str, float]] = {}

    async def __aenter__(self) -> None:
        share = current_share()
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.add(share, granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():  # it never came; `_grant` may have taken it out already
                self._turns.discard(share, granted)
            else:
                self._give_back(share, 0.0)
            raise
        self._started_s[asyncio.current_task()] = (share, time.monotonic())

    async def __aexit__(self, *_: object) -> None:
        self._end(asyncio.current_task())

    async def hold(self) -> None:
        """A turn until the running task ends. A task that has one already keeps it."""
        task = asyncio.current_task()
        if task is None or task in self._started_s:
            return
        await self.__aenter__()
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any] | None) -> None:
        share, started_s = self._started_s.pop(task)
        self._give_back(share, time.monotonic() - started_s)

    def _give_back(self, share: str, seconds: float) -> None:
        self._turns.give_back(share, seconds, time.monotonic())
        self._grant()

    def _grant(self) -> None:
        while (taken := self._turns.take(time.monotonic())) is not None:
            share, granted = taken
            if granted.cancelled():
                self._turns.give_back(share, 0.0, time.monotonic())
            else:
                granted.set_result(None)
