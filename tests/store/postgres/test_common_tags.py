"""Tags that others have on many documents: a search in a small folder reads its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.store.backends import Postgres
from tests.store.kept import ACTOR, HASHED, Kept
from zibaldone.access.principal import Tenant
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.model.query import Filter
from zibaldone.store.port import Reader, Writer

OTHERS = 150

_READ = """
SELECT coalesce(sum(coalesce(idx_tup_fetch, 0) + seq_tup_read), 0)
FROM pg_stat_xact_user_tables WHERE schemaname = 'zibaldone' AND relname = 'document_tags'
"""
"""Rows of tags that the connection has read and not told of yet."""


def test_tags_of_others_are_not_read(tmp_path: Path) -> None:
    backend = Postgres(tmp_path / "data")
    limits = Limits()
    kept = Kept(backend.open(limits), limits)
    tags = ("tree", "green")

    def fill(writer: Writer) -> None:
        for path in ("own/1", "own/2", *(f"x/{number}" for number in range(OTHERS))):
            create(writer, NewDocument(path, "oak", tags=tags), ACTOR, limits)
        create(writer, NewDocument("own/3", "oak", tags=tags[:1]), ACTOR, limits)

    kept.write(fill)
    kept.index()
    backend.execute("ANALYZE")

    def found(reader: Reader) -> tuple[int, int]:
        transaction: Any = reader.lexical._transaction  # type: ignore[attr-defined]
        before = transaction.value(_READ)
        hits = reader.vectors.search(
            HASHED.identity, HASHED.embed(["oak"])[0], 10, Filter(tags_all=tags)
        )
        return len(hits), int(transaction.value(_READ) - before)

    try:
        hits, rows_read = kept.read(found, Tenant(prefix="own/"))
        assert hits == 2
        assert rows_read < OTHERS
        assert kept.read(found)[0] == 10
    finally:
        kept.store.close()
        backend.close()
