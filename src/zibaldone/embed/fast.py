"""`fast`: the mean of wordllama's token vectors. There is no network to run, so it is quick.

Its package is read but never imported: importing it would configure logging for the whole process,
and it can download files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from zibaldone.embed.package import PackagedModel, library
from zibaldone.embed.port import Vectors
from zibaldone.embed.script import english_trust
from zibaldone.limits import EMBED_CHARS_MAX
from zibaldone.model.vector import np

KIND = "fast"
NAME = "wordllama-l2-supercat-256"
DATA_PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
FILES = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
DIMENSIONS = 256

_TRUST = 0.8
"""Relative to a model that reads whole sentences (docs/explain/finding.md)."""


class Fast(PackagedModel[tuple[Vectors, Any]]):
    kind = KIND
    packages = (DATA_PACKAGE, "safetensors", "tokenizers")
    files = FILES
    carrier = "wordllama==0.4.0.post1"
    libraries = {"safetensors": "safetensors>=0.5", "tokenizers": "tokenizers>=0.20"}

    name = NAME
    dimensions = DIMENSIONS
    identity = f"{NAME}/{FILES[WEIGHTS][:12]}/mean/{EMBED_CHARS_MAX}"
    similarity_min = 0.2
    """One in fifty chunks that answer a question is below this. Chunks that do not answer it are
    often above: this model separates them less well than minilm."""

    def _vectors(self, texts: Sequence[str]) -> Iterable[Vectors]:
        table, tokenizer = self._load()
        return (_mean(table, tokenizer, text) for text in texts)

    def language_trust(self, text: str) -> float:
        return _TRUST * english_trust(text)

    def _read(self, files: dict[str, Path]) -> tuple[Vectors, Any]:
        return _load(files)


def _load(files: dict[str, Path]) -> tuple[Vectors, Any]:
    safetensors = library(KIND, "safetensors.numpy")
    tokenizers = library(KIND, "tokenizers")
    (weights,) = safetensors.load_file(files[WEIGHTS]).values()
    tokenizer = tokenizers.Tokenizer.from_file(str(files[TOKENIZER]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # The file has half precision; widening per text would take longer than embedding the text.
    table: Vectors = weights.astype(np.float32)
    return table, tokenizer


def _mean(table: Vectors, tokenizer: Any, text: str) -> Vectors:
    ids = tokenizer.encode(text[:EMBED_CHARS_MAX], add_special_tokens=False).ids
    total: Vectors = table[ids].sum(axis=0)
    length = float(np.linalg.norm(total))
    if length == 0.0:  # no tokens
        return np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)
    return total / np.float32(length)
