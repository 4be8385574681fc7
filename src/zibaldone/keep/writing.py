"""Write a change of a document so that what takes long happens before its transaction.

Cutting a body of megabytes, comparing its chunks with those stored and making their terms takes
seconds, in which no other write could run. So the change of a long document is decided on a
snapshot and computed in a thread that ends when the caller gives up; the transaction only stores
it, if the document and its chunks are still as they were. If not, the change is decided anew.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from zibaldone.access.presence import Pauses
from zibaldone.access.principal import Tenant
from zibaldone.access.share import current_share
from zibaldone.access.turns import TaskTurns, Turns
from zibaldone.errors import Conflict
from zibaldone.keep.commit import Actor, Change, Outdated, commit
from zibaldone.limits import (
    LONG_CHANGES,
    LONG_CHANGES_EXTRA,
    LONG_CHANGES_PER_KEY,
    PREPARE_INLINE_CHARS_MAX,
    PREPARE_THREADS,
    PREPARE_THREADS_EXTRA,
    PREPARE_TRIES_MAX,
)
from zibaldone.model.chunk import ChunkTerms, StoredChunk
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import KB_SOURCE_ID, Document, Revision
from zibaldone.store.port import Reader, Store, Writer, end_if_cancelled
from zibaldone.text.chunk import cut
from zibaldone.text.chunk_changes import Checkpoint, WantedChunks, never_ends

_SLICE_SECONDS = 0.001
_PAUSE_SECONDS = 0.002
"""How long a change is computed, and how long then none is, while others are about."""

_PAUSED_SECONDS_MAX = 15.0
"""Until so long after it was asked for, its pauses become shorter and shorter. Then there are none:
whoever is always about must not make it miss its deadline."""

T = TypeVar("T")
C = TypeVar("C", bound=Change)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a change is decided by."""

    document: Document | None
    revision: Revision | None = None
    """The earlier one that is to come back."""

    @property
    def chars(self) -> int:
        document_chars = 0 if self.document is None else len(self.document.body)
        return max(document_chars, 0 if self.revision is None else len(self.revision.body))


@dataclass(frozen=True, slots=True)
class Edit(Generic[C]):
    """A change that is still to be decided."""

    document_id: str
    look: Callable[[Reader | Writer], Seen]
    decide: Callable[[Seen, Checkpoint], C]
    """Pure; raises what is wrong with the change."""
    text_chars: int = 0
    """Of the text that it brings along."""
    source_id: int = KB_SOURCE_ID
    """Of a document that it makes."""
    work_chars: Callable[[Seen], int] = lambda _: 0
    """What deciding it may cost, as the length of a text to be cut and indexed."""
    beside: Callable[[Writer], None] = lambda _: None
    """What its transaction does first; what it raises is raised, and nothing is stored."""


class Stopped(Exception):
    """Nobody waits for the work any more."""


