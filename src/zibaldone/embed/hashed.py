"""Vectors from hashed words: no model and no meaning, but deterministic. For tests only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from zibaldone.embed.port import Vectors
from zibaldone.model.vector import np

_WORD = re.compile(r"\w+")


class Hashed:
    name = "hashed"
    similarity_min = 0.25

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.identity = f"hashed/{dimensions}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([self._embed(text) for text in texts])

    def language_trust(self, text: str) -> float:
        del text
        return 1.0

    def close(self) -> None:
        pass

    def _embed(self, text: str) -> Vectors:
        vector = np.full(self.dimensions, 1e-6, np.float32)
        for word in _WORD.findall(text.casefold()):
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
            vector += np.random.default_rng(seed).standard_normal(self.dimensions, np.float32)
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit
