from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drivers.cli_fixtures import clean_settings, cli
from tests.drivers.postgres import PostgresServer

__all__ = ["clean_settings", "cli"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running
