"""The built-in model, with its real weights: the same to the bit, and it knows what is meant."""

from __future__ import annotations

import importlib.util
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from commonplace.embed import builtin
from commonplace.embed.builtin import DATA_PACKAGE, DIMENSIONS, MiniLm, is_available
from commonplace.embed.open import EmbedderSettings, open_embedder
from commonplace.errors import ConfigurationError, NotConfigured

needs_model = pytest.mark.skipif(
    not is_available(), reason="the built-in model is not installed: make setup"
)

NEAR = (
    ("How do I reset my password?", "Steps to recover a forgotten login"),
    ("The database is locked by another process", "Two programs write to the same SQLite file"),
    ("giraffes eat leaves of acacia trees", "what do tall African animals feed on"),
)
FAR = ("Quarterly revenue grew by eight percent", "A recipe for sourdough bread with rye flour")


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm()


@needs_model
class TestModel:
    def test_vectors_are_of_unit_length_and_as_many_as_texts(self, model: MiniLm) -> None:
        vectors = model.embed([text for pair in NEAR for text in pair])
        assert vectors.shape == (6, DIMENSIONS)
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(6), abs=1e-5)
        assert model.embed([]).shape == (0, DIMENSIONS)

    def test_a_text_has_the_same_vector_every_time_alone_or_among_others(
        self, model: MiniLm
    ) -> None:
        texts = [*FAR, "", " ", "ü 日本 \U0001f600", "word " * 2_000, *(t for p in NEAR for t in p)]
        alone = [model.embed([text])[0].tobytes() for text in texts]
        assert [row.tobytes() for row in model.embed(texts)] == alone
        assert [row.tobytes() for row in model.embed(texts[::-1])] == alone[::-1]
        assert MiniLm().embed(texts)[3].tobytes() == alone[3]

    def test_threads_do_not_disturb_each_other(self, model: MiniLm) -> None:
        texts = [f"sentence number {number} about something" for number in range(12)]
        expected = [row.tobytes() for row in model.embed(texts)]
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda text: model.embed([text])[0].tobytes(), texts))
        assert found == expected

    def test_what_is_meant_alike_is_near(self, model: MiniLm) -> None:
        for one, other in NEAR:
            vectors = model.embed([one, other, *FAR])
            cosines = vectors[1:] @ vectors[0]
            assert cosines[0] > 0.25
            assert cosines[0] > 2 * max(cosines[1:])

    def test_text_beyond_what_it_reads_changes_nothing(self, model: MiniLm) -> None:
        long = "word " * 300
        first, second = model.embed([long, long + "and something quite different"])
        assert first.tobytes() == second.tobytes()

    def test_it_is_loaded_by_the_first_use_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loads: list[Path] = []
        load = builtin._load

        def counted(folder: Path) -> object:
            loads.append(folder)
            return load(folder)

        monkeypatch.setattr(builtin, "_load", counted)
        fresh = MiniLm()
        assert loads == []
        ready = threading.Barrier(4)

        def use(text: str) -> None:
            ready.wait(20)
            fresh.embed([text])

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(use, "abcd"))
        assert len(loads) == 1

    def test_weights_that_are_not_the_published_ones_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "model_quantized.onnx").write_bytes(b"something else")
        monkeypatch.setattr(builtin, "_data_folder", lambda: tmp_path)
        with pytest.raises(NotConfigured, match="not the one that was published"):
            MiniLm().embed(["text"])

    def test_auto_chooses_it(self) -> None:
        assert isinstance(open_embedder(EmbedderSettings("auto")), MiniLm)
        assert isinstance(open_embedder(EmbedderSettings("minilm")), MiniLm)


class TestMissing:
    @pytest.fixture(params=[DATA_PACKAGE, "onnxruntime", "tokenizers"])
    def _without(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """As on a machine where that package is not installed."""
        find_spec = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *more: None if name == request.param else find_spec(name, *more),
        )

    @pytest.mark.usefixtures("_without")
    def test_auto_goes_on_with_keywords_only(self) -> None:
        assert not is_available()
        assert open_embedder(EmbedderSettings("auto")) is None

    @pytest.mark.usefixtures("_without")
    def test_asking_for_it_by_name_is_refused_with_what_to_do(self) -> None:
        with pytest.raises(ConfigurationError, match="make setup") as refused:
            open_embedder(EmbedderSettings("minilm"))
        assert "minilm" in refused.value.message

    def test_weights_that_vanish_later_are_said_to_be_missing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None)
        with pytest.raises(NotConfigured, match="keyword search works without"):
            MiniLm().embed(["text"])


def test_it_trusts_itself_only_with_scripts_it_knows() -> None:
    model = MiniLm()
    assert model.vector_weight("plain English words") == 1.0
    assert model.vector_weight("12 + 34 = 46") == 1.0
    assert model.vector_weight("Öffnungszeiten für Bürger über Ämter") == 0.5
    assert model.vector_weight("知识库搜索") == 0.0
    assert model.vector_weight("ค้นหาความรู้") == 0.0
    assert model.vector_weight("") == 1.0
