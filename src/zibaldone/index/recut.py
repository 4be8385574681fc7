"""Cutting the documents of a source again after its chunking was changed, while servers run.

Nobody edited these documents: revision, times and audit stay as they are. A chunk that comes out
as it was keeps its key and its vector; only documents with new chunks are queued for the worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from zibaldone.errors import Conflict
from zibaldone.limits import (
    INDEX_SWEEP_DOCUMENTS,
    RECUT_BATCH_CHARS,
    RECUT_BATCH_DOCUMENTS,
    RECUT_PAUSE_SECONDS,
)
from zibaldone.model.chunking import Chunking
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.chunk import cut
from zibaldone.text.chunk_changes import chunk_changes

Report = Callable[[int], Awaitable[None]]
"""Receives how many documents were cut since the last time."""


@dataclass(frozen=True, slots=True)
class Recut:
    documents: int = 0
    """That were cut again."""
    changed: int = 0
    """Of these, with other chunks than before."""
    chunks: int = 0
    """That are new."""

    def __add__(self, other: Recut) -> Recut:
        return Recut(
            self.documents + other.documents,
            self.changed + other.changed,
            self.chunks + other.chunks,
        )


async def change_chunking(
    store: Store, source_id: int, chunking: Chunking, report: Report
) -> Recut:
    """Cut the source's documents so from now on, and those that are there already.

    A run that was ended is completed by another: chunks that are as they should be cost a look
    only. `report` is told of documents as they are done. Raises Conflict when the chunking is
    changed again meanwhile.
    """
    version = await store.upkeep(lambda work: work.sources.set_chunking(source_id, chunking))
    run = _Run(store, source_id, chunking, version, report)
    done = Recut()
    while (cut_now := await run.pass_over()) is not None:
        done += cut_now
    return done


@dataclass(frozen=True, slots=True)
class _Run:
    store: Store
    source_id: int
    chunking: Chunking
    version: int
    report: Report

    async def pass_over(self) -> Recut | None:
        """Cut what is stale, by key; None: nothing is.

        A document that is committed behind this pass, with a lower key, is left to the next.
        """
        done: Recut | None = None
        after = 0
        while page := await self.store.upkeep(partial(self._page, after), write=False):
            for keys in _batches(page):
                done = (done or Recut()) + await self.store.upkeep(partial(self._cut_batch, keys))
                await self.report(len(keys))
                await asyncio.sleep(RECUT_PAUSE_SECONDS)
            after, _ = page[-1]
        return done

    def _page(self, after: int, work: Upkeep) -> list[tuple[int, int]]:
        self._require_unchanged(work)
        return work.sources.stale(self.source_id, after=after, limit=INDEX_SWEEP_DOCUMENTS)

    def _cut_batch(self, keys: Sequence[int], work: Upkeep) -> Recut:
        """In one transaction, from the documents as they are now: others may have written."""
        self._require_unchanged(work)
        done = Recut()
        changed: list[int] = []
        for document in work.sources.texts(self.source_id, keys):
            wanted = cut(document.body, document.mime, self.chunking)
            stored = work.chunks.stored(document.document_key)
            changes = chunk_changes(stored, document.title, wanted)
            work.chunks.apply(document.document_key, changes)
            if changes.added:
                changed.append(document.document_key)
            done += Recut(1, int(bool(changes)), len(changes.added))
        work.sources.set_cut(self.source_id, keys)
        work.vectors.enqueue_cut(changed, now_us())
        return done

    def _require_unchanged(self, work: Upkeep) -> None:
        """Two runs must not mix: the one that came later goes on, with its own chunking."""
        if work.sources.chunking_version(self.source_id) != self.version:
            raise Conflict(
                "The chunking was changed again meanwhile; that change is being applied."
            )


def _batches(page: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    keys: list[int] = []
    batch_chars = 0
    for key, chars in page:
        is_full = len(keys) == RECUT_BATCH_DOCUMENTS or batch_chars + chars > RECUT_BATCH_CHARS
        if keys and is_full:
            yield keys
            keys, batch_chars = [], 0
        keys.append(key)
        batch_chars += chars
    if keys:
        yield keys
