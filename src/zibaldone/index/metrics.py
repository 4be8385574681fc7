"""What is counted of the index, for Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

_EMBEDDED = Counter("zibaldone_embedded_chunks", "Chunks that were embedded.")
_INDEXED = Counter(
    "zibaldone_index_changes", "Changes the index worker dealt with, by outcome.", ["outcome"]
)
LAG = Gauge("vector_sync_lag_seconds", "Age of the oldest document that waits for vectors.")
LAG_YOUNGEST = Gauge(
    "vector_sync_lag_youngest_seconds", "Age of the youngest document that waits for vectors."
)
PENDING = Gauge("zibaldone_vectors_pending", "Documents that wait for vectors.")
FAILED = Gauge("zibaldone_vectors_failed", "Documents that could not be embedded.")
ALERT = Gauge("vector_sync_alert", "1 while the lag is over the alert's bound.")


def embedded(count: int) -> None:
    _EMBEDDED.inc(count)


def indexed(outcome: str) -> None:
    _INDEXED.labels(outcome).inc()
