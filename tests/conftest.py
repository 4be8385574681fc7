from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.acceptance import manifest
from tests.acceptance.outcome import Outcome, Run, judge
from tests.drivers.server import Server

# A busy machine must not fail a property: no deadlines, no complaints about slow generation.
settings.register_profile(
    "zibaldone",
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
settings.load_profile("zibaldone")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--acceptance",
        action="store_true",
        help="end with the acceptance rows that this run left unproven",
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not config.getoption("--acceptance"):
        return
    run = Run()
    for word, outcome in _OUTCOMES.items():
        for report in terminalreporter.stats.get(word, ()):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            run.note(report.nodeid, outcome, reason.removeprefix("Skipped: "))
    rows = manifest.load(manifest.REQUIREMENTS_FILE.read_text(encoding="utf-8"))
    terminalreporter.section("acceptance")
    for line in judge(rows, run).lines():
        terminalreporter.line(line)


_OUTCOMES = {
    "passed": Outcome.PASSED,
    "skipped": Outcome.SKIPPED,
    "failed": Outcome.FAILED,
    "error": Outcome.FAILED,
    "xfailed": Outcome.FAILED,
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def server(data: Path) -> Iterator[Server]:
    """A server of its own for one test."""
    with Server(data) as running:
        yield running


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for a module's tests, each of which keeps to paths of its own."""
    with Server(tmp_path_factory.mktemp("shared") / "data") as running:
        yield running
