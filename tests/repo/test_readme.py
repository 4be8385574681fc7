"""What the README shows of its commands is what happens."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.drivers.server import run_cli
from zibaldone.embed.open import EmbedderSettings, open_embedder

ROOT = Path(__file__).parents[2]
_SHOWN = re.compile(
    r"^\$ (zibaldone|sqlite3|mkdir|printf) (.+)\n((?:(?!\$ |```).+\n)*)", re.MULTILINE
)
_MS = re.compile(r'"ms": [0-9.]+')
_WORD = re.compile(r"[a-z]+|\d+")
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
    if name == "search":
        assert result.stderr == "", "what it finds is good, and nothing is noted about it"
    return result.stdout


def test_all_commands_print_what_is_shown_one_after_the_other(tmp_path: Path) -> None:
    """In an empty folder, as after pipx; only the example table is in the repository."""
    done = []
    for program, given, expected in shown():
        if program == "sqlite3":
            _sqlite(given, tmp_path)
            continue
        if program != "zibaldone":
            subprocess.run(["bash", "-c", f"{program} {given}"], cwd=tmp_path, check=True)
            continue
        name, *arguments = shlex.split(given)
        output = run(name, arguments, tmp_path)
        if expected.startswith("…\n"):  # the proposal is left out in the README
            assert "--- tickets:1" in output
            assert output.endswith(expected.removeprefix("…"))
        else:
            assert _MS.sub("", output) == _MS.sub("", expected)
        done.append(name)
    pulled = ["sources", "sources", "search", "call", "sources", "search"]
    assert done == ["import", "search", *pulled]


def test_the_first_answer_shares_no_word_with_its_question() -> None:
    given, answer = next(
        (given, output) for _, given, output in shown() if given.startswith("search ")
    )
    question = _WORD.findall(shlex.split(given)[1].lower())
    assert len(question) > 1
    assert not {*question} & {*_WORD.findall(answer.lower())}


def _sqlite(given: str, folder: Path) -> None:
    """As the program sqlite3 would do it."""
    file, _, sql = given.partition(" ")
    with sqlite3.connect(folder / file) as raw:
        if sql.startswith("< "):
            raw.executescript((ROOT / sql[2:]).read_text(encoding="utf-8"))
        else:
            raw.execute(*shlex.split(sql))
    raw.close()
