"""A command starts quickly: it imports only what it uses. benchmarks/startup.py has the times."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from tests.drivers.server import clean_environment
from zibaldone.cli.lazy import LazyGroup
from zibaldone.cli.main import commands

HEAVY = (
    "apsw",
    "asyncio",
    "mcp_types",
    "numpy",
    "prometheus_client",
    "pydantic",
    "uvicorn",
    "zibaldone.store",
    "zibaldone.tools",
    "zibaldone.web",
)

_RUN = """
import contextlib, io, sys
from zibaldone.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
    main(sys.argv[2:])
assert printed.getvalue(), "nothing was printed"
print([name for name in sys.argv[1].split(",") if name in sys.modules])
"""


def imported_by(*arguments: str, among: tuple[str, ...]) -> str:
    result = subprocess.run(
        [sys.executable, "-c", _RUN, ",".join(among), *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_line_alone_imports_nothing_heavy(option: str) -> None:
    assert imported_by(option, among=(*HEAVY, "zibaldone.cli.serve", "zibaldone.cli.lists")) == "[]"


def _names() -> list[str]:
    return commands.list_commands(click.Context(commands))


@pytest.mark.parametrize("name", _names())
def test_the_help_of_a_command_imports_neither_the_server_nor_the_tools(name: str) -> None:
    among = ("mcp_types", "numpy", "pydantic", "uvicorn", "zibaldone.tools", "zibaldone.web")
    assert imported_by(name, "--help", among=among) == "[]"


def test_the_summaries_are_the_first_sentences_of_the_help() -> None:
    assert isinstance(commands, LazyGroup)
    for name, summary in commands.summaries().items():
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(1000) == summary


def test_the_commands_are_listed_by_purpose_in_80_columns() -> None:
    listed = CliRunner().invoke(commands, ["--help"], terminal_width=80).stdout
    lines = listed.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.index("Start:") < lines.index("Keep and find documents:")
    assert lines[lines.index("Start:") + 1].split()[0] == "serve"
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage")]
    shown = [line.split()[0] for line in lines if line.startswith("  ") and line[2].isalpha()]
    assert sorted(name for name in shown if name in _names()) == _names()
