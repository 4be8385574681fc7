"""Ctrl-C, whenever it comes: a word, exit code 130, no traceback."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.server import clean_environment
from tests.drivers.terminal import CTRL_C, Terminal

pytestmark = pytest.mark.engine("sqlite", reason="nothing of it is about the store")

IMPORTED = (  # in this order
    "click.core",
    "zibaldone.settings",
    "zibaldone.find.parse",
    "zibaldone.store.port",
    "zibaldone.tools.spec",
)
FILES = 600


@pytest.mark.parametrize("module", IMPORTED)
def test_while_modules_are_imported(cli: Commands, module: str) -> None:
    cli.ok("put", "a", stdin="words")
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "zibaldone", "--data", str(cli.data), "ls"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:  # one for each module that has been imported
            if line.rstrip().endswith(f" {module}"):
                break
        else:
            raise AssertionError(f"{module} is not imported")
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    assert "Interrupted." in rest


def test_an_import_says_how_to_go_on(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:04}.md").write_text(f"# File {number}\n\n" + "some words " * 50)
    with Terminal("import", str(folder), data=data) as terminal:
        terminal.wait_for("Importing")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "run the same command again to go on" in terminal.shown
        assert "Traceback" not in terminal.shown
    cli = Commands(data)
    again = cli.json("import", str(folder))
    assert again["created"] + again["unchanged"] == FILES
    assert len(cli.ids()) == FILES


def test_while_vectors_are_made(data: Path, tmp_path: Path) -> None:
    """The model does not answer: the import waits for it until it is interrupted."""
    file = tmp_path / "a.md"
    file.write_text("words")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            "ZIBALDONE_EMBEDDER": "remote",
            "ZIBALDONE_EMBEDDING_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
            "ZIBALDONE_EMBEDDING_MODEL": "silent",
            "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
        }
        with Terminal("import", str(file), data=data, environment=environment) as terminal:
            terminal.wait_for("Embedding")
            asking, _ = silent.accept()
            terminal.press(CTRL_C)
            assert terminal.end() == 130
            asking.close()
            assert "What was imported is kept" in terminal.shown
            assert "Traceback" not in terminal.shown
    assert Commands(data).ids() == ["a.md"]


def test_as_json(data: Path, tmp_path: Path) -> None:
    """The terminal's Ctrl-C goes to a command whose output is a file."""
    output = tmp_path / "output"
    with Terminal("put", "a", "--json", data=data, stdout_to=output) as terminal:
        terminal.wait_for("finish with Ctrl-D")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert json.loads(output.read_text())["error"]["code"] == "INTERRUPTED"


# Ctrl-C in the moment before the command waits for its input: the exception is gone already.
JUST_BEFORE = """
import contextlib, os, signal, sys
from zibaldone.cli import interrupts, texts

interrupts.quit_at_once()
with interrupts.orderly():
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    try:
        texts.read_text("-", 10)
    except KeyboardInterrupt:
        print("heard")
"""


def test_just_before_the_input_is_read() -> None:
    keyboard, terminal = pty.openpty()  # no key is pressed
    try:
        result = subprocess.run(
            [sys.executable, "-c", JUST_BEFORE],
            stdin=terminal,
            capture_output=True,
            text=True,
            env=clean_environment(),
            timeout=60,
            check=True,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert result.stdout == "heard\n"


# What a library does that catches the interruption and raises an error of its own.
WRAPPING = """
import os, signal, sys, time
import zibaldone.__main__ as command
from zibaldone.cli.lazy import LazyCommand

mode = sys.argv.pop(1)

def load(self):
    try:
        if mode == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    except KeyboardInterrupt:
        pass
    raise RuntimeError("Error building a schema: KeyboardInterrupt")

LazyCommand.load = load
command.main()
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_an_error_after_it_is_no_traceback(as_json: bool) -> None:
    result = _wrapping("interrupted", "ls", *(["--json"] if as_json else []))
    assert result.returncode == 130, result.stderr
    assert "Traceback" not in result.stderr
    if as_json:
        assert json.loads(result.stdout)["error"]["code"] == "INTERRUPTED"
    else:
        assert result.stderr == "\nInterrupted.\n"


def test_an_error_without_it_is_not_hidden() -> None:
    result = _wrapping("undisturbed", "ls")
    assert result.returncode == 1
    assert "RuntimeError: Error building" in result.stderr


def _wrapping(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WRAPPING, *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=60,
        check=False,
        # A shell ignores SIGINT in what it starts in the background, and its children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
