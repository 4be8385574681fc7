"""A namespace that has grown since PostgreSQL last counted: the planner takes it for empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.backends import Postgres
from tests.store.kept import ACTOR, Kept
from zibaldone.access.principal import Tenant
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.model.query import Filter
from zibaldone.store.port import Reader, Writer
from zibaldone.text.query import parse_query

GROWN = Tenant(namespace="grown")
DOCUMENTS = 400
HITS = 20

_READ = """
SELECT coalesce(sum(idx_tup_fetch), 0) + coalesce(sum(seq_tup_read), 0)
FROM pg_stat_xact_user_tables WHERE schemaname = 'zibaldone' AND relname = 'documents'
"""
"""Rows of documents that the connection has read and not told of yet."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    backend: Any = Postgres(tmp_path_factory.mktemp("uncounted") / "data")
    limits = Limits()
    kept = Kept(backend.open(limits), limits)
    for table in ("documents", "chunks", "facets", "document_tags"):
        backend.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")

    def fill(writer: Writer) -> None:
        for number in range(DOCUMENTS):
            new = NewDocument(f"x/{number}", f"oak elm {number}", tags=("tree",))
            create(writer, new, ACTOR, limits)

    kept.write(fill, Tenant(namespace="other"))
    backend.execute("ANALYZE")
    kept.write(fill, GROWN)
    yield kept
    kept.store.close()
    backend.close()


@pytest.mark.parametrize(
    "wanted",
    [Filter(), Filter(tags_any=("tree",)), Filter(tags_all=("tree",)), Filter(prefix="x/")],
    ids=["all", "any tag", "all tags", "a folder"],
)
def test_a_search_reads_the_documents_of_its_hits_only(grown: Kept, wanted: Filter) -> None:
    query = parse_query("oak elm")

    def rows_read(reader: Reader) -> int:
        transaction: Any = reader.lexical._transaction  # type: ignore[attr-defined]
        before = int(transaction.value(_READ))
        hits = reader.lexical.search(query, limit=HITS, wanted=wanted)
        keys = [key for key, _ in hits]
        assert len(keys) == len(reader.chunks.views(keys)) == HITS
        assert len(reader.chunks.documents_of(keys)) == HITS
        assert reader.lexical.matching(query, keys) == set(keys)
        return int(transaction.value(_READ)) - before

    # Some more candidates than hits are looked up.
    assert grown.read(rows_read, GROWN) < 10 * HITS
