"""zibaldone model install: what it says and where it writes. Nothing is downloaded here."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from zibaldone import extras, settings
from zibaldone.embed import install
from zibaldone.embed.installed import describe

pytestmark = pytest.mark.engine("sqlite", reason="nothing of it is about the store")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No model in the environment; one that is installed has no files."""
    folder = tmp_path / "share" / "zibaldone" / "models"

    def fill(model: Any, target: Path, report: Any) -> None:
        del report
        describe(target, model.kind, {})

    monkeypatch.setattr(settings, "MODELS_FOLDER", folder)
    monkeypatch.setattr(extras, "missing", lambda packages: [*packages])
    monkeypatch.setattr(install, "_fill", fill)
    return folder


def test_it_says_which_model_is_used_and_how_to_use_another(cli: Commands, models: Path) -> None:
    first = cli("model", "install")
    assert first.exit_code == 0, first.output
    assert "embedder = auto takes minilm." in first.stderr
    second = cli("model", "install", "multilingual")
    assert f"multilingual installed in {models / 'multilingual'}" in second.stdout
    assert "embedder = auto still takes minilm." in second.stderr
    assert 'embedder = "multilingual" into zibaldone.toml' in second.stderr
    assert "ZIBALDONE_EMBEDDER=multilingual" in second.stderr
    assert "zibaldone reindex" in second.stderr
    assert cli.json("model", "list")["auto"] == "minilm"
    cli.ok("model", "remove", "minilm")
    assert "auto takes multilingual." in cli("model", "install", "multilingual").stderr


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_folders_that_it_makes_are_private(cli: Commands, models: Path) -> None:
    cli.ok("model", "install")
    for made in (models, *models.parents[:2]):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700, made
