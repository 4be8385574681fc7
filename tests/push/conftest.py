from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.graphiti_server import GraphitiServer
from tests.drivers.zibaldone_stub import ZibaldoneStub


@pytest.fixture
def graphiti() -> Iterator[GraphitiServer]:
    with GraphitiServer() as server:
        yield server


@pytest.fixture
def stub() -> Iterator[ZibaldoneStub]:
    with ZibaldoneStub() as server:
        yield server


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder
