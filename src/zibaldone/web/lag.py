"""How late the event loop is: the longest delay of late, in which nobody was served."""

from __future__ import annotations

import time

from prometheus_client import Gauge

_GAUGE = Gauge("zibaldone_loop_lag_seconds", "Longest delay of the event loop in the last minute.")

_WINDOW_SECONDS = 60.0


class LoopLag:
    """The longest delay of the last minute or two, kept in two halves."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._longest_before_s = 0.0
        self._since_s = time.monotonic()

    def observe(self, seconds: float) -> None:
        now_s = time.monotonic()
        if now_s - self._since_s > _WINDOW_SECONDS:
            self._longest_before_s, self._longest_s = self._longest_s, 0.0
            self._since_s = now_s
        self._longest_s = max(self._longest_s, seconds)
        _GAUGE.set(self.seconds)

    @property
    def seconds(self) -> float:
        return max(self._longest_s, self._longest_before_s)


loop_lag = LoopLag()
"""A process has one event loop that serves."""
