"""What is counted of the tools, for Prometheus."""

from __future__ import annotations

from functools import cache

from prometheus_client import Counter, Histogram

_CALLS = Counter("zibaldone_tool_calls", "Calls of a tool by outcome.", ("tool", "outcome"))
_SECONDS = Histogram(
    "zibaldone_tool_seconds",
    "Time a call took.",
    ("tool",),
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)


def observe(tool: str, outcome: str, seconds: float) -> None:
    _counter(tool, outcome).inc()
    _histogram(tool).observe(seconds)


@cache
def _counter(tool: str, outcome: str) -> Counter:
    return _CALLS.labels(tool, outcome)


@cache
def _histogram(tool: str) -> Histogram:
    return _SECONDS.labels(tool)
