"""What others wrote a moment ago, and no posting names yet: searches hardly look at it."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from tests.store.backends import Postgres
from tests.store.kept import EVERYTHING, Kept
from tests.store.postgres.keywords import stop_posting
from zibaldone.access.principal import Tenant
from zibaldone.store.port import Reader
from zibaldone.store.postgres import scopes
from zibaldone.store.postgres.fold import Folding, RunWrite
from zibaldone.store.postgres.postings import has_more, post
from zibaldone.store.postgres.store import PostgresStore
from zibaldone.text.query import parse_query

AWAY = Tenant("away")
SMALL = Tenant(prefix="small")
MANY = 3_000
FAR = 1_000_000

_READ = """
SELECT coalesce(sum(idx_tup_fetch), 0) + coalesce(sum(seq_tup_read), 0)
FROM pg_stat_xact_user_tables
WHERE schemaname = 'zibaldone' AND relname IN ('chunk_terms', 'removed_terms', 'unposted')
"""
"""Rows that the connection has read and not told of yet."""

_WRITE = f"""
INSERT INTO chunk_terms (chunk_key, namespace, length, terms)
SELECT {FAR} + n, 'default', 1, 'zebra:1' FROM generate_series(1, {MANY}) n;
INSERT INTO unposted (namespace, chunk_key, length)
SELECT 'default', {FAR} + n, 1 FROM generate_series(1, {MANY}) n;
INSERT INTO removed_terms (chunk_key, namespace, length, terms)
SELECT {2 * FAR} + n, 'default', 1, 'zebra:1' FROM generate_series(1, {MANY}) n
"""


@pytest.fixture
def quiet(kept: Kept) -> Kept:
    """A store that posts when it is told to."""
    stop_posting(kept.store)
    return kept


@pytest.mark.parametrize("tenant", [AWAY, SMALL], ids=["another namespace", "a small folder"])
def test_a_search_does_not_read_all_of_it(quiet: Kept, tables: Postgres, tenant: Tenant) -> None:
    quiet.create("small/own", "zebra", tenant)
    for statement in _WRITE.split(";"):
        tables.execute(statement)

    def search(reader: Reader) -> tuple[int, int]:
        lexical: Any = reader.lexical
        before = lexical._transaction.value(_READ)
        hits = lexical.search(parse_query("zebra"), limit=10)
        lexical.frequencies(["zebra"])
        lexical.chunk_counts(["zebra"], count_max=10)
        return len(hits), int(lexical._transaction.value(_READ) - before)

    hits, rows = quiet.read(search, tenant)
    assert hits == 1
    assert rows < MANY, "three looks at some hundred rows each"


def test_posting_ends_where_somebody_keeps_writing(quiet: Kept, tables: Postgres) -> None:
    new = f"new.namespace, {FAR} + new.segment, 1"
    tables.note_changes("unposted", new, on="INSERT ON segments")
    quiet.create("a", "zebra", EVERYTHING)
    write = cast("PostgresStore", quiet.store)._writers.run_here
    assert write(post, scopes.OF_UPKEEP) is False
    assert write(has_more, scopes.OF_UPKEEP) is True


def test_what_is_left_is_folded_without_another_write() -> None:
    rounds = 0
    again = threading.Event()

    def write(work: Any) -> bool:
        nonlocal rounds
        if work.args != (has_more,):
            return False
        rounds += 1
        if rounds > 1:
            again.set()
        return rounds == 1

    folding = Folding(cast("RunWrite", write))
    try:
        folding.note_write()
        assert again.wait(30)
    finally:
        folding.close()
