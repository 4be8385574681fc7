"""The hits of a search, for people at a terminal and for programs behind a pipe."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.terminal import Terminal

pytestmark = pytest.mark.engine("sqlite", reason="nothing of it is about the store")

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
COLUMNS = 50
TEXT = (
    "# Deploying\n\n## Going back\n\nIf the health check fails after a release, roll back first "
    "and ask later. The rollback takes about a minute, and nobody has to be woken for it.\n\n"
    "## 日本語\n\n" + "これは長い文章です。" * 12 + "rollback\n"
)


@pytest.fixture
def kept(data: Path) -> Path:
    Commands(data).ok("put", "runbooks/production/europe/deploying-and-going-back.md", stdin=TEXT)
    return data


def on_terminal(data: Path, *options: str, **environment: str) -> str:
    with Terminal(
        "search", "rollback", *options, data=data, columns=COLUMNS, environment=environment
    ) as terminal:
        assert terminal.end() == 0
        return terminal.shown


def columns(line: str) -> int:
    return sum(2 if ord(char) > 0x2E80 else 1 for char in line)


def test_on_a_terminal_lines_are_wrapped_and_words_are_marked(kept: Path) -> None:
    shown = on_terminal(kept)
    plain = _ESCAPE.sub("", shown)
    hit = list(takewhile(str.strip, plain.splitlines()))
    assert [line for line in hit if columns(line) > COLUMNS] == []
    lines = [line.strip() for line in hit]
    path = "runbooks/production/europe/deploying-and-going-back.md"
    assert "".join(lines).replace(" ", "").startswith(f"1.{path}Deploying")
    assert "Deploying" in lines
    assert any("Going back" in line for line in lines)
    marked = re.findall(r"\x1b\[33m\x1b\[1m(.+?)\x1b\[0m", shown)
    assert marked
    assert {word.lower() for word in marked} == {"rollback"}


def test_a_passage_has_its_heading_above_it_unless_that_is_the_title(data: Path) -> None:
    filler = "Nothing of note happened in the harbour that morning. " * 30
    body = f"# Deploying\n\n{filler}\n\n## Going back\n\nA rollback takes a minute. {filler}"
    Commands(data).ok("put", "long.md", stdin=body)
    Commands(data).ok("put", "short.md", stdin="# Rollback\n\nIt takes a minute.")
    lines = [line.strip() for line in _ESCAPE.sub("", on_terminal(data)).splitlines()]
    assert lines[lines.index("Deploying > Going back") + 1].startswith("## Going back")
    assert lines.count("Rollback") == 1, "as the title"


def test_no_color_where_it_is_not_wanted(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in on_terminal(kept, NO_COLOR="1")
    assert "\x1b" not in on_terminal(kept, "--color", "never")
    assert "\x1b" not in on_terminal(kept, TERM="dumb")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" in Commands(kept).ok("search", "rollback", "--color", "always")


def test_a_pipe_gets_one_plain_line_for_each_passage(kept: Path) -> None:
    cli = Commands(kept)
    piped = cli.ok("search", "rollback")
    assert "\x1b" not in piped
    first, *passages = piped.splitlines()
    assert first == "1. runbooks/production/europe/deploying-and-going-back.md  Deploying"
    assert passages
    assert all(line.startswith("   ") for line in passages)
    assert max(map(len, passages)) > COLUMNS
    assert "\x1b[33m" in cli.ok("search", "rollback", "--color", "always")
    assert cli.json("search", "rollback", "--color", "always")["count"] == 1
