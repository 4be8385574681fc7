"""The benchmark of the latency gates can be run and answers every row that is about latency.

Whether a gate is met depends on the machine, so a benchmark says it and no test does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = (
    *(f"7.2.{letter}" for letter in "abcdefghij"),
    *("T11", "T12", "000/P1.05", "000/P1.06", "000/P1.07", "000/P1.13", "000/P2.03", "001/RG.2"),
)
_MEASURED = re.compile(r"\d+\.\d\d ms")


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
    "000/P1.13",
    "000/P2.03",
    "001/RG.2",
)
def test_every_row_is_measured_against_its_gate() -> None:
    command = [sys.executable, "-m", "benchmarks.latency", "--quick"]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if _MEASURED.search(line)]
    for row in ROWS:
        about = [line for line in lines if row in line.partition(":")[0].strip("| ").split()]
        assert about, f"nothing was measured for {row}"
        assert all(re.search(r"\b(met|missed)\b", line) for line in about)
