"""Store the rows of a source as documents, and what is remembered of them, together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.errors import InvalidArgument, QuotaExceeded, RequestError
from zibaldone.keep.commit import Actor, Change, commit, next_instant_us, vector_status
from zibaldone.keep.delete import delete_live
from zibaldone.keep.metadata import merged
from zibaldone.keep.writing import Edit, Preparation, Seen, write_edit
from zibaldone.limits import (
    IMPORT_BATCH_BYTES_MAX,
    IMPORT_BATCH_DOCUMENTS_MAX,
    PREPARE_INLINE_CHARS_MAX,
    SYNC_DELETE_BATCH,
    Limits,
)
from zibaldone.model.document import Document, parent_of
from zibaldone.model.incoming import Imported
from zibaldone.model.pulled import PulledBlock, PulledRow, RowDocument
from zibaldone.store.port import Store, Writer
from zibaldone.text import normalize

Pair = tuple[RowDocument, PulledRow]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a sync: for whom, of which source, and its number."""

    tenant: Tenant
    source_id: int
    source_name: str
    run: int

    @property
    def actor(self) -> Actor:
        return Actor(f"sync:{self.source_name}")


class PulledDocuments:
    """Where a sync puts its rows. Every transaction makes sure that its run is the last one."""

    def __init__(self, store: Store, preparation: Preparation, limits: Limits) -> None:
        self._store = store
        self._preparation = preparation
        self._limits = limits

    async def begin(self, tenant: Tenant, source_id: int, source_name: str, run: int) -> Run:
        await self._store.write(tenant, lambda writer: writer.pulled.begin(source_id, run))
        return Run(tenant, source_id, source_name, run)

    async def write(self, run: Run, pairs: Sequence[Pair]) -> list[Imported]:
        """Store rows as documents; what became of each, in their order.

        A row that cannot be stored does not stop the others. QuotaExceeded: there is no room.
        """
        outcomes: dict[str, Imported] = {}
        short = [pair for pair in pairs if len(pair[0].body) <= PREPARE_INLINE_CHARS_MAX]
        for batch in _batches(short):
            work = partial(_write_batch, batch=batch, run=run, limits=self._limits)
            for imported in await self._store.write(run.tenant, work):
                outcomes[imported.document_id] = imported
        for row, pulled in pairs:
            if row.document_id not in outcomes:
                outcomes[row.document_id] = await self._write_long(run, row, pulled)
        return [outcomes[row.document_id] for row, _ in pairs]

    async def _write_long(self, run: Run, row: RowDocument, pulled: PulledRow) -> Imported:
        """A document whose chunks take long: they are made before its transaction."""

        def require_run(writer: Writer) -> None:
            writer.pulled.require_run(run.source_id, run.run)

        def remember(writer: Writer) -> None:
            require_run(writer)
            writer.pulled.put_rows(run.source_id, [pulled])

        edit = Edit(
            row.document_id,
            look=lambda reader: Seen(reader.documents.get(row.document_id)),
            decide=lambda seen, _: _change(seen.document, row, run, self._limits),
            text_chars=len(row.body),
            source_id=run.source_id,
            beside=remember,
        )
        try:
            _, change = await write_edit(
                self._store, self._preparation, run.tenant, edit, run.actor
            )
        except _Unchanged:
            await self._store.write(run.tenant, remember)
            return Imported(row.document_id, "unchanged")
        except QuotaExceeded:
            raise
        except RequestError as error:
            await self._store.write(run.tenant, require_run)  # or else it is not the row's fault
            return Imported(row.document_id, "failed", error.message)
        return Imported(row.document_id, "created" if change.is_new else "updated")

    async def seal(
        self,
        run: Run,
        rows: Sequence[PulledRow],
        moved: Sequence[str],
        block: PulledBlock,
    ) -> None:
        """Remember a block whose documents are stored; `moved` are its rows that did not change."""

        def remember(writer: Writer) -> None:
            writer.pulled.require_run(run.source_id, run.run)
            if rows:
                writer.pulled.put_rows(run.source_id, rows)
            if moved:
                writer.pulled.move_rows(run.source_id, moved, block.block)
            writer.pulled.put_block(run.source_id, block)

        await self._store.write(run.tenant, remember)

    async def delete(self, run: Run, document_ids: Sequence[str]) -> int:
        """Delete the documents of rows that are gone, softly; how many were there."""
        deleted = done = 0
        while done < len(document_ids):
            batch = document_ids[done : done + SYNC_DELETE_BATCH]
            done_now, deleted_now = await self._store.write(
                run.tenant, partial(_delete_batch, batch=batch, run=run)
            )
            done, deleted = done + done_now, deleted + deleted_now
        return deleted

    async def drop_blocks(self, run: Run, blocks: Sequence[int]) -> None:
        def drop(writer: Writer) -> None:
            writer.pulled.require_run(run.source_id, run.run)
            writer.pulled.drop_blocks(run.source_id, blocks)

        await self._store.write(run.tenant, drop)

    async def finish(self, run: Run) -> None:
        await self._store.write(
            run.tenant, lambda writer: writer.pulled.finish(run.source_id, run.run)
        )


