"""What holds for every model that runs on this machine, with its real weights."""

from __future__ import annotations

import importlib.util
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.embed.built_in import needs
from zibaldone.embed.fast import Fast
from zibaldone.embed.minilm import MiniLm
from zibaldone.embed.multilingual import Multilingual
from zibaldone.embed.open import BUILT_IN, EmbedderSettings, open_embedder
from zibaldone.errors import ConfigurationError, EmbeddingFailed, NotConfigured
from zibaldone.extras import missing

Model = MiniLm | Fast | Multilingual

TEXTS = [
    "Quarterly revenue grew by eight percent",
    "A recipe for sourdough bread with rye flour",
    "",
    " ",
    "\n\t",
    "\x00",
    "12",
    "<s>",
    "ü 日本 \U0001f600",
    "שלום עולם नमस्ते दुनिया",
    "\ufdfa" * 3_000,
    "word " * 4_000,
    "Ein Satz über Öfen. " * 40,
]


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=needs(kind)) for kind in BUILT_IN])
def model(request: pytest.FixtureRequest) -> Model:
    return BUILT_IN[request.param]()


@pytest.fixture(params=BUILT_IN)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_vectors_are_of_unit_length_and_as_many_as_texts(model: Model) -> None:
    vectors = model.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), model.dimensions)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert model.embed([]).shape == (0, model.dimensions)


def test_a_text_has_the_same_vector_every_time_alone_or_among_others(model: Model) -> None:
    alone = [model.embed([text])[0].tobytes() for text in TEXTS]
    assert [row.tobytes() for row in model.embed(TEXTS)] == alone
    assert [row.tobytes() for row in model.embed(TEXTS[::-1])] == alone[::-1]
    assert [row.tobytes() for row in type(model)().embed(TEXTS)] == alone


def test_threads_do_not_disturb_each_other(model: Model) -> None:
    texts = [f"sentence number {number} about something" * (number + 1) for number in range(12)]
    expected = [row.tobytes() for row in model.embed(texts)]
    ready = threading.Barrier(4)

    def use(part: int) -> list[bytes]:
        ready.wait(20)
        if part == 0:
            return [row.tobytes() for row in model.embed(texts)]
        return [model.embed([text])[0].tobytes() for text in texts]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(use, range(4))) == [expected] * 4


def test_text_far_beyond_a_passage_changes_nothing(model: Model) -> None:
    long = "word " * 4_000
    first, second = model.embed([long, long + "and something quite different"])
    assert first.tobytes() == second.tobytes()


def test_it_is_loaded_by_the_first_use_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = sys.modules[type(model).__module__]
    loads: list[object] = []
    load = module._load

    def counted(files: dict[str, Path]) -> object:
        loads.append(files)
        return load(files)

    monkeypatch.setattr(module, "_load", counted)
    fresh = type(model)()
    assert loads == []
    ready = threading.Barrier(4)

    def use(text: str) -> None:
        ready.wait(20)
        fresh.embed([text])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, "abcd"))
    assert len(loads) == 1


def test_a_text_that_is_none_has_failed_and_the_next_one_works(model: Model) -> None:
    with pytest.raises(EmbeddingFailed, match="could not embed"):
        model.embed(["half a character: \ud800"])
    assert model.embed(["x"]).shape == (1, model.dimensions)


def test_a_file_that_is_not_the_published_one_is_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them it is, and also when it is gone."""
    module: Any = sys.modules[type(model).__module__]
    package = importlib.util.find_spec(model.packages[0])
    assert package is not None
    assert package.origin is not None
    copy = tmp_path / "copy"
    for name in module.FILES:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).symlink_to(Path(package.origin).parent / name)
    package.origin = str(copy / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: package)
    for name in module.FILES:
        right = (copy / name).readlink()
        (copy / name).unlink()
        with pytest.raises(
            NotConfigured, match=f"{Path(name).name} of the embedding model is damaged"
        ):
            type(model)().embed(["text"])
        (copy / name).write_bytes(b"something else")
        with pytest.raises(
            NotConfigured, match=f"{Path(name).name} of the embedding model is damaged"
        ):
            type(model)().embed(["text"])
        (copy / name).unlink()
        (copy / name).symlink_to(right)
    assert type(model)().embed(["text"]).shape == (1, model.dimensions)


def test_it_is_chosen_by_its_name(model: Model) -> None:
    (kind,) = (kind for kind, one in BUILT_IN.items() if isinstance(model, one))
    assert isinstance(open_embedder(EmbedderSettings(kind)), type(model))


def test_asking_for_one_that_is_missing_is_refused_with_what_to_do(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = f"zibaldone model install {kind}"
    find_spec = importlib.util.find_spec
    for package in BUILT_IN[kind].packages:

        def without(name: str, *more: str, absent: str = package) -> Any:
            return None if name == absent else find_spec(name, *more)

        monkeypatch.setattr(importlib.util, "find_spec", without)
        assert missing(BUILT_IN[kind].packages) == [package]
        with pytest.raises(ConfigurationError) as refused:
            open_embedder(EmbedderSettings(kind))
        assert f"embedder is {kind}, but {package} is not installed" in refused.value.message
        assert how in refused.value.message


def test_files_that_vanish_later_are_said_to_be_missing(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None)
    with pytest.raises(NotConfigured, match="keyword search works without"):
        BUILT_IN[kind]().embed(["text"])


def test_each_has_an_identity_of_its_own() -> None:
    assert len({model.identity for model in BUILT_IN.values()}) == len(BUILT_IN)