class Preparation:
    """The threads in which long changes are computed: few, since they compete for one CPU.

    A caller has one of them at a time, and there is one more for whoever has none.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            PREPARE_THREADS + PREPARE_THREADS_EXTRA, thread_name_prefix="zibaldone-prepare"
        )
        turns: Turns[asyncio.Future[None]] = Turns(PREPARE_THREADS, extra=PREPARE_THREADS_EXTRA)
        self._turns = TaskTurns(turns)
        self._pauses = Pauses()
        self._running = 0
        """Of several, each pauses less: their callers wait for one another already."""
        self.changes = TaskTurns(
            Turns(LONG_CHANGES, per_share=LONG_CHANGES_PER_KEY, extra=LONG_CHANGES_EXTRA)
        )
        """Held while a long change is in memory, from reading the document to its commit."""

    async def run(self, work: Callable[[Checkpoint], T]) -> T:
        """Run `work` in a thread. When the caller is cancelled, its next checkpoint raises."""
        is_over = threading.Event()
        share = current_share()
        paused_until_s = time.monotonic() + _PAUSED_SECONDS_MAX
        slice_ends_s = 0.0

        def checkpoint() -> None:
            nonlocal slice_ends_s
            if is_over.is_set():
                raise Stopped
            now_s = time.monotonic()
            if slice_ends_s <= now_s < paused_until_s:
                patience = (paused_until_s - now_s) / _PAUSED_SECONDS_MAX
                pause_s = _PAUSE_SECONDS * patience / max(1, self._running)
                wait_s = self._pauses.before(share, work_s=_SLICE_SECONDS, pause_s=pause_s)
                if wait_s:
                    time.sleep(wait_s)
                slice_ends_s = time.monotonic() + _SLICE_SECONDS

        async with self._turns:
            self._running += 1
            running = asyncio.get_running_loop().run_in_executor(self._threads, work, checkpoint)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                is_over.set()
                await asyncio.gather(running, return_exceptions=True)  # then the place is free
                raise
            finally:
                self._running -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


async def write_edit(
    store: Store, preparation: Preparation, tenant: Tenant, edit: Edit[C], actor: Actor
) -> tuple[Document, C]:
    """The stored document, and the change that was made.

    Conflict: others changed the document each time while this change was computed.
    """
    if edit.text_chars <= PREPARE_INLINE_CHARS_MAX:
        made = await store.write(tenant, lambda writer: _decide_and_commit(writer, edit, actor))
        if made is not None:
            return made
        end_if_cancelled()
    async with preparation.changes:
        return await _write_long(store, preparation, tenant, edit, actor)


async def _write_long(
    store: Store, preparation: Preparation, tenant: Tenant, edit: Edit[C], actor: Actor
) -> tuple[Document, C]:
    terms: dict[bytes, ChunkTerms] = {}
    for _ in range(PREPARE_TRIES_MAX):
        base = await store.read(tenant, lambda reader: _base(reader, edit))
        prepared = await preparation.run(partial(_prepare, edit, base, terms))
        try:
            document = await store.write(tenant, partial(_commit_prepared, edit, prepared, actor))
        except Outdated:
            end_if_cancelled()
        else:
            return document, prepared.change
    raise Conflict(
        f"{edit.document_id!r} was changed by others {PREPARE_TRIES_MAX} times while this change "
        "was computed; nothing was stored. Try again.",
        document_id=edit.document_id,
    )


@dataclass(frozen=True, slots=True)
class _Base:
    """What a change and its chunks are computed from."""

    seen: Seen
    stored: Sequence[StoredChunk]
    chunkings: Mapping[int, Chunking]
    """By source: of a new document, and of the one that is there."""


@dataclass(frozen=True, slots=True)
class _Prepared(Generic[C]):
    change: C
    chunking: Chunking
    chunks: WantedChunks


def _decide_and_commit(writer: Writer, edit: Edit[C], actor: Actor) -> tuple[Document, C] | None:
    """None: it is too long, computing it here would hold up other writes.

    No exception says so: with its traceback it would keep the document in memory.
    """
    seen = edit.look(writer)
    if max(seen.chars, edit.work_chars(seen)) > PREPARE_INLINE_CHARS_MAX:
        return None
    change = edit.decide(seen, never_ends)
    if len(change.after.body) > PREPARE_INLINE_CHARS_MAX:
        return None
    edit.beside(writer)
    return commit(writer, change.before, change.after, actor), change


def _base(reader: Reader, edit: Edit[C]) -> _Base:
    seen = edit.look(reader)
    source_ids = {edit.source_id}
    stored: Sequence[StoredChunk] = ()
    if seen.document is not None:
        source_ids.add(seen.document.source_id)
        stored = reader.chunks.stored(seen.document)
    return _Base(seen, stored, {number: reader.sources.chunking(number) for number in source_ids})


def _prepare(
    edit: Edit[C], base: _Base, terms: dict[bytes, ChunkTerms], checkpoint: Checkpoint
) -> _Prepared[C]:
    """`terms`: what an earlier try made; this one adds to it."""
    change = edit.decide(base.seen, checkpoint)
    after = change.after
    chunking = base.chunkings[after.source_id]
    pieces = cut(after.body, after.mime, chunking)
    chunks = WantedChunks.of(after.title, pieces, terms, checkpoint)
    chunks.make_terms(base.stored, checkpoint)
    return _Prepared(change, chunking, chunks)


def _commit_prepared(
    edit: Edit[C], prepared: _Prepared[C], actor: Actor, writer: Writer
) -> Document:
    edit.beside(writer)
    before, after = prepared.change.before, prepared.change.after
    if writer.sources.chunking(after.source_id) != prepared.chunking:
        raise Outdated
    try:
        return commit(writer, before, after, actor, prepared=prepared.chunks)
    except Conflict:
        raise Outdated from None
