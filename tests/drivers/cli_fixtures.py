"""Fixtures of tests that run commands in this process; a conftest imports them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.server import clean_environment


@pytest.fixture(autouse=True)
def clean_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests."""
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
