"""Lists and filters by the time of the last write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.store.kept import EVERYTHING, HASHED, Kept
from zibaldone.access.principal import Tenant
from zibaldone.model.chunk import ChunkView
from zibaldone.model.document import Document, RecentHead
from zibaldone.model.query import Filter
from zibaldone.store.port import Reader
from zibaldone.text.query import parse_query

TIMES = {"a/1": 50, "a/2": 10, "b/1": 40, "b/2": 40, "c": -5, "d": 60}
NEWEST_FIRST = ["d", "a/1", "b/2", "b/1", "a/2", "c"]


@pytest.fixture
def dated(kept: Kept) -> Kept:
    """Documents that were written at these times, and one that is gone."""
    for path, at_us in {**TIMES, "gone": 70}.items():
        _rewrite(kept, kept.create(path, "zebra"), at_us)
    kept.delete("gone")
    return kept


def _rewrite(kept: Kept, document: Document, at_us: int) -> None:
    written = replace(document, revision=2, updated_at_us=at_us)
    kept.write(lambda writer: writer.documents.replace(document, written))


def recent(kept: Kept, prefix: str = "", tenant: Tenant = EVERYTHING, **more: Any) -> list[str]:
    arguments = {"limit": 100, **more}
    heads = kept.read(lambda reader: reader.documents.recent(prefix, **arguments), tenant)
    assert all(head.updated_at_us == TIMES[head.document_id] for head in heads)
    return [head.document_id for head in heads]


def test_the_newest_come_first(dated: Kept) -> None:
    assert recent(dated) == NEWEST_FIRST
    assert recent(dated, limit=2) == NEWEST_FIRST[:2]
    assert recent(dated, offset=2, limit=3) == NEWEST_FIRST[2:5]
    assert recent(dated, "a/") == ["a/1", "a/2"]
    assert recent(dated, "nothing") == []


def test_a_period(dated: Kept) -> None:
    assert recent(dated, since_us=40) == ["d", "a/1", "b/2", "b/1"]
    assert recent(dated, until_us=40) == ["a/2", "c"]
    assert recent(dated, since_us=10, until_us=50) == ["b/2", "b/1", "a/2"]
    assert recent(dated, since_us=71) == []


@pytest.mark.parametrize("size", [1, 2, 4])
def test_pages_fit_together(dated: Kept, size: int) -> None:
    paths: list[str] = []
    before = None
    while page := recent(dated, before=before, limit=size):
        paths += page
        before = (TIMES[page[-1]], page[-1])
    assert paths == NEWEST_FIRST
    assert recent(dated, before=(40, "b/2"), until_us=40) == ["a/2", "c"]


def test_deleted_documents_are_a_list_of_their_own(dated: Kept) -> None:
    def deleted(prefix: str = "", tenant: Tenant = EVERYTHING, **more: Any) -> list[RecentHead]:
        arguments = {"limit": 100, **more}
        return kept.read(lambda reader: reader.documents.deleted(prefix, **arguments), tenant)

    kept = dated
    assert [head.document_id for head in deleted()] == ["gone"]
    kept.delete("b/1")
    kept.delete("b/2")
    heads = deleted()
    assert {head.document_id for head in heads} == {"gone", "b/1", "b/2"}
    times = [head.updated_at_us for head in heads]
    assert times == sorted(times, reverse=True)
    last = (heads[0].updated_at_us, heads[0].document_id)
    assert deleted(limit=1) == heads[:1]
    assert deleted(before=last) == heads[1:]
    assert {head.document_id for head in deleted("b/")} == {"b/1", "b/2"}
    assert {head.document_id for head in deleted(tenant=Tenant(prefix="g"))} == {"gone"}
    assert deleted(tenant=Tenant("away")) == []


def test_a_tenant_sees_its_own(dated: Kept) -> None:
    assert recent(dated, tenant=Tenant(prefix="b/")) == ["b/2", "b/1"]
    assert recent(dated, "a/", tenant=Tenant(prefix="b/")) == []
    assert recent(dated, tenant=Tenant("away")) == []


@pytest.mark.parametrize(
    ("wanted", "paths"),
    [
        (Filter(updated_after_us=40), {"d", "a/1", "b/2", "b/1"}),
        (Filter(updated_before_us=40), {"a/2", "c"}),
        (Filter(updated_after_us=10, updated_before_us=50, prefix="b"), {"b/1", "b/2"}),
        (Filter(updated_after_us=71), set()),
    ],
)
def test_searches_filter_by_it(dated: Kept, wanted: Filter, paths: set[str]) -> None:
    dated.index()
    query, vector = parse_query("zebra"), HASHED.embed(["zebra"])[0]

    def look(reader: Reader) -> list[dict[int, ChunkView]]:
        by_words = reader.lexical.search(query, limit=50, wanted=wanted)
        near = reader.vectors.search(HASHED.identity, vector, 50, wanted)
        return [reader.chunks.views(key for key, _ in scored) for scored in (by_words, near)]

    for views in dated.read(look):
        assert {view.document_id for view in views.values()} == paths
        assert all(view.updated_at_us == TIMES[view.document_id] for view in views.values())
