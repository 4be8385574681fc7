"""Completion by the shell, as docs/howto/command-line.md sets it up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drivers.server import clean_environment

pytestmark = pytest.mark.engine("sqlite", reason="nothing of it is about the store")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"


def environment(**more: str) -> dict[str, str]:
    given = clean_environment(more)
    return {**given, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{given['PATH']}"}


def complete(words: str, cursor: int) -> list[str]:
    """What the command answers the shell: kind and word of each possible completion."""
    done = subprocess.run(
        ["zibaldone"],
        env=environment(
            _ZIBALDONE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(cursor)
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_options_and_values() -> None:
    assert complete("zibaldone se", 1) == ["plain,search", "plain,serve", "plain,sessions"]
    assert complete("zibaldone key ", 2) == [
        f"plain,{name}" for name in ("create", "delete", "list", "revoke")
    ]
    assert complete("zibaldone search --col", 2) == ["plain,--color"]
    assert complete("zibaldone search --color ", 3) == [
        f"plain,{choice}" for choice in ("auto", "always", "never")
    ]
    assert complete("zibaldone import ~/no", 2) == ["file,~/no"]
    assert complete("zibaldone import ag", 2) == ["file,ag", "plain,agent-data"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself() -> None:
    line = 'eval "$(_ZIBALDONE_COMPLETE=bash_source zibaldone)"'
    assert line in PAGE.read_text(encoding="utf-8")
    script = f"""{line}
COMP_WORDS=(zibaldone index st); COMP_CWORD=2
_zibaldone_completion zibaldone st index
echo "${{COMPREPLY[@]}}"
complete -p zibaldone
"""
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "status",
        "complete -o nosort -F _zibaldone_completion zibaldone",
    ]


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "compdef"), ("fish", "complete --no-files")])
def test_the_scripts_of_other_shells(shell: str, mark: str) -> None:
    assert f"_ZIBALDONE_COMPLETE={shell}_source zibaldone" in PAGE.read_text(encoding="utf-8")
    script = subprocess.run(
        ["zibaldone"],
        env=environment(_ZIBALDONE_COMPLETE=f"{shell}_source"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert mark in script
    assert "_ZIBALDONE_COMPLETE=" in script
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True, check=False).returncode == 0
