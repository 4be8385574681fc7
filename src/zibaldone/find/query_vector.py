"""A query's vector, within its time, or the reason why there is none."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass

from zibaldone.embed.port import Embedder, Vectors
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import QUERY_EMBEDS_MAX, QUERY_EMBEDS_WAITING_MAX

_log = logging.getLogger("zibaldone.find")

_CACHED_MAX = 512
"""Agents repeat themselves, and pages of one search ask for the same vector."""

NO_MODEL = "No embedding model is installed."
SLOW = "The embedding model is slow at the moment."
FAILED = "The embedding model failed."


@dataclass(frozen=True, slots=True)
class QueryVector:
    vector: Vectors | None
    reason: str | None = None
    """Why there is none."""


class QueryVectors:
    """Vectors of queries. A caller that gave up waiting leaves the work running for the next."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, Vectors] = OrderedDict()
        self._asked: dict[str, Future[Vectors]] = {}
        """Texts that run or wait."""
        self._waiting: deque[str] = deque()
        self._threads = 0

    async def of(self, text: str, seconds_max: float) -> QueryVector:
        if self.embedder is None:
            return QueryVector(None, NO_MODEL)
        embedding = self._cached_or_asked(self.embedder, text)
        if embedding is None:
            return QueryVector(None, SLOW)
        if not isinstance(embedding, Future):
            return QueryVector(embedding)
        try:
            async with asyncio.timeout(seconds_max):
                vector: Vectors = await asyncio.wrap_future(embedding)
                return QueryVector(vector)
        except TimeoutError:
            return QueryVector(None, SLOW)
        except ZibaldoneError as error:
            return QueryVector(None, error.message)
        except Exception:
            _log.exception("the embedding model failed")
            return QueryVector(None, FAILED)

    async def ready(self, seconds_max: float) -> None:
        """Wait for the model to be loaded, for one who has only one thing to ask of it."""
        await self.of("ready?", seconds_max)

    def _cached_or_asked(self, embedder: Embedder, text: str) -> Vectors | Future[Vectors] | None:
        """None: too many wait already."""
        with self._lock:
            if (known := self._cached.get(text)) is not None:
                self._cached.move_to_end(text)
                return known
            if (asked := self._asked.get(text)) is not None:
                return asked
            if len(self._waiting) >= QUERY_EMBEDS_WAITING_MAX:
                return None
            future = self._asked[text] = Future()
            # From now on a caller that is cancelled cannot cancel it for the others.
            future.set_running_or_notify_cancel()
            self._waiting.append(text)
            if self._threads < QUERY_EMBEDS_MAX:
                self._threads += 1
                # A daemon: a server does not wait, at its end, for a model that hangs.
                threading.Thread(
                    target=self._embed_waiting,
                    args=(embedder,),
                    name="zibaldone-query-vector",
                    daemon=True,
                ).start()
        return future

    def _embed_waiting(self, embedder: Embedder) -> None:
        while (text := self._next()) is not None:
            self._embed(embedder, text)

    def _next(self) -> str | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None

    def _embed(self, embedder: Embedder, text: str) -> None:
        try:
            vector: Vectors = embedder.embed([text])[0]
        except BaseException as problem:  # whoever waits for it raises it again
            with self._lock:
                future = self._asked.pop(text)
            future.set_exception(problem)
            return
        with self._lock:
            future = self._asked.pop(text)
            self._cached[text] = vector
            if len(self._cached) > _CACHED_MAX:
                self._cached.popitem(last=False)
        future.set_result(vector)
