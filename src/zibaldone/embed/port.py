"""The interface of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zibaldone.model.vector import Vectors

__all__ = ["Embedder", "Vectors"]


class Embedder(Protocol):
    """Loads nothing before its first use. Methods may block: call them in a thread."""

    @property
    def identity(self) -> str:
        """Everything that changes a vector: model, quantisation, file hash, pooling, length."""
        ...

    @property
    def name(self) -> str:
        """The model's usual name."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def similarity_min(self) -> float:
        """Cosine below which a chunk is not a hit: even without an answer there are nearest chunks.
        -1 if it is not known for this model."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A unit vector for each text, in order. Raises EmbeddingFailed."""
        ...

    def language_trust(self, text: str) -> float:
        """How far the vectors can be trusted for a text in this script, from 0 to 1."""
        ...

    def close(self) -> None:
        """Release threads and connections. Nothing can be embedded afterwards."""
        ...
