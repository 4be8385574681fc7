"""Instants: microseconds since 1970 in UTC inside, ISO 8601 outside."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WITHOUT_ZONE = datetime(1970, 1, 1)  # noqa: DTZ001 - written twice as fast


def now_us() -> int:
    return time.time_ns() // 1000


@lru_cache(maxsize=4_096)  # a document's two times are often the same, and read again soon
def to_iso(instant_us: int) -> str:
    moment = _EPOCH_WITHOUT_ZONE + timedelta(microseconds=instant_us)
    return moment.isoformat(timespec="microseconds") + "Z"


def from_iso(text: str) -> int:
    """Read an ISO instant, also the SQL form `YYYY-MM-DD HH:MM:SS`; no zone means UTC.

    OverflowError: in UTC it is not in the years 1 to 9999, so that it could not be written.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
