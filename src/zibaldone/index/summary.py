"""What the index worker says: each document at the level debug, a summary now and then at info.

A failure is a warning at once. Documents that failed for the same reason share a line: a model that
is down fails all of them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from zibaldone.index import metrics
from zibaldone.limits import INDEX_LOG_SECONDS

_log = logging.getLogger("zibaldone.index")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change: collected in the transaction, logged after its commit."""

    name: str
    document_id: str
    chunks: int = 0
    """Embedded."""
    reason: str = ""
    """Why it failed."""


class Summary:
    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._counts: Counter[str] = Counter()
        self._chunks = 0
        self._since_s = 0.0
        """When the first of these was added."""
        self._said_s = float("-inf")

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count each change that was dealt with; names and outcomes are logged, never content."""
        failed: dict[tuple[str, str], list[str]] = {}
        for outcome in outcomes:
            metrics.indexed(outcome.name)
            if outcome.reason:
                failed.setdefault((outcome.name, outcome.reason), []).append(outcome.document_id)
                continue
            _log.debug("%s: %s, %d embedded", outcome.document_id, outcome.name, outcome.chunks)
            if not self._counts:
                self._since_s = self._clock_s()
            self._counts[outcome.name] += 1
            self._chunks += outcome.chunks
        for (name, reason), document_ids in failed.items():
            more = f" and {len(document_ids) - 1} more" if len(document_ids) > 1 else ""
            _log.warning("%s%s: %s, %s", document_ids[0], more, name, reason)

    def tell(self, *, is_idle: bool, is_last: bool = False) -> None:
        """Log what was done since the last time, if it is time to.

        `is_idle`: there is nothing more to do, so that it can be told as one piece.
        """
        now_s = self._clock_s()
        since_s = self._said_s if is_idle else max(self._said_s, self._since_s)
        if not self._counts or (now_s - since_s < INDEX_LOG_SECONDS and not is_last):
            return
        total = self._counts.total()
        parts = ", ".join(f"{count} {name}" for name, count in self._counts.most_common())
        noun = "document" if total == 1 else "documents"
        _log.info("indexed %d %s: %s; chunks embedded: %d", total, noun, parts, self._chunks)
        self._counts.clear()
        self._chunks = 0
        self._said_s = now_s
