"""Cutting the documents of a source anew, after its chunking was changed, while servers serve.

Nobody edited these documents: revision, times and audit stay as they are. A passage that comes out
as it was keeps its key and its vector; only those that are new are queued for the worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from zibaldone.errors import Conflict
from zibaldone.limits import (
    INDEX_SWEEP_DOCUMENTS,
    RECUT_BATCH_CHARS,
    RECUT_BATCH_DOCUMENTS,
    RECUT_PAUSE_SECONDS,
    VECTOR_CHANGES_KEPT,
)
from zibaldone.model.chunking import Chunking
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Maintenance
from zibaldone.text.chunk import cut
from zibaldone.text.chunk_changes import chunk_changes


@dataclass(frozen=True, slots=True)
class Recut:
    documents: int = 0
    """Cut anew."""
    changed: int = 0
    """Of these, with passages other than before."""
    passages: int = 0
    """That are new."""

    def __add__(self, other: Recut) -> Recut:
        return Recut(
            self.documents + other.documents,
            self.changed + other.changed,
            self.passages + other.passages,
        )


async def change_chunking(
    store: Store, source_id: int, chunking: Chunking, report: Callable[[int], None]
) -> Recut:
    """Cut the source's documents so from now on, and those that are there already.

    A run that was ended is completed by another: what is cut as it should be costs a look only.
    `report` is told of documents as they are done.
    """
    await store.maintain(lambda work: work.sources.set_chunking(source_id, chunking))
    # Later documents are written as the definition says, so that this comes to an end.
    through = await store.maintain(lambda work: work.sources.last_document(), write=False)
    done, after = Recut(), 0
    while page := await store.maintain(partial(_page, source_id, after, through), write=False):
        for keys in _batches(page):
            done += await store.maintain(partial(_cut_batch, source_id, chunking, keys))
            report(len(keys))
            await asyncio.sleep(RECUT_PAUSE_SECONDS)
        after, _ = page[-1]
    await store.maintain(partial(_finish, source_id, chunking))
    return done


def _page(source_id: int, after: int, through: int, work: Maintenance) -> list[tuple[int, int]]:
    return work.sources.documents(
        source_id, after=after, through=through, limit=INDEX_SWEEP_DOCUMENTS
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


def _cut_batch(source_id: int, chunking: Chunking, keys: Sequence[int], work: Maintenance) -> Recut:
    """In one transaction, from what the documents say now: a server may have written meanwhile."""
    _require_unchanged(source_id, chunking, work)
    done = Recut()
    for key in keys:
        document = work.sources.text(source_id, key)
        if document is None:
            continue
        wanted = cut(document.body, document.mime, chunking)
        changes = chunk_changes(work.chunks.stored(key), document.title, wanted)
        work.chunks.apply(key, changes)
        if changes.added:
            work.enqueue_cut(key, now_us())
        done += Recut(1, int(bool(changes)), len(changes.added))
    work.trim_changes(VECTOR_CHANGES_KEPT)
    return done


def _finish(source_id: int, chunking: Chunking, work: Maintenance) -> None:
    _require_unchanged(source_id, chunking, work)
    work.sources.set_cut(source_id)


def _require_unchanged(source_id: int, chunking: Chunking, work: Maintenance) -> None:
    """Two runs must not mix: the one that came later goes on, with its own definition."""
    if work.sources.chunking(source_id).as_dict() != chunking.as_dict():
        raise Conflict("The chunking was changed again meanwhile; that change is being applied.")
