"""What holds for every command: help that fits a terminal, errors as JSON, output that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drivers.command_tree import every_command, leaves
from tests.drivers.commands import Commands
from tests.drivers.server import COMMAND, clean_environment, run_cli

pytestmark = pytest.mark.engine("sqlite", reason="nothing of it is about the store")

COLUMNS = 80


def test_help_fits_eighty_columns_and_no_summary_is_cut() -> None:
    for words, ctx in every_command():
        lines = ctx.command.get_help(ctx).splitlines()
        assert [line for line in lines if len(line) > COLUMNS] == [], words
        if "Commands:" in lines:
            summaries = lines[lines.index("Commands:") + 1 :]
            assert [line for line in summaries if line.endswith("...")] == [], words
    shown = run_cli("--help", environment={"COLUMNS": str(COLUMNS)}).stdout
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert "..." not in shown.partition("Start:")[2]


@pytest.mark.parametrize("words", leaves(), ids=" ".join)
def test_wrong_usage_is_json_where_json_is_wanted(cli: Commands, words: tuple[str, ...]) -> None:
    result = cli(*words, "--no-such-option", "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "INVALID_USAGE"
    assert "--no-such-option" in error["message"]


@pytest.mark.parametrize(
    "arguments", [["--json"], ["key", "--json"], ["get", "--json"], ["nonsense", "--json"]]
)
def test_other_wrong_usage(cli: Commands, arguments: list[str]) -> None:
    result = cli(*arguments)
    assert (result.exit_code, result.stderr) == (2, "")
    assert json.loads(result.stdout)["error"]["code"] == "INVALID_USAGE"
    assert not cli.data.exists()


def test_json_behind_two_dashes_is_a_word(cli: Commands) -> None:
    cli.ok("put", "a", stdin="something else")
    found = cli("search", "--", "--json")
    assert (found.exit_code, found.stdout) == (0, "")
    assert "Nothing found" in found.stderr
    missing = cli("get", "--", "--json")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "[NOT_FOUND]" in missing.stderr


# Help of all commands in one process. What reads, each in a child of one that has everything
# imported, to its very end: what is left in a buffer is written then.
_EACH = """
import io, json, os, sys, tempfile
import zibaldone.cli.session
from zibaldone.cli.main import main
from tests.drivers.command_tree import every_command
full = os.open("/dev/full", os.O_WRONLY)
results = []
for words, _ in every_command():
    os.dup2(full, 1)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False))
    sys.stderr = io.StringIO()
    try:
        main([*words, "--help"])
    except SystemExit as end:
        results.append((words, end.code, sys.stderr.getvalue()))
    sys.stderr = sys.__stderr__
os.dup2(full, 1)
sys.stdout = sys.__stdout__
for arguments in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            main(arguments)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        results.append((arguments, os.waitstatus_to_exitcode(status), errors.read().decode()))
sys.stderr.write(json.dumps(results))
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_is_full_is_told_in_a_line(cli: Commands) -> None:
    cli.ok("put", "a", stdin="words")
    reading = ("ls", "ls --json", "get a", "search words", "doctor", "get missing --json")
    option = ["--data", str(cli.data)]
    given = [["--version"], *([*option, *line.split()] for line in reading)]
    done = subprocess.run(
        [sys.executable, "-c", _EACH, json.dumps(given)],
        capture_output=True,
        env=clean_environment(),
        cwd=Path(__file__).parents[2],
        timeout=120,
        check=True,
    )
    with Path("/dev/full").open("wb") as full:
        real = subprocess.run(
            [*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, check=False, text=True
        )
    message = "zibaldone: Cannot write: No space left on device. [OUTPUT_FAILED]\n"
    assert (real.returncode, real.stderr) == (1, message)
    results = json.loads(done.stderr)
    assert len(results) > 50
    for arguments, code, errors in results:
        assert (arguments, code, errors) == (arguments, 1, message)


def test_errors_that_cannot_be_shown_end_quietly(cli: Commands) -> None:
    cli.ok("put", "a", stdin="words")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "--data", str(cli.data), "get", "missing"],
            stdout=subprocess.PIPE,
            stderr=full,
            env=clean_environment(),
            check=False,
        )
    assert done.returncode in (1, 4)
    assert done.stdout == b""
