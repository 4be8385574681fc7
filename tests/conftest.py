from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from tests.acceptance import manifest
from tests.acceptance.outcome import Outcome, Run, judge
from tests.drivers import engines
from tests.drivers.server import Server

# A busy machine must not fail a property: no deadlines, no complaints about slow generation.
settings.register_profile(
    "zibaldone",
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,  # a method runs for each engine, in an object of its own
    ],
)
settings.load_profile("zibaldone")


def pytest_configure() -> None:
    """A shell ignores SIGINT in what it starts in the background, and all children inherit that;
    commands that the tests start should end by it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_engine" not in metafunc.fixturenames or _names_its_engines(metafunc):
        return
    marker = metafunc.definition.get_closest_marker("engine")
    if marker is not None:
        assert marker.kwargs.get("reason"), f"{metafunc.definition.nodeid}: why this engine?"
    chosen = engines.engines_for(
        metafunc.definition.path, Path(__file__).parent, marker.args if marker else None
    )
    if chosen != [engines.DEFAULT]:
        metafunc.parametrize("store_engine", chosen, indirect=True, scope="module")


def _names_its_engines(metafunc: pytest.Metafunc) -> bool:
    """Whether a parameter of the test, or of a fixture of it, is the engine of what it opens."""
    marks = metafunc.definition.iter_markers("parametrize")
    own = [mark.args[1] for mark in marks if len(mark.args) > 1]
    fixtures = [fixture.params for known in metafunc._arg2fixturedefs.values() for fixture in known]
    return any(values and {*map(str, values)} <= {*engines.ENGINES} for values in (*own, *fixtures))


@pytest.fixture(scope="module")
def store_engine(request: pytest.FixtureRequest) -> str:
    """The storage engine of the data folders that a test is given."""
    return getattr(request, "param", engines.DEFAULT)


class _SignedFolders:
    """Temporary folders under one that tells their engine."""

    def __init__(self, factory: pytest.TempPathFactory, root: Path) -> None:
        self._factory = factory
        self._root = root

    def mktemp(self, basename: str, numbered: bool = True) -> Path:
        del numbered
        number = 0
        while (folder := self._root / f"{basename}{number}").exists():
            number += 1
        folder.mkdir()
        return folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._factory, name)


@pytest.fixture(scope="module")
def tmp_path_factory(
    store_engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pytest.TempPathFactory]:
    """As pytest has it, but what is made in these folders is on the chosen engine."""
    if store_engine == engines.DEFAULT:
        yield tmp_path_factory
        return
    root = tmp_path_factory.mktemp(store_engine)
    engines.put_sign(root, store_engine)
    yield cast("pytest.TempPathFactory", _SignedFolders(tmp_path_factory, root))
    engines.drop_stores(root)


@pytest.fixture
def tmp_path(store_engine: str, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if store_engine != engines.DEFAULT:
        engines.drop_stores(tmp_path)


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
