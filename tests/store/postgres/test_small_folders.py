"""A caller who sees a few chunks of a large namespace: only these are ranked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.backends import Postgres
from tests.store.contract.test_large_index import QUERIES, every_folder, every_query
from tests.store.kept import EVERYTHING
from tests.store.large_index import Index, large_index
from tests.store.postgres.keywords import post_all
from zibaldone.access.principal import Tenant
from zibaldone.model.query import Filter
from zibaldone.store.port import Reader
from zibaldone.store.postgres import lexical
from zibaldone.text.query import parse_query

OWN = Tenant(prefix="low/1")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    backend = Postgres(tmp_path_factory.mktemp("small_folders") / "data")
    with large_index(backend) as filled:
        post_all(filled.small.store)
        yield filled
    backend.close()


ESTIMATED = {QUERIES["a phrase"], QUERIES["a prefix"]}
"""How rare these are is estimated from the chunks that are ranked."""


@every_folder
@every_query
def test_the_hits_and_scores_are_the_same(
    index: Index, monkeypatch: pytest.MonkeyPatch, words: str, wanted: Filter
) -> None:
    exact = index.exact(words, wanted)
    monkeypatch.setattr(lexical, "_MATCHING_FEW", 0)
    found = index.found(words, wanted)
    assert sorted(key for key, _ in found) == sorted(key for key, _ in exact)
    if words not in ESTIMATED:
        assert found == exact
    assert index.found(words, wanted, limit=3, offset=2) == found[2:5]
    monkeypatch.setattr(lexical, "_OWN_MAX", 1)
    many = index.found(words, wanted)
    assert sorted(key for key, _ in many) == sorted(key for key, _ in exact)


def test_what_others_wrote_is_not_read(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_MATCHING_FEW", 10)

    def postings_read(tenant: Tenant) -> int:
        def read(reader: Reader) -> int:
            transaction: Any = reader.lexical._transaction  # type: ignore[attr-defined]
            before = transaction.value(_READ)
            assert reader.lexical.search(parse_query("oak elm"), limit=10)
            return int(transaction.value(_READ) - before)

        return index.small.read(read, tenant)

    assert postings_read(EVERYTHING) > 0
    assert postings_read(OWN) == 0


def test_no_helper_is_started_for_a_caller(index: Index) -> None:
    def helpers(reader: Reader) -> str:
        transaction: Any = reader.lexical._transaction  # type: ignore[attr-defined]
        return str(transaction.value("SHOW max_parallel_workers_per_gather"))

    assert index.small.read(helpers) == "0"


_READ = """
SELECT coalesce(sum(idx_tup_fetch), 0) + coalesce(sum(seq_tup_read), 0)
FROM pg_stat_xact_user_tables WHERE schemaname = 'zibaldone' AND relname = 'postings'
"""
"""Rows of postings that the connection has read and not told of yet."""
