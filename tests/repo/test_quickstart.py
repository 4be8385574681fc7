"""The commands of docs/quickstart.md, run as written in a new home, print what it shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.server import clean_environment, free_port
from zibaldone.embed.open import EmbedderSettings, open_embedder

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_START_SECONDS_MAX = 60
_KEYS_NOTICED_SECONDS = 1.1
_ANY = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "(time)"),
    (re.compile(r"key_[0-9a-f…]+"), "(key)"),
    (re.compile(r"zib_[\w…-]+"), "(secret)"),
    (re.compile(r'"request_id":"[0-9a-f…]+"'), "(request)"),
)

pytestmark = [
    pytest.mark.skipif(
        open_embedder(EmbedderSettings("auto")) is None,
        reason="the built-in model is not installed: make setup",
    ),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl"),
]


def shown() -> Iterator[tuple[str, str]]:
    """Each command of the page and the output beneath it."""
    for block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            count = next(n for n in range(1, len(lines) + 1) if is_complete(lines[:n]))
            yield "\n".join(lines[:count]), "\n".join(lines[count:]).strip()


def is_complete(lines: list[str]) -> bool:
    """Whether the shell would run this, or wait for the end of a quotation."""
    try:
        shlex.split("\n".join(lines))
    except ValueError:
        return False
    return True


def comparable(output: str) -> str:
    for pattern, name in _ANY:
        output = pattern.sub(name, output)
    return output.strip()


class Home:
    """A new user's machine: a home folder, the installed command, and a server."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        environment = clean_environment({"ZIBALDONE_EMBEDDER": "auto"})
        for name in [name for name in environment if name.startswith("XDG_")]:
            del environment[name]
        self.environment = {
            **environment,
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
            "ZIBALDONE_PORT": str(self.port),
        }
        self.folder = folder

    def run(self, command: str) -> str:
        """What the command prints, on both streams, as a terminal would show it."""
        here = command.replace("localhost:8321", f"localhost:{self.port}")
        done = subprocess.run(
            ["bash", "-c", here],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            cwd=self.folder,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        return done.stdout

    def wait_until_served(self) -> None:
        """Until the model is loaded: the page is read by people."""
        until_s = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < until_s:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def wait_until_indexed(self) -> None:
        until_s = time.monotonic() + _START_SECONDS_MAX
        while '"pending": 0' not in self.run("zibaldone index status --json"):
            assert time.monotonic() < until_s
            time.sleep(0.2)


def test_the_quickstart_works_as_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    log = (tmp_path / "log").open("wb")
    serving = subprocess.Popen(
        ["zibaldone", "serve"], env=home.environment, cwd=tmp_path, stdout=log, stderr=log
    )
    try:
        home.wait_until_served()
        output, ran = "", []
        for command, expected in shown():
            if command.startswith("export KEY="):
                secret = re.search(r"zib_[\w-]+", output)
                assert secret is not None
                home.environment["KEY"] = secret[0]
                continue
            if command.startswith("zibaldone search"):
                home.wait_until_indexed()
            output = home.run(command)
            if command.startswith("zibaldone key"):
                time.sleep(_KEYS_NOTICED_SECONDS)  # the page promises it within a second
            if expected:
                assert comparable(output) == comparable(expected), f"$ {command}"
            ran.append(command.split()[0])
        assert ran.count("zibaldone") >= 6
        assert ran.count("curl") >= 7
    finally:
        serving.terminate()
        serving.wait(timeout=30)
        log.close()


def test_commands_and_outputs_are_told_apart() -> None:
    commands = [command for command, _ in shown()]
    assert all(command.split()[0] in ("curl", "zibaldone", "mkdir", "printf", "export")
               for command in commands)  # fmt: skip
    assert any("\n" in command for command in commands), "one goes over two lines"
