"""`fast`: wordllama's table of a vector for each token, averaged. No network to run, hence quick.

Its package is read, never imported: importing it sets up logging for the whole process, and it can
fetch files. Every text is averaged alone, so its vector does not depend on its neighbours.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commonplace.embed.package import published_files
from commonplace.embed.port import Vectors
from commonplace.embed.script import english_trust
from commonplace.errors import CommonplaceError, EmbeddingFailed, NotConfigured
from commonplace.limits import EMBED_CHARS_MAX
from commonplace.model.vector import np

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
"""Of what a model that reads sentences gets (docs/explain/finding.md)."""


class Fast:
    packages = (DATA_PACKAGE, "safetensors", "tokenizers")
    how_to_get = "To install it: pip install 'commonplace[fast]'."

    name = NAME
    dimensions = DIMENSIONS
    identity = f"{NAME}/{FILES[WEIGHTS][:12]}/mean/{EMBED_CHARS_MAX}"
    similarity_min = 0.2
    """Of passages that answer a question, one in fifty is below this. The nearest of those that do
    not are often above: it cannot tell them apart as well as minilm."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Vectors, Any] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        try:
            table, tokenizer = self._load()
            return np.stack([_mean(table, tokenizer, text) for text in texts])
        except CommonplaceError:
            raise
        except Exception as problem:
            raise EmbeddingFailed(f"{NAME} could not embed a text: {problem}") from problem

    def vector_weight(self, text: str) -> float:
        return _TRUST * english_trust(text)

    def close(self) -> None:
        pass

    def _load(self) -> tuple[Vectors, Any]:
        with self._lock:
            if self._loaded is None:
                files = published_files(DATA_PACKAGE, FILES, how_to_get=self.how_to_get)
                self._loaded = _load(files)
            return self._loaded


def _load(files: dict[str, Path]) -> tuple[Vectors, Any]:
    try:
        import safetensors.numpy
        import tokenizers
    except ImportError:
        raise NotConfigured(f"The model needs two packages. {Fast.how_to_get}") from None
    (weights,) = safetensors.numpy.load_file(files[WEIGHTS]).values()
    tokenizer = tokenizers.Tokenizer.from_file(str(files[TOKENIZER]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Half precision in the file; widening it for each text anew would take longer than the text.
    table: Vectors = weights.astype(np.float32)
    return table, tokenizer


def _mean(table: Vectors, tokenizer: Any, text: str) -> Vectors:
    ids = tokenizer.encode(text[:EMBED_CHARS_MAX], add_special_tokens=False).ids
    total: Vectors = table[ids].sum(axis=0)
    length = float(np.linalg.norm(total))
    if length == 0.0:  # nothing to read
        return np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)
    return total / np.float32(length)
