"""The latency gates of the seeds, on a small corpus, generously: four times the figure of a row.

The figures themselves need a quiet machine, the whole corpus and a minute for each row: that is
`python -m benchmarks.latency`, named as such in the manifest. A busy moment gets two more tries.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.latency import AIMS, measure
from benchmarks.report import Finding

from tests.drivers.engines import store_flags

TIMES = 4.0
TRIES = 3
GATED = (
    *(f"7.2.{letter}" for letter in "abcdefghij"),
    *("T11", "T12", "000/P1.05", "000/P1.06", "000/P1.07", "000/P1.09", "000/P2.03", "001/RG.2"),
)
OBSERVED = ("000/P1.13",)
BASELINE = ("000/P1.09",)
"""Against an earlier version, which was on SQLite."""
_MEASURED = re.compile(r"\d+\.\d\d ms")


def rows_of(found: Finding) -> list[str]:
    return found.what.partition(":")[0].split()


def best_of(tries: int, data: Path) -> dict[str, Finding]:
    """Of each line the lowest ratio that was seen."""
    best: dict[str, Finding] = {}
    for number in range(tries):
        store = store_flags(data / str(number)).get("store", "")
        for found in measure(quick=True, store=store):
            before = best.get(found.what)
            if before is None or ratio_of(found) < ratio_of(before):
                best[found.what] = found
        if max(map(ratio_of, gated(best))) <= TIMES:
            break
    return best


def ratio_of(found: Finding) -> float:
    assert found.ratio is not None
    return found.ratio


def gated(findings: dict[str, Finding]) -> list[Finding]:
    return [found for found in findings.values() if not {*rows_of(found)} & {*OBSERVED}]


@pytest.mark.requirement(
    "T11",
    "T12",
    "7.2.a",
    "7.2.b",
    "7.2.c",
    "7.2.d",
    "7.2.e",
    "7.2.f",
    "7.2.g",
    "7.2.h",
    "7.2.i",
    "7.2.j",
    "000/P1.05",
    "000/P1.06",
    "000/P1.07",
    "000/P1.09",
    "000/P1.13",
    "000/P2.03",
    "001/RG.2",
)
@pytest.mark.timeout(300)
@pytest.mark.engine("sqlite", "postgres", reason="these are figures of the product")
def test_no_row_takes_four_times_its_figure(tmp_path: Path, store_engine: str) -> None:
    findings = best_of(TRIES, tmp_path)
    measured = {row for found in findings.values() for row in rows_of(found)}
    assert measured == {*GATED, *OBSERVED} - ({*BASELINE} if store_engine == "postgres" else set())
    assert all(_MEASURED.search(found.ours) for found in findings.values())
    too_slow = [
        f"{found.what}: {found.ours}" for found in gated(findings) if ratio_of(found) > TIMES
    ]
    assert too_slow == []
    assert len([found for found in findings.values() if "000/P1.13" in rows_of(found)]) == len(AIMS)
