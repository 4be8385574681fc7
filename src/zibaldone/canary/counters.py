"""Reads counters in the format of Prometheus."""

from __future__ import annotations

from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families


def parse_counters(text: str) -> dict[str, float]:
    """Every sample by name, summed up over its labels."""
    sums: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] += sample.value
    return dict(sums)
