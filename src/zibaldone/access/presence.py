"""Whether other callers are about, so that one has to make way for them."""

from __future__ import annotations

import threading
import time

_PRESENT_SECONDS = 2.0
"""A caller is about for so long after the last of their requests began."""


class Presence:
    """Remembers the last caller, and when the last request of any other was."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._last_at_s = self._others_at_s = float("-inf")

    def note(self, share: str) -> None:
        """A request of this caller begins."""
        if share != self._last:
            self._others_at_s = self._last_at_s
            self._last = share
        self._last_at_s = time.monotonic()

    def has_others(self, share: str) -> bool:
        """Whether requests of others than this caller began lately."""
        others_at_s = self._others_at_s if share == self._last else self._last_at_s
        return time.monotonic() - others_at_s <= _PRESENT_SECONDS


CALLERS = Presence()
"""Of requests with a key and of tools, in this process: who only connects is kept waiting too."""


class Pauses:
    """When work that computes for long may go on: one piece at a time, and with pauses while others
    than its caller are about.

    Without them it would have the interpreter whenever somebody else's request wants to go on, and
    a small one goes on dozens of times.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at_s = 0.0

    def before(self, share: str, *, work_s: float, pause_s: float) -> float:
        """How many seconds to wait before a piece that takes `work_s`."""
        if not CALLERS.has_others(share):
            return 0.0
        now_s = time.monotonic()
        with self._lock:
            start_s = max(now_s, self._free_at_s) + pause_s
            self._free_at_s = start_s + work_s
        return start_s - now_s
