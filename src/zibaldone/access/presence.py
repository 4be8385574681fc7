"""Whether other callers are about, so that one has to make way for them."""

from __future__ import annotations

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
