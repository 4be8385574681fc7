"""What is counted of jobs, for Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

_ENDED = Counter("zibaldone_jobs", "Attempts at jobs, by kind and outcome.", ["kind", "outcome"])
_SECONDS = Histogram(
    "zibaldone_job_seconds",
    "How long attempts at jobs took, by kind.",
    ["kind"],
    buckets=(0.01, 0.1, 1, 10, 60, 600, 3600),
)


def ended(kind: str, outcome: str, seconds: float) -> None:
    _ENDED.labels(kind, outcome).inc()
    _SECONDS.labels(kind).observe(seconds)
