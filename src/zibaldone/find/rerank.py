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

from zibaldone.access.share import current_share
from zibaldone.access.turns import TaskTurns, Turns
from zibaldone.embed.port import Reranker
from zibaldone.errors import ZibaldoneError
from zibaldone.find.documents import DocumentHit
from zibaldone.find.missing import Missing
from zibaldone.limits import (
    RERANK_FAILURES_MAX,
    RERANK_PAUSE_SECONDS,
    RERANK_REQUESTS_BESIDE_OTHERS,
    RERANK_REQUESTS_EXTRA,
    RERANK_REQUESTS_MAX,
    RERANK_TEXT_CHARS_MAX,
)
from zibaldone.model.chunk import ChunkView

_log = logging.getLogger("zibaldone.find")

LATE = "The reranker did not answer in time"
BUSY = "The reranker has too much to do"
PAUSED = "The reranker failed several times and is tried again soon"

_SHARES_MAX = 1_000
"""Keys whose failures are remembered."""


@dataclass(frozen=True, slots=True)
class Reordered:
    hits: list[DocumentHit]
    missing: tuple[Missing, ...] = ()


@dataclass(slots=True)
class _Luck:
    """How the last searches of a share fared."""

    failures: int = 0
    paused_until_s: float = -math.inf


class Reranking:
    """Asks a reranker within bounds, in turn for the shares that search. After several failures in
    a row a share leaves it alone for a while, so that searches do not wait in vain."""

    def __init__(self, reranker: Reranker, *, seconds_max: float, candidates_max: int) -> None:
        self.reranker = reranker
        self.candidates_max = candidates_max
        self._seconds_max = seconds_max
        self._luck: dict[str, _Luck] = {}
        self._turns = TaskTurns(
            Turns(
                RERANK_REQUESTS_MAX,
                per_share=RERANK_REQUESTS_MAX,
                beside_others=RERANK_REQUESTS_BESIDE_OTHERS,
                extra=RERANK_REQUESTS_EXTRA,
            )
        )

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
        luck = self._luck_of(current_share())
        if time.monotonic() < luck.paused_until_s:
            return PAUSED
        has_begun = False
        try:
            async with asyncio.timeout(self._seconds_max), self._turns:
                has_begun = True
                scores = await self.reranker.scores(question, texts)
        except TimeoutError:
            return _failed(luck, LATE) if has_begun else BUSY
        except ZibaldoneError as error:
            return _failed(luck, error.message)
        luck.failures = 0
        return scores

    def _luck_of(self, share: str) -> _Luck:
        if share not in self._luck and len(self._luck) >= _SHARES_MAX:
            self._luck.clear()  # at worst a few searches wait in vain
        return self._luck.setdefault(share, _Luck())


def _failed(luck: _Luck, reason: str) -> str:
    luck.failures += 1
    _log.warning("reranker failed", extra={"reason": reason})
    if luck.failures >= RERANK_FAILURES_MAX:
        luck.failures = 0
        luck.paused_until_s = time.monotonic() + RERANK_PAUSE_SECONDS
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
