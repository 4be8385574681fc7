"""CPU time until a command has answered, against a bare Python and one that imports click.

python -m benchmarks.startup [--quick]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.load import fetch, request
from benchmarks.report import Finding, paired_ratio, table
from benchmarks.servers.process import zibaldone

_FLOORS = {"python -c pass": ("-c", "pass"), "import click": ("-c", "import click")}
_HELP_RATIO_MAX = 3.0
"""`--version` and `--help` against `import click`: about 0.13 s on the machine in the docs."""


def measure(*, quick: bool) -> list[Finding]:
    rounds = 5 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        command = ("-m", "zibaldone", "--data", str(data))
        run_seconds((*command, "ls"))  # creates the store
        measured = {
            **_FLOORS,
            "--version": (*command, "--version"),
            "--help": (*command, "--help"),
            "ls --help": (*command, "ls", "--help"),
            "ls, empty store": (*command, "ls"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in (*measured, "serve")}
        for _ in range(rounds):
            for name, arguments in measured.items():
                seconds[name].append(run_seconds(arguments))
            seconds["serve"].append(serve_seconds(data))
    names = [name for name in seconds if name not in _FLOORS]
    return [_compared(name, floor, seconds) for name in names for floor in _FLOORS]


def run_seconds(arguments: tuple[str, ...]) -> float:
    """CPU seconds of a whole run, user and system."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ZIBALDONE_")
    }
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**environment, "ZIBALDONE_EMBEDDER": "none"},
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def serve_seconds(data: Path) -> float:
    """CPU seconds of a server until it has answered its first request."""
    with zibaldone(data) as server:
        fetch(server, request("GET", "/health"))
        return server.cpu_seconds()


def _compared(name: str, floor: str, seconds: dict[str, list[float]]) -> Finding:
    ours, others = seconds[name], seconds[floor]
    has_aim = name in ("--version", "--help") and floor == "import click"
    return Finding(
        f"zibaldone {name}: CPU" if name != "serve" else "zibaldone serve, first answer: CPU",
        f"{statistics.median(ours) * 1000:.0f} ms",
        f"{statistics.median(others) * 1000:.0f} ms ({floor})",
        paired_ratio(ours, others),
        at_most=_HELP_RATIO_MAX if has_aim else None,
    )


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
