"""The order of the best hits by a reranker, if there is one and it answers in time.

It never fails a search: without its answer the order stays as it is, and the answer says so. It
runs on the event loop, after the store was read: it holds no reader meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from zibaldone.embed.port import Reranker
from zibaldone.errors import ZibaldoneError
from zibaldone.find.documents import DocumentHit
from zibaldone.find.missing import Missing
from zibaldone.limits import (
    RERANK_FAILURES_MAX,
    RERANK_PAUSE_SECONDS,
    RERANK_REQUESTS_MAX,
    RERANK_TEXT_CHARS_MAX,
)
from zibaldone.model.chunk import ChunkView

_log = logging.getLogger("zibaldone.find")

LATE = "The reranker did not answer in time"
BUSY = "The reranker has too much to do"
PAUSED = "The reranker failed several times and is tried again soon"


@dataclass(frozen=True, slots=True)
class Reordered:
    hits: list[DocumentHit]
    missing: tuple[Missing, ...] = ()


class Reranking:
    """Asks a reranker within bounds. After several failures in a row it is left alone for a while,
    so that searches do not wait in vain."""

    def __init__(self, reranker: Reranker, *, seconds_max: float, candidates_max: int) -> None:
        self.reranker = reranker
        self.candidates_max = candidates_max
        self._seconds_max = seconds_max
        self._running = 0
        self._failures = 0
        self._paused_until_s = -math.inf

    async def reorder(self, question: str, hits: Sequence[DocumentHit]) -> Reordered:
        """The same hits, the first of them in the order of the reranker, with its scores."""
        first, others = hits[: self.candidates_max], hits[self.candidates_max :]
        if len(first) < 2:
            return Reordered(list(hits))
        texts = [text_of(hit.chunks[0]) for hit in first]
        scores = await self._scores(question[:RERANK_TEXT_CHARS_MAX], texts)
        if isinstance(scores, str):
            return Reordered(list(hits), (Missing("reranker", scores),))
        return Reordered(reordered(first, scores, others))

    async def _scores(self, question: str, texts: Sequence[str]) -> list[float] | str:
        """The scores, or why there are none."""
        if time.monotonic() < self._paused_until_s:
            return PAUSED
        if self._running >= RERANK_REQUESTS_MAX:
            return BUSY
        self._running += 1
        try:
            async with asyncio.timeout(self._seconds_max):
                scores = await self.reranker.scores(question, texts)
        except TimeoutError:
            return self._failed(LATE)
        except ZibaldoneError as error:
            return self._failed(error.message)
        finally:
            self._running -= 1
        self._failures = 0
        return scores

    def _failed(self, reason: str) -> str:
        self._failures += 1
        _log.warning("reranker failed", extra={"reason": reason})
        if self._failures >= RERANK_FAILURES_MAX:
            self._failures = 0
            self._paused_until_s = time.monotonic() + RERANK_PAUSE_SECONDS
        return reason


def text_of(chunk: ChunkView) -> str:
    """What a reranker reads of a chunk: it is told where the text is from, as people are."""
    labels = dict.fromkeys(filter(None, (chunk.title, chunk.heading)))
    return "\n".join((*labels, chunk.text))[:RERANK_TEXT_CHARS_MAX]


def reordered(
    first: Sequence[DocumentHit], scores: Sequence[float], others: Sequence[DocumentHit]
) -> list[DocumentHit]:
    """By the reranker's scores, brought to 0…1; the others follow, with no better scores."""
    if all(0.0 <= score <= 1.0 for score in scores):
        known = list(scores)
    else:  # some models return logits
        known = [0.5 + 0.5 * math.tanh(score / 2) for score in scores]
    order = sorted(range(len(first)), key=lambda place: (-scores[place], place))
    least = min(known)
    return [
        *(replace(first[place], score=known[place]) for place in order),
        *(replace(hit, score=min(hit.score, least)) for hit in others),
    ]
