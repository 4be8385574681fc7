"""When a request is sent again, and how long to wait before."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from zibaldone.errors import DeadlineExceeded, ZibaldoneError
from zibaldone.limits import PUSH_FIRST_WAIT_SECONDS, PUSH_RETRY_AFTER_SECONDS_MAX, PUSH_TRIES

T = TypeVar("T")


class Fault(Exception):
    """A request failed in a way that another attempt may mend."""

    def __init__(
        self, error: ZibaldoneError, *, may_have_arrived: bool, wait_seconds: float = 0.0
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.may_have_arrived = may_have_arrived
        """The server may have done what it was asked, although we have no answer."""
        self.wait_seconds = wait_seconds
        """What the server asked us to wait, at least."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time by which everything has to be over; None: whenever it is."""

    at_seconds: float | None = None
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(None if seconds is None else clock() + seconds, clock)

    def left_seconds(self) -> float:
        return float("inf") if self.at_seconds is None else self.at_seconds - self.clock()

    def check(self) -> None:
        if self.left_seconds() <= 0:
            raise DeadlineExceeded("The time given for the push is over; run it again to go on.")


@dataclass(frozen=True, slots=True)
class Retry:
    """Waits of 0.5, 1, 2, … seconds between attempts; none after the last."""

    tries: int = PUSH_TRIES
    first_wait_seconds: float = PUSH_FIRST_WAIT_SECONDS
    jitter: float = 0.0
    """Up to this part of a wait is added at random, so that many clients do not come at once."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    deadline: Deadline = field(default_factory=Deadline)

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        before_replay: Callable[[], Awaitable[T | None]] | None = None,
    ) -> T:
        """The result of the first attempt that succeeds.

        `before_replay` is asked after an attempt that may have arrived; what it returns, unless it
        is None, is taken for the result, and nothing is sent again.
        """
        for number in range(self.tries):
            self.deadline.check()
            try:
                return await attempt()
            except Fault as fault:
                wait_seconds = self._wait_seconds(number, fault)
                is_last = number + 1 == self.tries
                if is_last or wait_seconds >= self.deadline.left_seconds():
                    raise fault.error from None
                may_have_arrived = fault.may_have_arrived
            await self.sleep(wait_seconds)
            if may_have_arrived and before_replay is not None:
                result = await before_replay()
                if result is not None:
                    return result
        raise AssertionError("the last attempt returns or raises")

    def _wait_seconds(self, number: int, fault: Fault) -> float:
        wait_seconds: float = self.first_wait_seconds * 2**number
        wait_seconds *= 1.0 + self.jitter * random.random()
        return max(wait_seconds, fault.wait_seconds)


def retry_after_seconds(header: str | None) -> float:
    """Read a Retry-After header: seconds or a date; 0 if there is none or it is neither."""
    if not header:
        return 0.0
    try:
        wanted_seconds = float(header)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(header)
        except (TypeError, ValueError):
            return 0.0
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        wanted_seconds = (moment - datetime.now(UTC)).total_seconds()
    if wanted_seconds != wanted_seconds:  # NaN
        return 0.0
    return min(max(0.0, wanted_seconds), PUSH_RETRY_AFTER_SECONDS_MAX)
