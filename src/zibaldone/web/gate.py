"""Limits concurrent requests: beyond the limit a caller gets 429 instead of waiting."""

from __future__ import annotations

from zibaldone.access.principal import Principal
from zibaldone.errors import TooManyRequests

RETRY_AFTER_SECONDS = 1


class Gate:
    def __init__(self, all_max: int, per_key_max: int) -> None:
        self._all_max = all_max
        self._per_key_max = per_key_max
        self._running: dict[str, int] = {}
        """Running requests by key; keys without any are absent."""
        self._total = 0

    def enter(self, principal: Principal) -> None:
        """Count a request, or raise TooManyRequests. Every successful `enter` needs a `leave`."""
        key_id = principal.key_id
        if self._total >= self._all_max:
            raise TooManyRequests("The server is busy. Try again.", retry_after=RETRY_AFTER_SECONDS)
        running = self._running.get(key_id, 0)
        if running >= self._per_key_max:
            raise TooManyRequests(
                f"This key has {self._per_key_max} requests running. Try again.",
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
