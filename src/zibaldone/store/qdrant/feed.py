"""What keeps Qdrant as the store is: takes over the documents that the store has noted.

The store notes a document in the transaction that changes it (`MirrorUpkeep`). One process at a
time, under a lease, reads what is noted, writes it to Qdrant, and strikes it off once Qdrant has
confirmed it. After a crash in between it is done again, which changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from zibaldone.errors import VectorsUnavailable, ZibaldoneError
from zibaldone.model.instant import now_us
from zibaldone.model.job import new_lease_owner
from zibaldone.store.port import Store
from zibaldone.store.qdrant.index import QdrantIndex
from zibaldone.store.upkeep import MirrorChange, MirroredChunk, MirrorState, Upkeep

_log = logging.getLogger("zibaldone.qdrant")

_IDLE_SECONDS = 0.5
_TROUBLE_SECONDS_MAX = 10.0
_LEASE_US = 60_000_000
_DOCUMENTS_PER_STEP = 100
_CHUNKS_PER_STEP = 2_000
"""A step ends with the document that makes it this many; some ten megabytes."""


@dataclass(frozen=True, slots=True)
class FeedState:
    name: str
    applied_seq: int
    pending: int
    """Documents that Qdrant has yet to take over."""
    points: int | None
    """None: Qdrant cannot be asked."""
    problem: str | None


class VectorFeed:
    def __init__(self, store: Store, index: QdrantIndex) -> None:
        self._store = store
        self._index = index
        self._owner = new_lease_owner()
        self._model_id: int | None = None
        self._is_checked = False
        self._is_filling = False
        self._is_behind = True

    @property
    def index(self) -> QdrantIndex:
        return self._index

    @property
    def is_behind(self) -> bool:
        """Whether it was still being filled, or not even connected, at the last look."""
        return self._is_behind

    async def run(self) -> None:
        """Until cancelled. A failure is logged once, and the loop goes on."""
        trouble_s, told = 0.0, ""
        try:
            while True:
                busy = False
                try:
                    self._is_behind = busy = await self.step()
                    trouble_s, told = 0.0, ""
                except ZibaldoneError as error:
                    if error.message != told:
                        _log.warning("Qdrant waits: %s [%s]", error.message, error.code)
                    trouble_s = min(_TROUBLE_SECONDS_MAX, trouble_s * 2 + _IDLE_SECONDS)
                    told = error.message
                if trouble_s or not busy:
                    await asyncio.sleep(trouble_s or _IDLE_SECONDS)
        finally:
            with suppress(ZibaldoneError):
                await self._end()

    async def drain(self, report: Callable[[int], None] | None = None) -> None:
        """Take over all that is noted; `report` is given how many documents each step did."""
        await self._check()
        left = await self.pending()
        while left:
            if not await self.step():
                await asyncio.sleep(_IDLE_SECONDS)  # another process is about it
            before, left = left, await self.pending()
            if report is not None and left < before:
                report(before - left)
        await self.release()

    async def release(self) -> None:
        """Let another process fill it at once."""
        if self._is_filling:
            self._is_filling = False
            await self._lease(0)

    async def _end(self) -> None:
        if self._index.address.is_in_memory:  # nobody else has any use for its notes
            await self._store.upkeep(lambda work: work.mirrors.end(self._index.name))
        else:
            await self.release()

    async def pending(self) -> int:
        state = await self._state()
        return 0 if state is None else state.pending

    async def step(self) -> bool:
        """Take over some documents; False: there are none, or another process is about it."""
        await self._check()
        name = self._index.name
        if not await self._store.upkeep(lambda work: work.mirrors.changes(name, 1), write=False):
            await self.release()
            return False
        if not await self._lease():
            return False
        model_id = await self._begin()
        changes, chunks = await self._store.upkeep(
            lambda work: _next(work, name, model_id), write=False
        )
        if not changes:
            return False
        keys = [change.document_key for change in changes]
        await asyncio.to_thread(self._index.apply, keys, chunks)
        return await self._store.upkeep(
            lambda work: work.mirrors.applied(name, self._owner, changes)
        )

    async def rebuild(self) -> None:
        """Empty it, and note all documents. Searches use the store's vectors meanwhile."""
        await self._begin()
        if not await self._lease():
            raise VectorsUnavailable(
                "Another process is filling Qdrant; try again in a minute, or stop it first."
            )
        await asyncio.to_thread(self._index.connect)
        # First noted, then emptied: a search never takes an empty collection for a full one.
        await self._store.upkeep(lambda work: work.mirrors.refill(self._index.name))
        await asyncio.to_thread(self._index.create)
        self._is_checked = True

    async def state(self) -> FeedState:
        """What the store and Qdrant say."""
        state = await self._state()
        points = None
        try:
            await asyncio.to_thread(self._index.connect)
            if await asyncio.to_thread(self._index.exists):
                points = await asyncio.to_thread(self._index.count)
            else:
                points = 0
        except VectorsUnavailable:
            pass  # told by `problem`
        return FeedState(
            name=self._index.name,
            applied_seq=0 if state is None else state.applied_seq,
            pending=0 if state is None else state.pending,
            points=points,
            problem=self._index.problem,
        )

    async def _state(self) -> MirrorState | None:
        name = self._index.name
        return await self._store.upkeep(lambda work: work.mirrors.state(name), write=False)

    async def _check(self) -> None:
        """At the start, and after a failure: a collection that is gone is made and filled anew."""
        if self._is_checked and self._index.problem is None:
            return
        self._is_checked = False
        await asyncio.to_thread(self._index.connect)
        await self._begin()
        if not await asyncio.to_thread(self._index.exists):
            if not await self._lease():
                return  # whoever has the lease makes it
            await self.rebuild()
        self._is_checked = True

    async def _begin(self) -> int:
        """See to it that the store notes changes; returns the model's number there."""
        if self._model_id is None:
            name, at_us = self._index.name, now_us()
            identity, dimensions = self._index.identity, self._index.dimensions
            if await self._state() is None:
                await self._store.upkeep(lambda work: work.mirrors.begin(name, at_us))
            self._model_id = await self._store.upkeep(
                lambda work: work.models.id(identity, dimensions, at_us)
            )
        return self._model_id

    async def _lease(self, length_us: int = _LEASE_US) -> bool:
        name, at_us = self._index.name, now_us()
        is_ours = await self._store.upkeep(
            lambda work: work.mirrors.lease(
                name, self._owner, now_us=at_us, until_us=at_us + length_us
            )
        )
        self._is_filling = is_ours and length_us > 0
        return is_ours


def _next(work: Upkeep, name: str, model_id: int) -> tuple[list[MirrorChange], list[MirroredChunk]]:
    """Documents that are noted, and what there is of them in the same snapshot."""
    changes: list[MirrorChange] = []
    total = 0
    for change in work.mirrors.changes(name, _DOCUMENTS_PER_STEP):
        changes.append(change)
        total += change.chunks
        if total >= _CHUNKS_PER_STEP:
            break
    return changes, work.mirrors.chunks(model_id, [change.document_key for change in changes])


async def forget_mirrors(store: Store, kept: VectorFeed | None) -> list[str]:
    """End all mirrors but that of a feed; their names."""

    def forget(work: Upkeep) -> list[str]:
        names = [name for name in work.mirrors.all() if kept is None or name != kept.index.name]
        return [name for name in names if work.mirrors.end(name)]

    return await store.upkeep(forget)
