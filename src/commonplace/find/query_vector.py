"""A query's vector, within its time, or the reason why there is none."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

from commonplace.embed.port import Embedder, Vectors
from commonplace.errors import CommonplaceError

_log = logging.getLogger("commonplace.find")

_CACHED_MAX = 512
"""Agents repeat themselves, and pages of one search ask for the same vector."""

_RUNNING_MAX = 8
"""Texts embedded at once. More than that wait for a model that hangs: searches go on without."""

NO_MODEL = "no embedding model is installed: keywords only"
SLOW = "the embedding model is slow at the moment: keywords only"
FAILED = "the embedding model failed: keywords only"


@dataclass(frozen=True, slots=True)
class QueryVector:
    vector: Vectors | None
    reason: str | None = None
    """Why a search goes on with keywords alone."""


class QueryVectors:
    """Vectors of queries. A caller that gave up waiting leaves the work running for the next."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, Vectors] = OrderedDict()
        self._running: dict[str, Future[Vectors]] = {}

    async def of(self, text: str, seconds_max: float) -> QueryVector:
        if self.embedder is None:
            return QueryVector(None, NO_MODEL)
        found = self._cached_or_running(self.embedder, text)
        if found is None:
            return QueryVector(None, SLOW)
        if not isinstance(found, Future):
            return QueryVector(found)
        try:
            async with asyncio.timeout(seconds_max):
                vector: Vectors = await asyncio.wrap_future(found)
                return QueryVector(vector)
        except TimeoutError:
            return QueryVector(None, SLOW)
        except CommonplaceError as error:
            return QueryVector(None, f"{error.message} Keywords only.")
        except Exception:
            _log.exception("the embedding model failed")
            return QueryVector(None, FAILED)

    async def ready(self, seconds_max: float) -> None:
        """Wait for the model to be loaded, for one who has only one thing to ask of it."""
        await self.of("ready?", seconds_max)

    def _cached_or_running(self, embedder: Embedder, text: str) -> Vectors | Future[Vectors] | None:
        """None: too many run already."""
        with self._lock:
            if (known := self._cached.get(text)) is not None:
                self._cached.move_to_end(text)
                return known
            if (running := self._running.get(text)) is not None:
                return running
            if len(self._running) >= _RUNNING_MAX:
                return None
            future = self._running[text] = Future()
        # Once it runs, a caller that is cancelled cannot cancel it for the others.
        future.set_running_or_notify_cancel()
        # A daemon: a server does not wait, at its end, for a model that hangs.
        threading.Thread(
            target=self._embed,
            args=(embedder, text, future),
            name="commonplace-query-vector",
            daemon=True,
        ).start()
        return future

    def _embed(self, embedder: Embedder, text: str, future: Future[Vectors]) -> None:
        try:
            vector: Vectors = embedder.embed([text])[0]
        except BaseException as problem:  # whoever waits for it raises it again
            with self._lock:
                del self._running[text]
            future.set_exception(problem)
            return
        with self._lock:
            del self._running[text]
            self._cached[text] = vector
            if len(self._cached) > _CACHED_MAX:
                self._cached.popitem(last=False)
        future.set_result(vector)
