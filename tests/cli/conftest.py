from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import Commands
from tests.postgres import PostgresServer
from tests.server import clean_environment


@pytest.fixture(autouse=True)
def _no_settings_of_whoever_runs_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = clean_environment()
    for name in list(os.environ):
        if name.startswith("ZIBALDONE_"):
            monkeypatch.delenv(name)
    for name in ("ZIBALDONE_EMBEDDER", "ZIBALDONE_PORT"):
        monkeypatch.setenv(name, ours[name])


@pytest.fixture
def cli(data: Path) -> Commands:
    """The commands on a data folder of this test's own."""
    return Commands(data)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running
