"""How many requests of a key are taken in a minute."""

from __future__ import annotations

import math
import time

from zibaldone.errors import RateLimited

_KEYS_KNOWN_MAX = 10_000


class Rate:
    """A bucket for each key: it holds a minute's requests, and fills again evenly."""

    def __init__(self, per_minute_max: int | None) -> None:
        self._per_minute_max = per_minute_max
        self._used: dict[str, tuple[float, float]] = {}
        """Of each key: requests that are not yet made up for, and when that was."""

    def count(self, key_id: str, requests: int = 1) -> None:
        """Count requests of a key, or raise RateLimited; then none of them is counted."""
        if self._per_minute_max is None:
            return
        now_s = time.monotonic()
        used = self._left_over(key_id, now_s) + requests
        excess = used - self._per_minute_max
        if excess > 0:
            raise RateLimited(
                f"This key may send {self._per_minute_max} requests a minute. Try again later.",
                retry_after=max(1, math.ceil(excess * 60 / self._per_minute_max)),
            )
        if len(self._used) >= _KEYS_KNOWN_MAX:
            self._used = {
                known: entry
                for known, entry in self._used.items()
                if self._left_over(known, now_s) > 0
            }
        self._used[key_id] = (used, now_s)

    def _left_over(self, key_id: str, now_s: float) -> float:
        used, at_s = self._used.get(key_id, (0.0, now_s))
        return max(0.0, used - (now_s - at_s) * (self._per_minute_max or 0) / 60)
