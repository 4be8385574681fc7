"""A query's vector, within its time, or the reason why there is none."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

from zibaldone.access.share import current_share
from zibaldone.access.turns import Turns
from zibaldone.embed.port import Embedder, Vectors
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import (
    QUERY_EMBEDS_BESIDE_OTHERS,
    QUERY_EMBEDS_EXTRA,
    QUERY_EMBEDS_MAX,
    QUERY_EMBEDS_PER_KEY_MAX,
    QUERY_EMBEDS_WAITING_MAX,
)

_log = logging.getLogger("zibaldone.find")

_CACHED_MAX = 512
"""Agents repeat themselves, and pages of one search ask for the same vector."""

_Name = tuple[str, str]
"""Who asks, and for what."""

NO_MODEL = "No embedding model is installed."
SWITCHED_OFF = "The setting embedder is none."
SLOW = "The embedding model is slow at the moment."
FAILED = "The embedding model failed."


@dataclass(frozen=True, slots=True)
class QueryVector:
    vector: Vectors | None
    reason: str | None = None
    """Why there is none."""


@dataclass(eq=False, slots=True)
class _Asked:
    """A text that runs or waits, for all of its share who ask for it meanwhile."""

    text: str
    share: str
    future: Future[Vectors]
    waiters: int = 0
    has_begun: bool = False

    @property
    def name(self) -> _Name:
        return self.share, self.text


class QueryVectors:
    """Vectors of queries, made in turn for the shares that ask (`access.turns`).

    A caller that gives up leaves what has begun for the next; what has not begun is not done for
    nobody. What was asked before is known to its own share only: else the time that an answer takes
    would tell a caller what others search for.
    """

    def __init__(self, embedder: Embedder | None, *, is_switched_off: bool = False) -> None:
        self.embedder = embedder
        self._why_none = SWITCHED_OFF if is_switched_off else NO_MODEL
        self._lock = threading.Lock()
        self._cached: OrderedDict[_Name, Vectors] = OrderedDict()
        self._asked: dict[_Name, _Asked] = {}
        self._turns: Turns[_Asked] = Turns(
            QUERY_EMBEDS_MAX,
            per_share=QUERY_EMBEDS_PER_KEY_MAX,
            beside_others=QUERY_EMBEDS_BESIDE_OTHERS,
            extra=QUERY_EMBEDS_EXTRA,
        )

    async def of(self, text: str, seconds_max: float) -> QueryVector:
        if self.embedder is None:
            return QueryVector(None, self._why_none)
        asked = self._cached_or_asked(self.embedder, text)
        if asked is None:
            return QueryVector(None, SLOW)
        if not isinstance(asked, _Asked):
            return QueryVector(asked)
        try:
            async with asyncio.timeout(seconds_max):
                vector: Vectors = await asyncio.wrap_future(asked.future)
                return QueryVector(vector)
        except TimeoutError:
            return QueryVector(None, SLOW)
        except ZibaldoneError as error:
            return QueryVector(None, error.message)
        except Exception:
            _log.exception("the embedding model failed")
            return QueryVector(None, FAILED)
        finally:
            self._leave(asked)

    async def ready(self, seconds_max: float) -> None:
        """Wait for the model to be loaded, for one who has only one thing to ask of it."""
        await self.of("ready?", seconds_max)

    def _cached_or_asked(self, embedder: Embedder, text: str) -> Vectors | _Asked | None:
        """None: too many wait already, this share among them."""
        share = current_share()
        name = (share, text)
        with self._lock:
            if (known := self._cached.get(name)) is not None:
                self._cached.move_to_end(name)
                return known
            asked = self._asked.get(name)
            if asked is None:
                if len(self._turns) >= QUERY_EMBEDS_WAITING_MAX and self._has_asked(share):
                    return None
                asked = self._asked[name] = _Asked(text, share, Future())
                # From now on a caller that is cancelled cannot cancel it for the others.
                asked.future.set_running_or_notify_cancel()
                self._turns.add(asked.share, asked)
            asked.waiters += 1
            self._hand_out(embedder)
        return asked

    def _has_asked(self, share: str) -> bool:
        return any(asked.share == share for asked in self._asked.values())

    def _leave(self, asked: _Asked) -> None:
        with self._lock:
            asked.waiters -= 1
            if not asked.waiters and not asked.has_begun:
                self._turns.discard(asked.share, asked)
                del self._asked[asked.name]

    def _hand_out(self, embedder: Embedder) -> None:
        """A thread for everybody whose turn it is: there are no more than there are places."""
        while (asked := self._take()) is not None:
            # A daemon: a server does not wait, at its end, for a model that hangs.
            thread = threading.Thread(
                target=self._run,
                args=(embedder, asked),
                name="zibaldone-query-vector",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError as problem:  # the system gives no more; the place is free again
                self._turns.give_back(asked.share, 0.0, time.monotonic())
                del self._asked[asked.name]
                asked.future.set_exception(problem)

    def _take(self) -> _Asked | None:
        taken = self._turns.take(time.monotonic())
        if taken is None:
            return None
        taken[1].has_begun = True
        return taken[1]

    def _run(self, embedder: Embedder, first: _Asked) -> None:
        asked: _Asked | None = first
        while asked is not None:
            started_s = time.monotonic()
            self._embed(embedder, asked)
            with self._lock:
                now_s = time.monotonic()
                self._turns.give_back(asked.share, now_s - started_s, now_s)
                asked = self._take()
                self._hand_out(embedder)  # others may have waited for this one to end, too

    def _embed(self, embedder: Embedder, asked: _Asked) -> None:
        try:
            vector: Vectors = embedder.embed([asked.text])[0]
        except BaseException as problem:  # whoever waits for it raises it again
            with self._lock:
                del self._asked[asked.name]
            asked.future.set_exception(problem)
            return
        with self._lock:
            del self._asked[asked.name]
            self._cached[asked.name] = vector
            if len(self._cached) > _CACHED_MAX:
                self._cached.popitem(last=False)
        asked.future.set_result(vector)
