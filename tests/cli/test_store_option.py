"""--store: documents kept elsewhere than in the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from zibaldone.store.open import DATABASE_NAME

pytestmark = pytest.mark.engine("sqlite", reason="the option names the store")


def test_the_command_line_takes_a_store(cli: Commands, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere.db"
    cli.ok("--store", str(other), "put", "a", stdin="zebra")
    assert other.is_file()
    assert not (cli.data / DATABASE_NAME).exists()
    assert "zebra" in cli.ok("--store", f"sqlite:{other}", "get", "a")
    result = cli("--store", "postgresql://me:secret@127.0.0.1:1/kb", "get", "a")
    assert result.exit_code != 0
    assert "cannot be reached" in result.output
    assert "secret" not in result.output


def test_doctor_looks_at_the_store_that_is_set(cli: Commands, tmp_path: Path) -> None:
    def database(*options: str) -> tuple[str, str]:
        (finding,) = [
            finding
            for finding in cli.json(*options, "doctor")["findings"]
            if finding["subject"] == "database"
        ]
        return finding["status"], finding["text"]

    other = tmp_path / "elsewhere.db"
    assert database("--store", str(other))[0] == "warn"
    cli.ok("--store", str(other), "put", "a", stdin="zebra")
    status, text = database("--store", str(other))
    assert (status, "elsewhere.db" in text) == ("ok", True)
    status, text = database("--store", "postgresql://me:secret@127.0.0.1:1/kb")
    assert (status, "PostgreSQL" in text) == ("fail", True)
    assert "secret" not in cli("--store", "postgresql://me:secret@127.0.0.1:1/kb", "doctor").output
