"""Run the benchmarks and print one table of what they found.

    python -m benchmarks.run [--quick] [name …]

All of them take about five minutes on two cores, with --quick a good minute. A machine that is busy
with something else shows in every number; ratios suffer least.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from benchmarks import durability, http_floor, list_depth, push, startup, transport, writes
from benchmarks.report import Finding, table

BENCHMARKS: dict[str, Callable[..., list[Finding]]] = {
    "startup": startup.measure,
    "http_floor": http_floor.measure,
    "list_depth": list_depth.measure,
    "transport": transport.measure,
    "writes": writes.measure,
    "durability": durability.measure,
    "push": push.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure, and compare in the same run.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller stores")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHMARKS))
    options = parser.parse_args()
    unknown = set(options.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"there is no {unknown.pop()!r}; there are {', '.join(BENCHMARKS)}")
    findings: list[Finding] = []
    for name in options.names or BENCHMARKS:
        started_s = time.perf_counter()
        findings += BENCHMARKS[name](quick=options.quick)
        print(f"{name}: {time.perf_counter() - started_s:.0f} s", file=sys.stderr)
    print(table(findings))
    missed = sum(found.verdict == "missed" for found in findings)
    if missed:
        print(f"\n{missed} of the aims were missed.")


if __name__ == "__main__":
    main()
