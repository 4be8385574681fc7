"""Moves everything from one store to another, which may be of another engine.

Tables are copied in batches. The destination notes how far it is in the transaction of each batch,
so that a migration that was killed goes on where it was. At the end both stores are read again and
compared, table by table: only then is the destination complete.

The source is only read, batch by batch and not on one snapshot. So nobody may write to it
meanwhile: while a process serves it with a model nothing is begun, and a change that was made all
the same is found in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zibaldone.errors import Conflict, ZibaldoneError
from zibaldone.limits import TRANSFER_BYTES, TRANSFER_ROWS
from zibaldone.model.chunk import ChunkTerms
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.store.tables import CHUNKS, TABLES, Digest, Key, Row, Table
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.terms import chunk_terms

_ORIGIN = "origin"
_SETTLE_PAUSE_SECONDS = 0.2
_HELD = {"documents": "documents", "audit": "lines of the audit log", "api_keys": "API keys"}
"""A store with rows in one of these tables is somebody's. Models, schedules and jobs are there as
soon as a server has run, and are replaced."""

_COMPARED = tuple(sorted(TABLES, key=lambda table: table.name == "api_keys"))
"""Keys last: that one was revoked meanwhile can be seen nowhere else."""

Advance = Callable[[int], None]
"""Told of every so many rows that are done."""


@dataclass(frozen=True, slots=True)
class TableReport:
    name: str
    rows: int
    digest: str
    """Of the rows, the same in both stores."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a table is."""

    after: Key | None = None
    rows: int = 0
    done: bool = False

    @classmethod
    def of(cls, note: dict[str, Any] | None) -> Progress:
        if note is None:
            return cls()
        after = note["after"]
        return cls(None if after is None else tuple(after), note["rows"], note["done"])

    def as_note(self) -> dict[str, Any]:
        after = None if self.after is None else list(self.after)
        return {"after": after, "rows": self.rows, "done": self.done}


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[Row]
    titles: dict[int, str]
    """Of the documents, if the rows are chunks."""


