from __future__ import annotations

import json
import sys

import pytest

from zibaldone import extras
from zibaldone.errors import NotConfigured


def test_a_library_that_is_installed() -> None:
    assert extras.require("ingest", "json") is json


def test_a_library_that_is_not_installed() -> None:
    with pytest.raises(NotConfigured) as refusal:
        extras.require("ingest", "no_such_library.part")
    assert refusal.value.message == (
        "The library no_such_library.part is not installed. "
        "To install it: pip install 'zibaldone[ingest]'"
    )
    assert refusal.value.details == {
        "library": "no_such_library.part",
        "install": "pip install 'zibaldone[ingest]'",
    }


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ada/.local/share/pipx/venvs/zibaldone", "pipx inject zibaldone 'zibaldone[pull]'"),
        (
            "/home/ada/.local/share/uv/tools/zibaldone",
            "uv tool install --with 'zibaldone[pull]' zibaldone",
        ),
        ("/home/ada/.cache/uv/archive-v0/x1y2", "uvx --from 'zibaldone[pull]' zibaldone"),
        ("/home/ada/uv/venv", "pip install 'zibaldone[pull]'"),
    ],
    ids=["pipx", "uv", "uvx", "pip"],
)
def test_the_command_is_the_one_of_the_installation(
    monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    with pytest.raises(NotConfigured) as refusal:
        extras.require("pull", "no_such_library")
    assert refusal.value.details["install"] == command
    assert refusal.value.message.endswith(command)


def test_missing_looks_without_importing() -> None:
    assert extras.missing(["json", "no_such_library"]) == ["no_such_library"]
