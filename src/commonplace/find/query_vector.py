"""A query's vector, within its time, or the reason why there is none."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from commonplace.embed.port import Embedder, Vectors
from commonplace.errors import CommonplaceError, VectorsLoading

_CACHED_MAX = 512
"""Agents repeat themselves, and pages of one search ask for the same vector."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    vector: Vectors | None
    reason: str | None = None
    """Why a search goes on with keywords alone."""


def without(error: VectorsLoading) -> QueryVector:
    """What a search goes on with that cannot wait for the vectors of the passages."""
    return QueryVector(None, f"{error.message} Keywords only.")


class QueryVectors:
    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._cached: OrderedDict[str, Vectors] = OrderedDict()

    async def of(self, text: str, seconds_max: float) -> QueryVector:
        if self.embedder is None:
            return QueryVector(None, "no embedding model is installed: keywords only")
        known = self._cached.get(text)
        if known is not None:
            self._cached.move_to_end(text)
            return QueryVector(known)
        try:
            async with asyncio.timeout(seconds_max):
                vectors = await asyncio.to_thread(self.embedder.embed, [text])
        except TimeoutError:
            return QueryVector(None, "the embedding model is slow at the moment: keywords only")
        except CommonplaceError as error:
            return QueryVector(None, f"{error.message} Keywords only.")
        self._cached[text] = vectors[0]
        if len(self._cached) > _CACHED_MAX:
            self._cached.popitem(last=False)
        return QueryVector(vectors[0])
