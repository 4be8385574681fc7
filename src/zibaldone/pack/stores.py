"""How many stores of one call were made and destroyed: each must be gone when its call ends."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Literal

from prometheus_client import Counter as Count
from prometheus_client import Gauge

StoreKind = Literal["memory", "hosted"]

_MADE = Count("zibaldone_call_stores_made", "Stores made for one call, by kind.", ["kind"])
_DESTROYED = Count("zibaldone_call_stores_destroyed", "Those that are gone again.", ["kind"])
_OPEN = Gauge("zibaldone_call_stores_open", "Those that are in use now.", ["kind"])


class Stores:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.made: Counter[StoreKind] = Counter()
        self.destroyed: Counter[StoreKind] = Counter()

    def open(self, kind: StoreKind) -> int:
        with self._lock:
            return self.made[kind] - self.destroyed[kind]

    def count_made(self, kind: StoreKind) -> None:
        with self._lock:
            self.made[kind] += 1
        _MADE.labels(kind).inc()
        _OPEN.labels(kind).inc()

    def count_destroyed(self, kind: StoreKind) -> None:
        with self._lock:
            self.destroyed[kind] += 1
        _DESTROYED.labels(kind).inc()
        _OPEN.labels(kind).dec()


STORES = Stores()
