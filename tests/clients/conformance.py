"""The official conformance suite against our server, compared with what we expect of it.

`python -m tests.clients.conformance` starts a server with the suite's fixtures
(`tests.clients.conformance_server`) on a temporary data folder, runs the scenarios that each
specification revision requires and prints the results as Markdown. It exits with 1 if a scenario
that conformance_expected.toml does not list fails or warns, or if a listed one passes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from tests.clients import environments
from tests.drivers.server import Server, clean_environment

REVISIONS = ("2026-07-28", "2025-11-25")
TASKS = "tasks"
"""The extension, among what is announced."""
EXPECTED_FILE = environments.HERE / "conformance_expected.toml"
ENDPOINT = "/mcp"
COMMAND = (sys.executable, "-m", "tests.clients.conformance_server")

_SUITE_SECONDS_MAX = 300
_RESULT_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario came to. A warning is the suite's word for a SHOULD that is not met."""

    scenario: str
    is_required: bool
    """The rest runs too, and is reported, but no revision demands it."""
    passed: int = 0
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if self.failures:
            return "fail"
        return "warn" if self.warnings else "pass"


# ---- running ----


@contextmanager
def conformance_server() -> Iterator[str]:
    """The URL of a server that also offers the tools, prompts and resources the suite looks for."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "data", command=COMMAND) as server,
    ):
        yield server.url + ENDPOINT


def run_suite(url: str, revision: str) -> tuple[Outcome, ...]:
    """Every scenario that ran, the required ones first and in the suite's order."""
    required = _required(revision)
    with tempfile.TemporaryDirectory() as folder:
        _suite("server", "--url", url, "--requirements", revision, "--output-dir", folder)
        checks_by_scenario = {
            found[1]: json.loads((result / "checks.json").read_text(encoding="utf-8"))
            for result in sorted(Path(folder).iterdir())
            if (found := _RESULT_FOLDER.fullmatch(result.name))
        }
    further = sorted(checks_by_scenario.keys() - {*required})
    return tuple(
        _outcome(scenario, scenario in required, checks_by_scenario.get(scenario))
        for scenario in (*required, *further)
    )


def run_tasks(url: str) -> tuple[Outcome, ...]:
    """The scenarios of the extension for tasks, which no revision requires."""
    names = re.findall(r"^ *- (tasks-\S+)", _suite("list"), re.MULTILINE)
    if not names:
        raise RuntimeError("the suite lists no scenarios of tasks")
    with ThreadPoolExecutor(4) as threads:
        return tuple(threads.map(partial(_run_scenario, url), names))


def _run_scenario(url: str, scenario: str) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        _suite("server", "--url", url, "--scenario", scenario, "--output-dir", folder)
        checks = [
            json.loads((result / "checks.json").read_text(encoding="utf-8"))
            for result in Path(folder).iterdir()
            if _RESULT_FOLDER.fullmatch(result.name)
        ]
    return _outcome(scenario, True, checks[0] if checks else None)


def _required(revision: str) -> tuple[str, ...]:
    listing = _suite("list", "--requirements", revision)
    _, _, server_part = listing.partition("Server scenarios")
    block = server_part.partition("\n\n")[0]
    scenarios = tuple(re.findall(r"^ *- (\S+)$", block, re.MULTILINE))
    if not scenarios:
        raise RuntimeError(f"the suite lists no server scenarios for {revision}:\n{listing}")
    return scenarios


def _outcome(
    scenario: str, is_required: bool, checks: Sequence[Mapping[str, str]] | None
) -> Outcome:
    if checks is None:
        return Outcome(scenario, is_required, failures=("it did not run",))
    found: dict[str, list[str]] = {"SUCCESS": [], "WARNING": [], "FAILURE": []}
    for check in checks:
        told = f"{check['id']}: {check.get('errorMessage', check.get('description', ''))}"
        found.setdefault(check["status"], []).append(told)
    if not (found["SUCCESS"] or found["WARNING"] or found["FAILURE"]):
        found["WARNING"].append("it checked nothing")
    return Outcome(
        scenario,
        is_required,
        passed=len(found["SUCCESS"]),
        warnings=tuple(found["WARNING"]),
        failures=tuple(found["FAILURE"]),
    )


def _suite(*arguments: str) -> str:
    node = environments.node()
    done = subprocess.run(
        [str(node.node), str(node.conformance), *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=_SUITE_SECONDS_MAX,
        check=False,
    )
    # 1 only says that some scenario failed, which is told in more detail by the results.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the conformance suite broke:\n{done.stdout}{done.stderr}")
    return done.stdout


# ---- comparing ----


def expected() -> dict[str, dict[str, str]]:
    """Revision to scenario to the reason why it does not pass."""
    table: dict[str, dict[str, str]] = tomllib.loads(EXPECTED_FILE.read_text(encoding="utf-8"))
    return table


def faults(outcomes: Iterable[Outcome], reasons: Mapping[str, str]) -> list[str]:
    """Where the required scenarios differ from what is announced, in words."""
    required = {outcome.scenario: outcome for outcome in outcomes if outcome.is_required}
    found = [
        f"{name}: announced as not passing, but the suite does not require it"
        for name in sorted(reasons.keys() - required.keys())
    ]
    for name, outcome in required.items():
        if outcome.verdict == "pass":
            if name in reasons:
                found.append(f"{name}: passes although announced as not passing; delete its line")
        elif name not in reasons:
            told = "; ".join((*outcome.failures, *outcome.warnings))
            found.append(f"{name}: {outcome.verdict}, unannounced: {told}")
    return found


# ---- telling ----


def report(
    revision: str, outcomes: Sequence[Outcome], reasons: Mapping[str, str], *, show_all: bool
) -> str:
    """A section of Markdown."""
    required = [outcome for outcome in outcomes if outcome.is_required]
    passing = sum(outcome.verdict == "pass" for outcome in required)
    shown = outcomes if show_all else required
    rows = [("Scenario", "Result", "Checks", "Remark"), *(_row(one, reasons) for one in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        + f" | {row[3]} |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|---|")
    title = f"## {revision}: {passing} of {len(required)} required scenarios pass"
    return "\n".join([title, "", *lines, ""])


def _row(outcome: Outcome, reasons: Mapping[str, str]) -> tuple[str, str, str, str]:
    if not outcome.is_required:
        remark = "not required"
    elif outcome.verdict == "pass":
        remark = ""
    else:
        remark = reasons.get(outcome.scenario, "**unexpected**")
    return (outcome.scenario, outcome.verdict, str(outcome.passed), remark)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.conformance")
    parser.add_argument("--requirements", action="append", choices=REVISIONS, help="only this one")
    parser.add_argument("--url", help="a running conformance_server")
    parser.add_argument("--all", action="store_true", help="show what is not required, too")
    options = parser.parse_args(arguments)
    if options.url is None:
        with conformance_server() as url:
            return _compare(url, options.requirements or REVISIONS, show_all=options.all)
    return _compare(options.url, options.requirements or REVISIONS, show_all=options.all)


def _compare(url: str, revisions: Iterable[str], *, show_all: bool) -> int:
    has_faults = False
    for revision in (*revisions, TASKS):
        reasons = expected().get(revision, {})
        outcomes = run_tasks(url) if revision == TASKS else run_suite(url, revision)
        sys.stdout.write(report(revision, outcomes, reasons, show_all=show_all) + "\n")
        for fault in faults(outcomes, reasons):
            has_faults = True
            sys.stderr.write(f"{revision} {fault}\n")
    return int(has_faults)


if __name__ == "__main__":
    sys.exit(main())
