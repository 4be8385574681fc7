"""The setting `embedder` → the model; the hashed one for tests; the one that is watched."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.drivers.server import run_cli
from zibaldone import settings
from zibaldone.embed.hashed import Hashed
from zibaldone.embed.open import BUILT_IN, EMBEDDERS, EmbedderSettings, open_embedder
from zibaldone.embed.port import Vectors
from zibaldone.embed.remote import Remote
from zibaldone.embed.watched import Watched
from zibaldone.errors import ConfigurationError, EmbeddingFailed


def test_every_name_of_the_setting_is_known_to_it() -> None:
    named = {"url": "http://127.0.0.1/v1", "model": "m", "dimensions": 3}
    for kind in EMBEDDERS:
        chosen = settings.load({"embedder": kind}, environment={})
        assert chosen.embedder == kind
        if kind not in ("auto", *BUILT_IN):
            open_embedder(EmbedderSettings(kind, **named))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=f"embedder.*one of {', '.join(EMBEDDERS)}"):
        settings.load({"embedder": "other"}, environment={})


def test_none_is_keyword_search_only() -> None:
    assert open_embedder(EmbedderSettings("none")) is None


def test_a_remote_model_needs_its_address_name_and_length() -> None:
    right = {"url": "http://127.0.0.1/v1", "model": "m", "dimensions": 3}
    assert isinstance(open_embedder(EmbedderSettings("remote", **right)), Remote)  # type: ignore[arg-type]
    for wrong in ({"url": ""}, {"url": "ftp://x"}, {"model": ""}, {"dimensions": 0}):
        with pytest.raises(ConfigurationError, match="embedding_url"):
            open_embedder(EmbedderSettings("remote", **{**right, **wrong}))  # type: ignore[arg-type]


def test_a_server_does_not_start_with_half_a_remote_model(tmp_path: Path) -> None:
    result = run_cli("serve", data=tmp_path / "data", environment={"ZIBALDONE_EMBEDDER": "remote"})
    assert result.returncode == 2
    assert "embedding_url" in result.stderr
    assert "Traceback" not in result.stderr


class TestHashed:
    def test_it_is_repeatable_and_of_unit_length(self) -> None:
        texts = ["zebra", "Zebra!", "a zebra and a lion", "", "日本"]
        first, second = Hashed().embed(texts), Hashed().embed(texts)
        assert first.tobytes() == second.tobytes()
        assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
        assert first[0].tobytes() == first[1].tobytes(), "words count, not their case"
        assert Hashed().embed([]).shape == (0, 64)

    def test_shared_words_are_near_and_others_are_not(self) -> None:
        vectors = Hashed(256).embed(["zebra lion okapi", "zebra lion giraffe", "invoice paid late"])
        assert vectors[0] @ vectors[1] > 0.4 > abs(vectors[0] @ vectors[2])

    def test_its_identity_says_its_length(self) -> None:
        assert Hashed(7).identity != Hashed(8).identity
        assert Hashed(7).embed(["x"]).shape == (1, 7)


class Moody(Hashed):
    problem: Exception | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.problem is not None:
            raise self.problem
        return super().embed(texts)


def test_a_watched_model_remembers_how_its_last_use_went() -> None:
    inner = Moody()
    watched = Watched(inner)
    assert (watched.identity, watched.name, watched.dimensions) == ("hashed/64", "hashed", 64)
    assert watched.language_trust("x") == 1.0
    assert watched.similarity_min == inner.similarity_min
    told: list[tuple[bool, str | None]] = [(watched.is_used, watched.problem)]
    for problem in (EmbeddingFailed("why"), ValueError("a text that must not be shown"), None):
        inner.problem = problem
        with contextlib.suppress(EmbeddingFailed, ValueError):
            assert watched.embed(["x"]).tobytes() == Hashed().embed(["x"]).tobytes()
        told.append((watched.is_used, watched.problem))
    assert told == [
        (False, None),
        (True, "why"),
        (True, "The embedding model failed (ValueError)."),
        (True, None),
    ]