class Migration:
    def __init__(self, source: Store, destination: Store) -> None:
        self._source = source
        self._destination = destination
        self.is_resumed = False

    async def begin(self, *, restart: bool = False, replace: bool = False) -> int:
        """Make sure that it can be done; how many rows are still to be copied.

        `restart`: forget what an earlier migration brought into the destination. `replace`: and
        whatever else it holds.
        """
        if self._source.description == self._destination.description:
            raise Conflict("The source and the destination are the same store.")
        await self._refuse_if_served(self._source, "read from")
        await self._refuse_if_served(self._destination, "written to")
        sequences = await self._source.upkeep(lambda work: work.transfer.sequences(), write=False)
        origin = {"store": self._source.description, "sequences": sequences}
        notes = await self._destination.upkeep(lambda work: work.transfer.notes(), write=False)
        if notes is None:
            if not replace:
                await self._require_empty()
        elif not restart:
            self._require_same(notes[_ORIGIN], origin)
            self.is_resumed = True
        if not self.is_resumed:

            def begin(work: Upkeep) -> None:
                work.transfer.begin()
                work.transfer.note(_ORIGIN, origin)

            await self._destination.upkeep(begin)
            notes = {}
        done = sum(Progress.of((notes or {}).get(table.name)).rows for table in TABLES)
        return max(0, await self.total() - done)

    async def total(self) -> int:
        """How many rows the source has."""
        return await self._source.upkeep(
            lambda work: sum(work.transfer.count(table) for table in TABLES), write=False
        )

    async def copy(self, advance: Advance) -> None:
        notes = await self._destination.upkeep(lambda work: work.transfer.notes(), write=False)
        for table in TABLES:
            progress = Progress.of((notes or {}).get(table.name))
            while not progress.done:
                page = await self._page(table, progress.after)
                try:
                    progress = await self._store(table, page, progress)
                except Conflict:
                    raise
                except ZibaldoneError:
                    # A row that refers to one that is not there was written after that was copied.
                    await self._require_unchanged()
                    raise
                advance(len(page.rows))

    async def verify(self, advance: Advance) -> list[TableReport]:
        """Compare both stores; make the destination complete if they agree."""
        await self._settle()
        reports = []
        for table in _COMPARED:
            ours, theirs = await asyncio.gather(
                digest_of(self._source, table, advance),
                digest_of(self._destination, table, advance),
            )
            if (ours.rows, ours.hex) != (theirs.rows, theirs.hex):
                raise _changed(
                    f"{table.name}: {ours.rows} rows with the hash {ours.hex} there, "
                    f"{theirs.rows} with {theirs.hex} here. "
                )
            reports.append(TableReport(table.name, ours.rows, ours.hex))
        # What was written after its table was compared has taken a number of the audit log.
        sequences = await self._require_unchanged()
        await self._destination.upkeep(lambda work: work.transfer.finish(sequences))
        return reports

    async def _refuse_if_served(self, store: Store, done: str) -> None:
        in_use = await store.upkeep(lambda work: work.models.in_use(now_us()), write=False)
        if in_use is not None:
            raise Conflict(
                f"{_capital(store.description)} is being served, so it cannot be {done}. Stop "
                "every process that uses it; one that was killed counts as running for a minute."
            )

    async def is_occupied(self) -> bool:
        """Whether the destination holds anything but what an unfinished migration brought."""
        notes = await self._destination.upkeep(lambda work: work.transfer.notes(), write=False)
        return notes is None and bool(await self._held())

    async def _held(self) -> list[str]:
        counts = await self._destination.upkeep(
            lambda work: {table.name: work.transfer.count(table) for table in TABLES}, write=False
        )
        held = [f"{counts[name]} {what}" for name, what in _HELD.items() if counts[name]]
        if counts["sources"] > 1:
            held.append(f"{counts['sources']} sources")
        return held

    async def _require_empty(self) -> None:
        held = await self._held()
        if held:
            raise Conflict(
                f"{_capital(self._destination.description)} is not empty: it holds "
                f"{', '.join(held)}. Choose an empty one; nothing was changed."
            )

    def _require_same(self, noted: dict[str, Any], origin: dict[str, Any]) -> None:
        if noted["store"] != origin["store"]:
            raise Conflict(
                f"{_capital(self._destination.description)} is being filled from "
                f"{noted['store']}. Finish that, or begin anew with --restart."
            )
        if noted["sequences"] != origin["sequences"]:
            raise _changed()

    async def _require_unchanged(self) -> dict[str, int]:
        """The numbers that the source gave last, which are those from before the copy."""
        sequences = await self._source.upkeep(lambda work: work.transfer.sequences(), write=False)
        notes = await self._destination.upkeep(lambda work: work.transfer.notes(), write=False)
        if notes is not None and notes[_ORIGIN]["sequences"] != sequences:
            raise _changed()
        return sequences

    async def _page(self, table: Table, after: Key | None) -> Page:
        return await self._source.upkeep(lambda work: page_of(work, table, after), write=False)

    async def _store(self, table: Table, page: Page, progress: Progress) -> Progress:
        rows = page.rows
        done = Progress(
            after=table.key_of(rows[-1]) if rows else progress.after,
            rows=progress.rows + len(rows),
            done=not rows,
        )
        terms = await asyncio.to_thread(terms_of, page) if table is CHUNKS else None

        def store(work: Upkeep) -> None:
            notes = work.transfer.notes() or {}
            if Progress.of(notes.get(table.name)) != progress:
                raise Conflict(f"Another process is filling {self._destination.description}, too.")
            if rows:
                work.transfer.write(table, rows, terms)
            work.transfer.note(table.name, done.as_note())

        await self._destination.upkeep(store)
        return done

    async def _settle(self) -> None:
        while True:
            has_more = await self._destination.upkeep(lambda work: work.transfer.settle())
            if not has_more:
                return
            await asyncio.sleep(_SETTLE_PAUSE_SECONDS)


async def digest_of(store: Store, table: Table, advance: Advance) -> Digest:
    digest = Digest(table)
    after: Key | None = None
    while True:
        start = after
        rows = await store.upkeep(lambda work: _read(work, table, start), write=False)  # noqa: B023
        if not rows:
            return digest
        await asyncio.to_thread(digest.add, rows)
        after = table.key_of(rows[-1])
        advance(len(rows))


def page_of(work: Upkeep, table: Table, after: Key | None) -> Page:
    """The next rows of a table; none: that was the last."""
    rows = _read(work, table, after)
    if table is not CHUNKS:
        return Page(rows, {})
    place = table.names.index("document_key")
    return Page(rows, work.transfer.titles({row[place] for row in rows}))


def _read(work: Upkeep, table: Table, after: Key | None) -> list[Row]:
    return work.transfer.read(table, after, rows_max=TRANSFER_ROWS, bytes_max=TRANSFER_BYTES)


def terms_of(page: Page) -> dict[int, ChunkTerms]:
    """What the keyword index holds of each chunk, by its key."""
    places = [CHUNKS.names.index(name) for name in ("chunk_key", "document_key", "heading", "body")]
    terms = {}
    for row in page.rows:
        key, document_key, heading, body = (row[place] for place in places)
        terms[key] = chunk_terms(page.titles.get(document_key, ""), heading, body)
    return terms


def _changed(detail: str = "") -> Conflict:
    return Conflict(
        f"{detail}The source was changed since the migration began. Stop whatever writes to it and "
        "run the command again with --restart."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
