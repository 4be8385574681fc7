"""What the README shows of importing a folder and asking a question is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.drivers.server import run_cli
from zibaldone.embed.open import EmbedderSettings, open_embedder

ROOT = Path(__file__).parents[2]
_SHOWN = re.compile(r"^\$ zibaldone (.+)\n((?:(?!\$ |```).+\n)*)", re.MULTILINE)

pytestmark = pytest.mark.skipif(
    open_embedder(EmbedderSettings("auto")) is None,
    reason="the built-in model is not installed: make setup",
)


def test_the_readme_shows_what_its_commands_print(tmp_path: Path) -> None:
    shown = dict(_SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    commands = [shlex.split(command) for command in shown]
    assert [command[0] for command in commands] == ["import", "search"]
    real = {"ZIBALDONE_EMBEDDER": "auto"}
    for (name, *arguments), expected in zip(commands, shown.values(), strict=True):
        given = [str(ROOT / one) if (ROOT / one).is_dir() else one for one in arguments[:1]]
        result = run_cli(name, *given, *arguments[1:], data=tmp_path, environment=real)
        assert result.returncode == 0, result.stderr
        assert result.stdout == expected
        if name == "import":
            assert run_cli("reindex", data=tmp_path, environment=real).returncode == 0
