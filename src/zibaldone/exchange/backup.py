"""Copies one state of a store, table by table, into an empty one that nobody else uses.

All is read on one snapshot, so that the copy is of one moment whatever is written meanwhile. The
rows are hashed as they are read; at the end the copy is read again and compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from zibaldone.errors import Internal
from zibaldone.exchange.migrate import Advance, Page, digest_of, page_of, terms_of
from zibaldone.limits import BACKUP_SECONDS_MAX
from zibaldone.store.port import Store
from zibaldone.store.tables import CHUNKS, TABLES, Digest, Key, Table
from zibaldone.store.upkeep import Upkeep

T = TypeVar("T")


async def count_rows(store: Store) -> int:
    return await store.upkeep(
        lambda work: sum(work.transfer.count(table) for table in TABLES), write=False
    )


async def copy_tables(source: Store, destination: Store, advance: Advance) -> None:
    loop = asyncio.get_running_loop()

    def fill(work: Callable[[Upkeep], T]) -> T:
        """From the thread of the snapshot, which waits for it."""
        return asyncio.run_coroutine_threadsafe(destination.upkeep(work), loop).result()

    def copy(work: Upkeep) -> tuple[list[Digest], dict[str, int]]:
        fill(lambda copied: copied.transfer.begin())
        digests = [_copy_table(work, fill, table, advance) for table in TABLES]
        return digests, work.transfer.sequences()

    digests, sequences = await source.upkeep(copy, write=False, seconds_max=BACKUP_SECONDS_MAX)
    for table, digest in zip(TABLES, digests, strict=True):
        copied = await digest_of(destination, table, advance)
        if (copied.rows, copied.hex) != (digest.rows, digest.hex):
            raise Internal(
                f"{table.name}: {digest.rows} rows with the hash {digest.hex} were read, "
                f"{copied.rows} with {copied.hex} were written."
            )
    await destination.upkeep(lambda copied: copied.transfer.finish(sequences))


def _copy_table(
    work: Upkeep, fill: Callable[[Callable[[Upkeep], None]], None], table: Table, advance: Advance
) -> Digest:
    digest = Digest(table)
    after: Key | None = None
    while (page := page_of(work, table, after)).rows:
        fill(_writing(table, page))
        digest.add(page.rows)
        after = table.key_of(page.rows[-1])
        advance(len(page.rows))
    return digest


def _writing(table: Table, page: Page) -> Callable[[Upkeep], None]:
    terms = terms_of(page) if table is CHUNKS else None
    return lambda copied: copied.transfer.write(table, page.rows, terms)
