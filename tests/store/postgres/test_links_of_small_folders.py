"""A caller bound to a folder of a few documents, where many others link to the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.model.link import Link, LinkedDocument
from zibaldone.store.port import Reader

OTHERS = 60


READS: dict[str, Callable[[Reader], list[LinkedDocument]]] = {
    "backlinks": lambda reader: reader.links.pointing(
        [Link("path", "m/0/same.md"), Link("name", "same")], limit=OTHERS
    ),
    "names": lambda reader: reader.links.with_names(["same"], each=OTHERS)["same"],
}


@pytest.mark.parametrize("read", READS)
def test_what_others_have_linked_is_not_read(kept: Kept, read: str) -> None:
    text = "About [mine](/m/0/same.md) and [[same]]."
    own = ["m/0/same.md", "m/1/same.md"]
    for path in (*own, *(f"z/{number}/same.md" for number in range(OTHERS))):
        kept.create(path, text)
    kept.create("m/none.md", "About nothing.")

    def found_and_read(reader: Reader) -> tuple[list[str], int]:
        transaction: Any = reader.links._transaction  # type: ignore[attr-defined]
        transaction.expect_several()
        transaction.execute("SET LOCAL enable_seqscan = off")  # the tables are small
        before = transaction.value(_READ)
        found = [linked.document_id for linked in READS[read](reader)]
        return found, int(transaction.value(_READ) - before)

    everybody, _ = kept.read(found_and_read)
    assert everybody[:2] == own
    assert len(everybody) == OTHERS
    found, rows_read = kept.read(found_and_read, Tenant(prefix="m/"))
    assert found == own
    assert rows_read < OTHERS / 2


_READ = """
SELECT coalesce(sum(idx_tup_fetch), 0) + coalesce(sum(seq_tup_read), 0)
FROM pg_stat_xact_user_tables WHERE schemaname = 'zibaldone' AND relname LIKE 'document%'
"""
"""Rows of documents and their links that the connection has read and not told of yet."""
