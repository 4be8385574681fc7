"""The interfaces of an embedding model and of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zibaldone.model.vector import Vectors

__all__ = ["Embedder", "Reranker", "Vectors"]


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


class Reranker(Protocol):
    """A model that reads a question together with a text: slower than vectors, and better."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the question, in order: higher is better, on any scale.

        Raises RerankerUnavailable. The caller bounds the time.
        """
        ...