class _Unchanged(Exception):
    """The document is as the row would make it."""


def _batches(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    batch: list[Pair] = []
    chars = 0
    for pair in pairs:
        batch.append(pair)
        chars += len(pair[0].body)
        if len(batch) >= IMPORT_BATCH_DOCUMENTS_MAX or chars >= IMPORT_BATCH_BYTES_MAX:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _write_batch(writer: Writer, *, batch: list[Pair], run: Run, limits: Limits) -> list[Imported]:
    writer.pulled.require_run(run.source_id, run.run)
    outcomes, stored = [], []
    for row, pulled in batch:
        imported = _write_row(writer, row, run, limits)
        if imported.outcome != "failed":
            stored.append(pulled)
        outcomes.append(imported)
    if stored:
        writer.pulled.put_rows(run.source_id, stored)
    return outcomes


def _write_row(writer: Writer, row: RowDocument, run: Run, limits: Limits) -> Imported:
    try:
        before = writer.documents.get(row.document_id)
        change = _change(before, row, run, limits)
    except _Unchanged:
        return Imported(row.document_id, "unchanged")
    except RequestError as error:
        return Imported(row.document_id, "failed", error.message)
    commit(writer, change.before, change.after, run.actor)
    return Imported(row.document_id, "created" if change.is_new else "updated")


def _change(before: Document | None, row: RowDocument, run: Run, limits: Limits) -> Change:
    """RequestError: what is wrong with the row. _Unchanged: nothing is to be stored."""
    if before is not None and before.source_id != run.source_id and before.is_live:
        raise InvalidArgument(
            f"Another document has the id {row.document_id!r} already; choose another template.",
            field="id",
        )
    document_id = normalize.document_id(row.document_id)
    if document_id != row.document_id:
        raise InvalidArgument(f"{row.document_id!r} is not an id in its usual form.", field="id")
    body = normalize.body(row.body, limits.document_body_bytes_max, "text")
    at_us = next_instant_us(before)
    after = Document(
        document_id=document_id,
        body=body,
        title=normalize.title(row.title),
        tags=normalize.tags(row.tags),
        parent_id=parent_of(document_id),
        mime=row.mime,
        metadata=merged({}, row.metadata, limits),
        revision=1 if before is None else before.revision + 1,
        created_at_us=_created_us(before, row, at_us),
        updated_at_us=at_us,
        updated_by=run.actor.key_id,
        operation="import",
        source_id=run.source_id,
        pk=row.pk,
        vector_status=vector_status(document_id, body),
    )
    if before is not None and _content_of(before) == _content_of(after):
        raise _Unchanged
    return Change(before, after)


def _created_us(before: Document | None, row: RowDocument, at_us: int) -> int:
    if row.created_at_us is not None:
        return row.created_at_us
    return before.created_at_us if before is not None and before.is_live else at_us


def _content_of(document: Document) -> tuple[object, ...]:
    return (
        document.body,
        document.title,
        document.tags,
        document.mime,
        document.created_at_us,
        document.source_id,
        # As JSON: for Python 1, 1.0 and True are equal.
        orjson.dumps([document.pk, document.metadata]),
        document.is_live,
    )


def _delete_batch(writer: Writer, *, batch: Sequence[str], run: Run) -> tuple[int, int]:
    """How many of them are done, and how many of these were there. It ends after much text."""
    writer.pulled.require_run(run.source_id, run.run)
    done = deleted = chars = 0
    for document_id in batch:
        before = writer.documents.get(document_id)
        if before is not None and before.is_live and before.source_id == run.source_id:
            delete_live(writer, before, run.actor)
            deleted += 1
            chars += len(before.body)
        done += 1
        if chars >= IMPORT_BATCH_BYTES_MAX:
            break
    writer.pulled.remove_rows(run.source_id, batch[:done])
    return done, deleted
