"""Statistics over what was measured, and the table that is printed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The smallest value that at least that share of the values does not exceed."""
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(0, int(rank) - 1)]


def paired_ratio(ours: Iterable[float], others: Iterable[float]) -> float:
    """The median of the ratios of each round: a slow minute of the machine slows both sides."""
    return statistics.median(a / b for a, b in zip(ours, others, strict=True))


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    what: str
    ours: str
    against: str
    ratio: float | None = None
    at_most: float | None = None
    at_least: float | None = None

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"

    @property
    def verdict(self) -> str:
        if self.ratio is None or not self.aim:
            return ""
        too_high = self.at_most is not None and self.ratio > self.at_most
        too_low = self.at_least is not None and self.ratio < self.at_least
        return "missed" if too_high or too_low else "met"


_HEADINGS = ("what", "ours", "against", "ratio", "aim", "")


def table(findings: Iterable[Finding]) -> str:
    """Markdown, in columns that also line up on a terminal."""
    rows = [_HEADINGS]
    for found in findings:
        ratio = "" if found.ratio is None else f"{found.ratio:.2f}"
        rows.append((found.what, found.ours, found.against, ratio, found.aim, found.verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def microseconds(value: float) -> str:
    return f"{value:.0f} µs" if value < 10_000 else f"{value / 1000:.1f} ms"
