"""Bring the documents of a source into step with its rows.

Rows are read in the order of their keys, on one snapshot, and compared with what is remembered of
them, block by block (`pull/blocks.py`). What differs is stored with what is remembered of it, in
one transaction; so a run can end at any moment, and the next one goes on from what is stored. Only
when all rows were seen are the documents of the others deleted. docs/explain/pull.md has the
reasons.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict
from zibaldone.limits import SOURCE_DELETES_UNASKED_MAX, SYNC_DELETE_BATCH, SYNC_PROBLEMS_MAX
from zibaldone.model.instant import now_us
from zibaldone.model.pulled import PulledBlock, PulledRow, PulledRun
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.blocks import Segment
from zibaldone.pull.destination import Destination, Run
from zibaldone.pull.faults import Undecodable
from zibaldone.pull.rows import Examined, Failure, Loaded, SourceRows
from zibaldone.store.port import Store

T = TypeVar("T")

OnProgress = Callable[[int, int | None], Awaitable[None]]
"""Told how many rows are done, and about how many there are."""

_LOST_BATCH = 10 * SYNC_DELETE_BATCH


@dataclass(slots=True)
class SyncResult:
    created: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    failed: int = 0
    rows: int = 0
    seconds: float = 0.0
    problems: list[Failure] = field(default_factory=list)
    """The first rows that failed."""
    notes: list[str] = field(default_factory=list)

    def fail(self, failures: list[Failure]) -> None:
        self.failed += len(failures)
        self.problems += failures[: SYNC_PROBLEMS_MAX - len(self.problems)]

    def as_dict(self) -> dict[str, Any]:
        return {
            "created": self.created,
            "updated": self.updated,
            "deleted": self.deleted,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "problems": [
                {"key": problem.key, "reason": problem.reason} for problem in self.problems
            ],
            "notes": self.notes,
        }


async def _ignore(done: int, total: int | None) -> None:
    del done, total


async def sync(
    store: Store,
    destination: Destination[Run],
    source_id: int,
    definition: SourceDefinition,
    *,
    environment: Mapping[str, str] | None = None,
    is_full: bool = False,
    allow_deletes: bool = False,
    on_progress: OnProgress = _ignore,
    check: Callable[[], None] = lambda: None,
) -> SyncResult:
    """One run. `check` is called between blocks and raises to stop it.

    `is_full`: compare the content of every row, also where the watermark says that it is the same.
    Conflict: more documents would be deleted than the definition allows, and `allow_deletes` is
    not given; or another run of the source has begun. SourceUnavailable: try again later.
    """
    given = os.environ if environment is None else environment
    began_us, began_s = now_us(), time.monotonic()
    result = SyncResult()
    for is_tolerant in (False, True):
        result = SyncResult()
        rows = SourceRows(definition, given, is_full=is_full, is_tolerant=is_tolerant)
        work = _Sync(store, destination, source_id, definition, rows, result, on_progress, check)
        try:
            await work.run(allow_deletes=allow_deletes)
        except Undecodable:  # what was stored so far is confirmed by the second try
            continue
        break
    await store.upkeep(lambda upkeep: upkeep.sources.set_synced(source_id, began_us))
    result.seconds = time.monotonic() - began_s
    return result


class _Sync(Generic[Run]):
    def __init__(
        self,
        store: Store,
        destination: Destination[Run],
        source_id: int,
        definition: SourceDefinition,
        rows: SourceRows,
        result: SyncResult,
        on_progress: OnProgress,
        check: Callable[[], None],
    ) -> None:
        self._store = store
        self._destination = destination
        self._source_id = source_id
        self._definition = definition
        self._rows = rows
        self._result = result
        self._on_progress = on_progress
        self._check = check
        self._tenant = Tenant(definition.namespace)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="zibaldone-pull")
        self._run: Run | None = None
        self._last: PulledRun | None = None
        self._first_block = 0
        self._next_block = 0

    async def run(self, *, allow_deletes: bool) -> None:
        try:
            await self._pull(allow_deletes=allow_deletes)
        finally:
            await self._in_thread(self._rows.close)
            self._threads.shutdown(wait=False)

    async def _pull(self, *, allow_deletes: bool) -> None:
        source_id = self._source_id
        self._last, blocks = await self._store.read(
            self._tenant,
            lambda reader: (reader.pulled.last_run(source_id), reader.pulled.blocks(source_id)),
            seconds_max=60.0,
        )
        newest = max((block.block for block in blocks), default=0)
        last = self._last.run if self._last is not None else 0
        # Above the numbers of all blocks, also of those that a run that was cut short began.
        self._first_block = self._next_block = max(now_us(), newest + 1, last + 2**24)
        total = await self._in_thread(partial(self._rows.open, blocks))
        left_out = self._rows.plan.mapper.left_out
        if left_out:
            self._result.notes.append(f"Binary columns are left out: {', '.join(left_out)}.")
        is_end = False
        while not is_end:
            self._check()
            step = await self._in_thread(self._rows.step)
            is_end = step.is_end
            self._result.unchanged += step.confirmed_rows
            self._result.rows += step.confirmed_rows
            if step.segment is not None:
                await self._segment(step.segment)
                self._result.rows += len(step.segment.rows)
            await self._on_progress(self._result.rows, total)
        await self._sweep(blocks, allow_deletes=allow_deletes)
        if self._run is not None:
            await self._destination.finish(self._run)

    async def _begun(self) -> Run:
        """The run, which begins with the first write: one that changes nothing leaves no trace."""
        if self._run is None:
            self._run = await self._destination.begin(
                self._tenant, self._source_id, self._definition.name, self._first_block
            )
        return self._run

    # Rows

    async def _segment(self, segment: Segment) -> None:
        ids = await self._in_thread(partial(self._rows.ids, segment))
        known = await self._store.read(
            self._tenant, lambda reader: reader.pulled.rows(self._source_id, ids), seconds_max=60.0
        )
        block = self._next_block if segment.known is None else segment.known.block
        examined = await self._in_thread(
            partial(
                self._rows.examine,
                segment,
                known,
                block=block,
                is_of_this_run=self._is_of_this_run,
            )
        )
        self._result.fail(examined.failures)
        self._result.unchanged += examined.unchanged
        if examined.left_blocks:
            # Before any of their rows is written: a block that stays stored although its rows are
            # no longer what it says could be confirmed by a later run.
            self._rows.forget(examined.left_blocks)
            await self._destination.drop_blocks(await self._begun(), sorted(examined.left_blocks))
        same = await self._load_all(examined, block)
        is_settled = examined.is_settled
        moved = examined.moved
        stored = segment.known
        if (
            stored is not None
            and not (same or moved)
            and stored.is_settled == is_settled
            # Of whole rows more is hashed than of light ones.
            and (len(segment.digest) < len(stored.digest) or segment.digest == stored.digest)
        ):
            self._rows.confirm(stored)
            return
        sealed = PulledBlock(
            block, len(segment.rows), segment.digest, segment.first_key, is_settled
        )
        await self._destination.seal(await self._begun(), same, moved, sealed)
        if stored is not None:
            self._rows.confirm(stored)
        else:
            self._next_block += 1

    def _is_of_this_run(self, block: int) -> bool:
        return block >= self._first_block or block in self._rows.confirmed

    async def _load_all(self, examined: Examined, block: int) -> list[PulledRow]:
        """Read and store what changed; the rows of which only the mark did."""
        same: list[PulledRow] = []
        wanted = examined.wanted
        while wanted:
            self._check()
            loaded, count = await self._in_thread(partial(self._rows.load, wanted, block))
            del wanted[:count]
            self._result.unchanged += loaded.unchanged
            self._result.fail(loaded.failures)
            examined.is_settled = examined.is_settled and loaded.is_settled
            examined.moved += loaded.moved
            same += loaded.same
            if loaded.pairs:
                same += await self._store_documents(loaded, examined, block)
        return same

    async def _store_documents(
        self, loaded: Loaded, examined: Examined, block: int
    ) -> list[PulledRow]:
        """Rows that failed, whose documents stay as they were."""
        run = await self._begun()
        kept: list[PulledRow] = []
        for outcome in await self._destination.write(run, loaded.pairs):
            match outcome.outcome:
                case "created":
                    self._result.created += 1
                case "updated":
                    self._result.updated += 1
                case "failed":
                    key = loaded.keys[outcome.document_id]
                    self._result.fail([Failure(key, outcome.reason)])
                    examined.is_settled = False
                    before = loaded.known.get(outcome.document_id)
                    if before is not None:
                        kept.append(PulledRow(before.document_id, block, 0, before.content))
                case _:
                    self._result.unchanged += 1
        return kept

    # Deletions

    async def _sweep(self, blocks: list[PulledBlock], *, allow_deletes: bool) -> None:
        """Delete the documents of rows that were not seen."""
        gone = [block.block for block in blocks if block.block not in self._rows.confirmed]
        was_cut_short = self._last is not None and not self._last.is_complete
        if not gone and not was_cut_short:
            return
        source_id = self._source_id
        lost, held = await self._store.read(
            self._tenant,
            lambda reader: (
                reader.pulled.count_lost(source_id, gone),
                reader.pulled.count(source_id),
            ),
            seconds_max=60.0,
        )
        held -= self._result.created
        allowed = max(SOURCE_DELETES_UNASKED_MAX, self._definition.delete_share_max * held)
        if lost > allowed and not allow_deletes:
            raise Conflict(
                f"The source {self._definition.name!r} lacks {lost} of {held} rows that it had: "
                f"more than {self._definition.delete_share_max:.0%}. Nothing was deleted. If that "
                f"is right: zibaldone sources sync {self._definition.name} --allow-deletes",
                source=self._definition.name,
                missing=lost,
                held=held,
                reason="deletes",
            )
        run = await self._begun()
        if gone:
            await self._destination.drop_blocks(run, gone)
        while lost:
            self._check()
            ids = await self._store.read(
                self._tenant,
                lambda reader: reader.pulled.lost(source_id, _LOST_BATCH),
                seconds_max=60.0,
            )
            if not ids:
                break
            self._result.deleted += await self._destination.delete(run, ids)
            await self._on_progress(self._result.rows, self._result.rows)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._rows.cancel)
            await asyncio.gather(running, return_exceptions=True)
            raise
