"""How many requests run at once: beyond that a caller is told to come back, not left to wait."""

from __future__ import annotations

from collections import Counter

from commonplace.access.principal import Principal
from commonplace.errors import TooManyRequests

RETRY_AFTER_SECONDS = 1


class Gate:
    def __init__(self, all_max: int, per_key_max: int) -> None:
        self._all_max = all_max
        self._per_key_max = per_key_max
        self._running: Counter[str] = Counter()
        self._total = 0

    def enter(self, principal: Principal) -> None:
        """Whoever enters must leave; a request that is refused here has not entered."""
        key_id = principal.key_id
        if self._total >= self._all_max:
            raise TooManyRequests("The server is busy; try again.", retry_after=RETRY_AFTER_SECONDS)
        if self._running[key_id] >= self._per_key_max:
            raise TooManyRequests(
                f"This key has {self._per_key_max} requests running; try again.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        self._total += 1
        self._running[key_id] += 1

    def leave(self, principal: Principal) -> None:
        key_id = principal.key_id
        self._total -= 1
        self._running[key_id] -= 1
        if not self._running[key_id]:
            del self._running[key_id]
