"""What the README shows of its commands is what happens."""

from __future__ import annotations

import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.drivers.server import run_cli
from zibaldone.embed.open import EmbedderSettings, open_embedder

ROOT = Path(__file__).parents[2]
_SHOWN = re.compile(r"^\$ (zibaldone|sqlite3) (.+)\n((?:(?!\$ |```).+\n)*)", re.MULTILINE)
_MS = re.compile(r'"ms": [0-9.]+')
REAL = {"ZIBALDONE_EMBEDDER": "auto"}

pytestmark = pytest.mark.skipif(
    open_embedder(EmbedderSettings("auto")) is None,
    reason="the built-in model is not installed: make setup",
)


def shown() -> list[tuple[str, str, str]]:
    """Program, arguments and output of each command, in order."""
    return _SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def run(name: str, arguments: list[str], folder: Path) -> str:
    """The output of a command; what it stored can then be found by meaning."""
    result = run_cli(name, *arguments, data=folder / "data", environment=REAL, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_folder_is_imported_and_searched(tmp_path: Path) -> None:
    commands = [(shlex.split(given), output) for _, given, output in shown()][:2]
    assert [given[0] for given, _ in commands] == ["import", "search"]
    for (name, *arguments), expected in commands:
        given = [str(ROOT / one) if (ROOT / one).is_dir() else one for one in arguments[:1]]
        assert run(name, [*given, *arguments[1:]], tmp_path) == expected


def test_a_table_is_pulled_and_its_edits_are_found(tmp_path: Path) -> None:
    done = []
    for program, given, expected in shown()[2:]:
        if program == "sqlite3":
            _sqlite(given, tmp_path)
            continue
        name, *arguments = shlex.split(given)
        output = run(name, arguments, tmp_path)
        if expected.startswith("…\n"):  # the proposal is left out in the README
            assert "--- tickets:1" in output
            assert output.endswith(expected.removeprefix("…"))
        else:
            assert _MS.sub("", output) == _MS.sub("", expected)
        done.append(name)
    assert done == ["sources", "sources", "search", "call", "sources", "search"]


def _sqlite(given: str, folder: Path) -> None:
    """As the program sqlite3 would do it."""
    file, _, sql = given.partition(" ")
    with sqlite3.connect(folder / file) as raw:
        if sql.startswith("< "):
            raw.executescript((ROOT / sql[2:]).read_text(encoding="utf-8"))
        else:
            raw.execute(*shlex.split(sql))
    raw.close()
