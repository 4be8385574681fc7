"""The copy that a backup is made of, table by table: what was written is read again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.drivers.engines import backend_of
from tests.store.kept import Kept
from zibaldone.errors import Internal
from zibaldone.exchange.backup import copy_tables
from zibaldone.limits import Limits
from zibaldone.store.open import open_store
from zibaldone.store.port import Store
from zibaldone.store.tables import BY_NAME, Row, Table

DOCUMENTS = BY_NAME["documents"]
TITLE = DOCUMENTS.names.index("title")


@pytest.fixture
def kept(data: Path) -> Iterator[Kept]:
    limits = Limits()
    store = backend_of(data).open(limits)
    yield Kept(store, limits)
    store.close()


class Careless:
    """A store on a disk that keeps other documents than it is given."""

    def __init__(self, store: Store, change: Callable[[Sequence[Row]], list[Row]]) -> None:
        self._store = store
        self._change = change

    async def upkeep(self, work: Callable[[Any], Any], **more: Any) -> Any:
        def with_change(real: Any) -> Any:
            def write(table: Table, rows: Sequence[Row], terms: Any) -> None:
                real.transfer.write(
                    table, self._change(rows) if table is DOCUMENTS else rows, terms
                )

            names = ("begin", "read", "finish")
            parts = {name: getattr(real.transfer, name) for name in names}
            return work(SimpleNamespace(transfer=SimpleNamespace(write=write, **parts)))

        return await self._store.upkeep(with_change, **more)


def other_title(rows: Sequence[Row]) -> list[Row]:
    return [(*row[:TITLE], "Other", *row[TITLE + 1 :]) for row in rows]


@pytest.mark.parametrize(
    ("change", "told"),
    [(list, None), (other_title, r"documents: 1 rows with the hash (\w+) were read, 1 with")],
    ids=["as it is", "another title"],
)
def test_a_copy_that_is_not_what_was_read_is_refused(
    kept: Kept, tmp_path: Path, change: Any, told: str | None
) -> None:
    kept.create("a", "text", title="As it is")
    copy = open_store(str(tmp_path / "copy"), kept.limits, for_transfer=True)
    careless = cast("Store", Careless(copy, change))
    try:
        copying = copy_tables(kept.store, careless, lambda _: None)
        if told is None:
            asyncio.run(copying)
        else:
            with pytest.raises(Internal, match=told):
                asyncio.run(copying)
    finally:
        copy.close()


def test_keys_that_were_given_once_are_not_given_again(kept: Kept, tmp_path: Path) -> None:
    kept.create("a", "text")
    kept.create("b", "more text")
    kept.delete("b")  # and with it the chunk with the highest key
    copy = open_store(str(tmp_path / "copy"), kept.limits, for_transfer=True)
    try:
        asyncio.run(copy_tables(kept.store, copy, lambda _: None))
        before, after = (
            Kept(store, kept.limits).upkeep(lambda work: work.transfer.sequences())
            for store in (kept.store, copy)
        )
    finally:
        copy.close()
    assert all(after[name] >= last for name, last in before.items())
    assert before["chunks"] == 2
