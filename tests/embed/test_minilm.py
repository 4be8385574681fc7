"""all-MiniLM-L6-v2, with its real weights: it knows what is meant, and it is what auto takes."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embed.built_in import needs
from zibaldone.embed.minilm import MiniLm
from zibaldone.embed.multilingual import Multilingual
from zibaldone.embed.open import BUILT_IN, EmbedderSettings, open_embedder

NEAR = (
    ("How do I reset my password?", "Steps to recover a forgotten login"),
    ("The database is locked by another process", "Two programs write to the same SQLite file"),
    ("giraffes eat leaves of acacia trees", "what do tall African animals feed on"),
)
FAR = ("Quarterly revenue grew by eight percent", "A recipe for sourdough bread with rye flour")


@needs("minilm")
def test_what_is_meant_alike_is_near() -> None:
    model = MiniLm()
    for one, other in NEAR:
        vectors = model.embed([one, other, *FAR])
        cosines = vectors[1:] @ vectors[0]
        assert cosines[0] > model.similarity_min
        assert cosines[0] > 2 * max(cosines[1:])


@needs("minilm")
def test_it_tells_nobody_about_this_machine(tmp_path: Path) -> None:
    """onnxruntime writes an id of the machine and events into the home folder, and sends them."""
    code = "from zibaldone.embed.minilm import MiniLm; MiniLm().embed(['a'])"
    environment = {**os.environ, "HOME": str(tmp_path)}
    for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []


@needs("minilm")
def test_it_reads_as_far_as_it_can() -> None:
    long = "word " * 300
    first, second = MiniLm().embed([long, long + "and something quite different"])
    assert first.tobytes() == second.tobytes()


@needs("minilm")
def test_auto_chooses_it() -> None:
    assert isinstance(open_embedder(EmbedderSettings("auto")), MiniLm)


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name in packages else find_spec(name, *more),
    )


@needs("multilingual")
@pytest.mark.parametrize("package", MiniLm.packages)
def test_without_it_auto_takes_the_next_best(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, package)
    assert isinstance(open_embedder(EmbedderSettings("auto")), Multilingual)


def test_without_any_auto_goes_on_with_keywords_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, *(model.packages[0] for model in BUILT_IN.values()))
    assert open_embedder(EmbedderSettings("auto")) is None
    assert open_embedder(EmbedderSettings("auto", models=tmp_path)) is None


def test_the_package_for_checkouts_has_the_same_files() -> None:
    """models/minilm/build.py runs before Zibaldone is installed, so it has them once more."""
    script = runpy.run_path(str(Path(__file__).parents[2] / "models" / "minilm" / "build.py"))
    assert (script["FILES"], script["CARRIER"]) == (MiniLm.files, MiniLm.carrier)
    assert script["PACKAGE"] == MiniLm.packages[0]


def test_it_trusts_itself_only_with_scripts_it_knows() -> None:
    model = MiniLm()
    assert model.language_trust("plain English words") == 1.0
    assert model.language_trust("12 + 34 = 46") == 1.0
    assert model.language_trust("Öffnungszeiten für Bürger über Ämter") == 0.5
    assert model.language_trust("Wer hat das Rathaus von Bremen gebaut?") == 0.5
    assert model.language_trust("Who built the town hall of Bremen?") == 1.0
    assert model.language_trust("知识库搜索") == 0.0
    assert model.language_trust("ค้นหาความรู้") == 0.0
    assert model.language_trust("") == 1.0
