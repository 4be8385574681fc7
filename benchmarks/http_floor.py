"""What a whole read costs over HTTP, against an endpoint that only returns a constant.

python -m benchmarks.http_floor [--quick]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import orjson

from benchmarks.load import Stretch, Target, fetch, interleaved, request, send_all
from benchmarks.report import Finding, microseconds, paired_ratio, table
from benchmarks.servers.process import ServerProcess, zibaldone

DOCUMENTS = 500
BODY_CHARS = 2_000
_RATIO_MAX = 2.5

_FLOOR = (sys.executable, "-m", "benchmarks.servers.constant")


def measure(*, quick: bool) -> list[Finding]:
    rounds, seconds = (8, 0.15) if quick else (25, 0.15)
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory() as folder, zibaldone(Path(folder) / "data") as ours:
        _fill(ours)
        ids = [f"notes/{number:04}" for number in range(0, DOCUMENTS, 7)]
        reads = {
            "get a document of 2 KB": [request("GET", f"/documents/{one}") for one in ids],
            "list 50 documents": [request("GET", "/documents?prefix=notes/&limit=50")],
        }
        with ServerProcess(_FLOOR) as floor:
            for what, made in reads.items():
                size_bytes = len(fetch(ours, made[0]))
                constant = [request("GET", f"/{size_bytes}")]
                targets = [Target("ours", ours, made), Target("floor", floor, constant)]
                for connections in (1, 10):
                    found = interleaved(
                        targets, connections=connections, rounds=rounds, seconds=seconds
                    )
                    findings += _compared(f"{what}, {connections} conn.", **found)
    return findings


def _fill(ours: ServerProcess) -> None:
    text = ("Of the making of many books there is no end. " * 50)[:BODY_CHARS]
    documents = (
        {"path": f"notes/{number:04}", "content": text, "title": f"Note {number}", "tags": ["a"]}
        for number in range(DOCUMENTS)
    )
    made = (request("POST", "/documents", orjson.dumps(document)) for document in documents)
    send_all(ours, made, connections=8)


def _compared(what: str, ours: list[Stretch], floor: list[Stretch]) -> list[Finding]:
    findings = []
    for name, field in (("server CPU", "cpu_us"), ("p50", "p50_us")):
        values = [getattr(stretch, field) for stretch in ours]
        others = [getattr(stretch, field) for stretch in floor]
        findings.append(
            Finding(
                f"{what}: {name}",
                microseconds(statistics.median(values)),
                f"{microseconds(statistics.median(others))} (constant)",
                paired_ratio(values, others),
                at_most=_RATIO_MAX,
            )
        )
    return findings


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
