"""What is measured of sources, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Gauge

from zibaldone.pull.live import SourceLag

_LAG = Gauge(
    "zibaldone_source_lag_seconds",
    "How far a source may be behind its database.",
    ["namespace", "source"],
)
_SYNCED = Gauge(
    "zibaldone_source_last_sync_timestamp_seconds",
    "When the last sync began that ended well.",
    ["namespace", "source"],
)


def publish(lags: Iterable[SourceLag]) -> None:
    """Set the gauges; sources that are disabled or gone have none."""
    _LAG.clear()
    _SYNCED.clear()
    for lag in lags:
        if lag.enabled and lag.last_sync_at_us is not None and lag.seconds is not None:
            _LAG.labels(lag.namespace, lag.name).set(lag.seconds)
            _SYNCED.labels(lag.namespace, lag.name).set(lag.last_sync_at_us / 1_000_000)
