"""What the product asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zibaldone.model.vector import Vectors

__all__ = ["Embedder", "Vectors"]


class Embedder(Protocol):
    """Nothing is loaded before the first use; every method may block and belongs in a thread."""

    @property
    def identity(self) -> str:
        """Everything that changes a vector: name, quantisation, file hash, pooling, length."""
        ...

    @property
    def name(self) -> str:
        """What users call the model."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def similarity_min(self) -> float:
        """Nearest is not near: a base without an answer has nearest passages too. Below this cosine
        a passage is not found for its meaning; -1 where that is not known."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A unit vector for each text, in order. Raises EmbeddingFailed."""
        ...

    def language_trust(self, text: str) -> float:
        """How far the vectors can be trusted for a text in this script, from 0 to 1."""
        ...

    def close(self) -> None:
        """Give back threads and connections; nothing is embedded afterwards."""
        ...
