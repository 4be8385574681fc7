"""The filter of the rag tools: every field against an oracle, in each of the three searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import combinations, pairwise
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import (
    CORPUS,
    ENABLED,
    EVERYWHERE,
    SEARCHES,
    SOURCES,
    Post,
    asking,
    docs_of,
    ids,
    posts_server,
    rag,
)

Condition = Callable[[Post], bool]
_LISTED = ["posts:003", "posts:041", "posts:105", "posts:none"]
_MORNING = datetime(2024, 1, 11, 8, tzinfo=UTC)
"""Exactly when post 031 was created, hours after 030 of the same day."""
_LATER = datetime(2024, 1, 22, tzinfo=UTC)

FILTERS: dict[str, tuple[dict[str, Any], Condition]] = {
    "source_ids": (
        {"source_ids": [SOURCES["stack_posts"]]},
        lambda post: post.source == "stack_posts",
    ),
    "source_names": ({"source_names": ["kb"]}, lambda post: post.source == "kb"),
    "doc_ids": ({"doc_ids": _LISTED}, lambda post: post.doc_id in _LISTED),
    "min_score": (
        {"min_score": 5},
        lambda post: post.score is not None and post.score >= 5,
    ),
    "post_type_ids": ({"post_type_ids": [1, 3]}, lambda post: post.post_type in (1, 3)),
    "tags_any": ({"tags_any": ["mysql", "json"]}, lambda post: bool(post.tags & {"mysql", "json"})),
    "tags_all": ({"tags_all": ["mysql", "json"]}, lambda post: post.tags >= {"mysql", "json"}),
    "created_after": (
        {"created_after": "2024-01-11T08:00:00Z"},
        lambda post: post.created >= _MORNING,
    ),
    "created_before": (
        {"created_before": "2024-01-22T00:00:00Z"},
        lambda post: post.created < _LATER,
    ),
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    with posts_server(tmp_path_factory.mktemp("filters") / "data") as server:
        yield rag(server)


def everything_found(tools: Mcp, filters: dict[str, Any]) -> list[str]:
    """All documents that keyword search admits, page by page."""
    found: list[str] = []
    while True:
        page = docs_of(
            tools.call("rag.search_fts", query=EVERYWHERE, k=50, offset=len(found), filters=filters)
        )
        found += page
        if len(page) < 50:
            return found


def check(tools: Mcp, filters: dict[str, Any], allowed: set[str]) -> None:
    """Keyword search finds exactly these; the others find them too, as many as an answer holds."""
    found = everything_found(tools, filters)
    assert len(found) == len({*found})
    assert {*found} == allowed
    for tool in SEARCHES[1:]:
        hits = docs_of(tools.call(tool, **asking(tool, k=50, filters=filters)))
        assert {*hits} <= allowed, tool
        assert len(hits) == min(50, len(allowed)), tool


@pytest.mark.requirement(
    "RAG-16", "RAG-17", "RAG-18", "RAG-19", "RAG-20", "RAG-22", "RAG-23", "RAG-29", "X-23", "X-24"
)
@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_alone(tools: Mcp, name: str) -> None:
    filters, condition = FILTERS[name]
    allowed = ids(condition)
    assert 0 < len(allowed) < len(ENABLED), "the filter has something to do"
    check(tools, filters, allowed)


@pytest.mark.requirement("RAG-25", "RAG-29")
@pytest.mark.parametrize(("one", "other"), list(combinations(FILTERS, 2)))
def test_two_filters_hold_together(tools: Mcp, one: str, other: str) -> None:
    (first, is_first), (second, is_second) = FILTERS[one], FILTERS[other]
    check(tools, {**first, **second}, ids(lambda post: is_first(post) and is_second(post)))


@pytest.mark.requirement("RAG-25")
def test_all_filters_hold_together(tools: Mcp) -> None:
    names = ("source_names", "min_score", "post_type_ids", "tags_any", "created_after")
    merged = {key: value for name in names for key, value in FILTERS[name][0].items()}
    allowed = ids(lambda post: all(FILTERS[name][1](post) for name in names))
    assert allowed
    check(tools, merged, allowed)


@pytest.mark.requirement("RAG-16")
def test_the_schema_names_the_nine_fields(tools: Mcp) -> None:
    for tool in tools.tools():
        if tool["name"] in SEARCHES:
            known = tool["inputSchema"]["properties"]["filters"]["properties"]
            further = {"min_relevance", "updated_after", "updated_before"}  # test_recent.py
            assert {*FILTERS} | further == {*known}


@pytest.mark.requirement("RAG-26")
def test_ids_and_names_of_sources_intersect(tools: Mcp) -> None:
    kb, stack = SOURCES["kb"], SOURCES["stack_posts"]
    both = {"source_ids": [kb, stack], "source_names": ["stack_posts"]}
    check(tools, both, ids(lambda post: post.source == "stack_posts"))
    check(tools, {"source_ids": [kb], "source_names": ["stack_posts"]}, set())


@pytest.mark.requirement("RAG-27")
def test_a_disabled_source_is_not_searched(tools: Mcp) -> None:
    disabled = {post.doc_id for post in CORPUS if not post.is_enabled}
    assert disabled
    found = everything_found(tools, {})
    assert {*found} == {post.doc_id for post in CORPUS} - disabled
    for filters in (
        {"source_names": ["docs_disabled"]},
        {"source_ids": [SOURCES["docs_disabled"]]},
        {"doc_ids": sorted(disabled)},
    ):
        check(tools, filters, set())


@pytest.mark.requirement("RAG-21", "X-24")
def test_a_post_type_is_a_number_however_it_is_written(tools: Mcp) -> None:
    allowed = ids(lambda post: post.post_type == 1)
    written = {type(post.metadata["PostTypeId"]) for post in ENABLED if post.post_type == 1}
    assert written == {int, str}
    check(tools, {"post_type_ids": [1]}, allowed)


@pytest.mark.requirement("RAG-20", "X-23", "X-24")
@pytest.mark.parametrize("least", [-3, 0, 5, 12, 4.5])
def test_the_least_score_compares_numbers(tools: Mcp, least: float) -> None:
    """Compared as text, "12" would be less than "5"."""
    check(tools, {"min_score": least}, ids(lambda p: p.score is not None and p.score >= least))


@pytest.mark.requirement("X-24")
def test_metadata_keeps_the_types_of_its_source(tools: Mcp) -> None:
    wanted = [post for post in ENABLED if post.number < 40]
    answer = tools.call(
        "rag.search_fts",
        query=EVERYWHERE,
        k=50,
        filters={"doc_ids": [post.doc_id for post in wanted]},
    )
    assert {hit["doc_id"]: hit["metadata"] for hit in answer["results"]} == {
        post.doc_id: post.metadata for post in wanted
    }


@pytest.mark.requirement("X-23")
def test_least_relevance_is_another_field(tools: Mcp) -> None:
    for tool, key in zip(SEARCHES, ("score_fts", "score_vec", "score"), strict=True):
        # Of the ways to fuse, this one has scores between 0 and 1.
        more = {"mode": "convex"} if tool == "rag.search_hybrid" else {}
        arguments = asking(tool, "amber garnet", k=50, **more)
        scores = [hit[key] for hit in tools.call(tool, **arguments)["results"]]
        low, high = next((b, a) for a, b in pairwise(scores[5:]) if a - b > 1e-4)
        least = (low + high) / 2
        kept = tools.call(tool, **arguments, filters={"min_relevance": least})["results"]
        assert [hit[key] for hit in kept] == [score for score in scores if score >= least]
        assert len(kept) < len(scores)


@pytest.mark.requirement("RAG-22", "RAG-23", "X-24")
@pytest.mark.parametrize("tag", ["mysql", "Python", "PYTHON", "c++"])
def test_tags_in_every_style(tools: Mcp, tag: str) -> None:
    def has(post: Post) -> bool:
        return tag.lower() in {known.lower() for known in post.tags}

    styles = {(type(p.metadata["Tags"]), p.metadata["Tags"][:1] == "<") for p in ENABLED if has(p)}
    assert len(styles) == 3, "each way to write tags occurs"
    check(tools, {"tags_any": [tag]}, ids(has))
    check(tools, {"tags_all": [tag]}, ids(has))


@pytest.mark.requirement("RAG-24")
@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2024-01-11T08:00:00Z", datetime(2024, 1, 11, 8, tzinfo=UTC)),
        ("2024-01-11T08:00:01Z", datetime(2024, 1, 11, 8, 0, 1, tzinfo=UTC)),
        ("2024-01-11T07:59:59Z", datetime(2024, 1, 11, 7, 59, 59, tzinfo=UTC)),
        ("2024-01-11", datetime(2024, 1, 11, tzinfo=UTC)),
        ("2024-01-11 16:00:00", datetime(2024, 1, 11, 16, tzinfo=UTC)),
        ("2024-01-11T10:00:00+02:00", datetime(2024, 1, 11, 8, tzinfo=UTC)),
    ],
)
def test_instants_of_the_same_day(tools: Mcp, written: str, moment: datetime) -> None:
    """Compared as text, `2024-01-11 08:…` would be before every `2024-01-11T…`."""
    check(tools, {"created_after": written}, ids(lambda post: post.created >= moment))
    check(tools, {"created_before": written}, ids(lambda post: post.created < moment))


@pytest.mark.requirement("RAG-44")
def test_the_filter_comes_before_the_cut(tools: Mcp) -> None:
    """Ten posts that are far from the query come back although a hundred others are nearer."""
    query = "amber basalt cedar"
    nearest = docs_of(tools.call("rag.search_vector", query_text=query, k=50))
    far = sorted({post.doc_id for post in ENABLED} - {*nearest})[:10]
    hits = tools.call("rag.search_vector", query_text=query, k=10, filters={"doc_ids": far})
    assert sorted(docs_of(hits)) == far


@pytest.mark.requirement("RAG-25")
def test_an_empty_list_admits_nothing_and_an_empty_filter_everything(tools: Mcp) -> None:
    check(tools, {"tags_any": []}, set())
    check(tools, {"doc_ids": []}, set())
    check(tools, {}, ids(lambda post: True))


BAD_FILTERS: tuple[dict[str, Any], ...] = (
    {"source_ids": ["one"]},
    {"source_ids": 1},
    {"source_ids": [1.5]},
    {"source_ids": [True]},
    {"source_ids": [-1]},
    {"source_names": "kb"},
    {"source_names": [1]},
    {"doc_ids": [None]},
    {"doc_ids": ["x"] * 201},
    {"min_score": "5"},
    {"min_relevance": -0.1},
    {"min_relevance": 1.1},
    {"post_type_ids": ["one"]},
    {"post_type_ids": [1, -2]},
    {"tags_any": "mysql"},
    {"tags_all": [["mysql"]]},
    {"created_after": 1704067200},
    {"created_after": "yesterday"},
    {"created_before": "2024-13-01"},
    {"unknown": 1},
)


@pytest.mark.requirement("RAG-30", "RAG-84")
@pytest.mark.parametrize("tool", SEARCHES)
def test_a_wrong_filter_is_refused(tools: Mcp, tool: str) -> None:
    for filters in (*BAD_FILTERS, [], "kb", 1):
        failure = tools.failure(tool, **asking(tool, filters=filters))
        assert failure["code"] == "INVALID_ARGUMENT", (filters, failure)
        assert failure["details"]["field"].startswith("filters"), failure
