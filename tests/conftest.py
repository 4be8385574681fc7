from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
