"""How many requests run at once: beyond that a caller is told to come back, not left to wait."""

from __future__ import annotations

from zibaldone.access.principal import Principal
from zibaldone.errors import TooManyRequests

RETRY_AFTER_SECONDS = 1


class Gate:
    def __init__(self, all_max: int, per_key_max: int) -> None:
        self._all_max = all_max
        self._per_key_max = per_key_max
        self._running: dict[str, int] = {}
        """Requests that run, by key; a key without one is not there."""
        self._total = 0

    def enter(self, principal: Principal) -> None:
        """Whoever enters must leave; a request that is refused here has not entered."""
        key_id = principal.key_id
        if self._total >= self._all_max:
            raise TooManyRequests("The server is busy; try again.", retry_after=RETRY_AFTER_SECONDS)
        running = self._running.get(key_id, 0)
        if running >= self._per_key_max:
            raise TooManyRequests(
                f"This key has {self._per_key_max} requests running; try again.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        self._total += 1
        self._running[key_id] = running + 1

    def leave(self, principal: Principal) -> None:
        key_id = principal.key_id
        self._total -= 1
        running = self._running[key_id] - 1
        if running:
            self._running[key_id] = running
        else:
            del self._running[key_id]
