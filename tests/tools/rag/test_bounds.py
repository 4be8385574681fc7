"""Order, bounds and refusals of the three rag searches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.engines import store_flags
from tests.drivers.mcp import Mcp
from tests.drivers.rag import (
    EVERYWHERE,
    SEARCHES,
    asking,
    chunks_of,
    crowded_server,
    posts_server,
    rag,
)
from tests.drivers.runtimes import Caller
from tests.drivers.server import Server
from zibaldone import settings as configuration
from zibaldone.wiring.runtime import build_runtime

QUERY = "amber garnet willow"
MAIN_SCORE = {
    "rag.search_fts": "score_fts",
    "rag.search_vector": "score_vec",
    "rag.search_hybrid": "score",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with posts_server(tmp_path_factory.mktemp("bounds") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    with crowded_server(tmp_path_factory.mktemp("crowded") / "data") as running:
        yield rag(running)


@pytest.mark.requirement("RAG-06", "RAG-07", "RAG-08", "X-21")
@pytest.mark.parametrize("tool", SEARCHES)
@pytest.mark.parametrize("query", ["amber", QUERY, "quartz onyx", EVERYWHERE])
def test_the_best_comes_first(tools: Mcp, tool: str, query: str) -> None:
    hits = tools.call(tool, **asking(tool, query, k=50))["results"]
    scores = [hit[MAIN_SCORE[tool]] for hit in hits]
    assert len(scores) > 5
    assert all(a >= b for a, b in pairwise(scores))
    assert all(-1 <= score <= 1 for score in scores)
    if tool == "rag.search_fts":
        raw = [hit["score_fts_raw"] for hit in hits]
        assert all(a >= b for a, b in pairwise(raw)), "normalising keeps the order"
        assert all(0 <= score < 1 for score in scores)
    if tool == "rag.search_vector":
        near = [hit["distance_raw"] for hit in hits]
        assert all(a <= b for a, b in pairwise(near))


@pytest.mark.requirement("RAG-06", "X-21")
def test_a_rarer_and_more_frequent_match_scores_higher(server: Server, tools: Mcp) -> None:
    """The direction of the score, not only that it is sorted."""
    bodies = {"rank:2": "plumbus " * 4 + "x " * 6, "rank:1": "plumbus " + "x " * 9}
    for path, body in bodies.items():
        server.create(path, body)
    try:
        hits = tools.call("rag.search_fts", query="plumbus")["results"]
        assert [hit["doc_id"] for hit in hits] == ["rank:2", "rank:1"]
        assert hits[0]["score_fts"] > hits[1]["score_fts"] > 0
    finally:
        for path in bodies:
            server.client.delete(f"/documents/{path}")


@pytest.mark.requirement("RAG-10", "RAG-15")
@pytest.mark.parametrize("tool", SEARCHES)
def test_more_hits_than_allowed(tools: Mcp, tool: str) -> None:
    answer = tools.call(tool, **asking(tool, k=500))
    assert len(answer["results"]) == 50
    assert answer["truncated"] is True
    assert answer["stats"]["k_requested"] == 500


@pytest.mark.requirement("RAG-15")
@pytest.mark.parametrize("tool", SEARCHES)
def test_nothing_was_cut(tools: Mcp, tool: str) -> None:
    """Asking for much of little, or for as much as is allowed, cuts nothing."""
    few = {"doc_ids": ["posts:001", "posts:002"]}
    for k, filters in ((500, few), (2, few), (50, {}), (10, {})):
        answer = tools.call(tool, **asking(tool, k=k, filters=filters))
        assert answer["truncated"] is False, (k, filters)


@pytest.mark.requirement("RAG-11", "RAG-28")
def test_candidates_are_bounded(crowded: Mcp) -> None:
    def candidates(mode: str, **options: Any) -> dict[str, Any]:
        return crowded.call("rag.search_hybrid", query="needle", k=50, mode=mode, **{mode: options})

    beyond = crowded.call("rag.search_fts", query="needle", k=1, offset=550)
    assert beyond["results"], "there are more than 500"
    widest = candidates("fts_then_vec", candidates_k=5_000, rerank_k=5_000)
    assert max(hit["debug"]["rank_fts"] for hit in widest["results"]) <= 500
    same = candidates("fts_then_vec", candidates_k=500, rerank_k=500)
    assert widest["results"] == same["results"]
    fewer = candidates("fts_then_vec", candidates_k=60, rerank_k=60)
    assert max(hit["debug"]["rank_fts"] for hit in fewer["results"]) <= 60
    assert chunks_of(fewer) != chunks_of(widest)
    for mode in ("fuse", "convex"):
        most = candidates(mode, fts_k=5_000, vec_k=5_000)
        assert most["results"] == candidates(mode, fts_k=500, vec_k=500)["results"]


@pytest.mark.requirement("RAG-28")
@pytest.mark.parametrize("tool", SEARCHES)
def test_a_search_of_all_sources_stays_within_its_budget(crowded: Mcp, tool: str) -> None:
    answer = crowded.call(tool, **asking(tool, "needle part", k=50))
    assert len(answer["results"]) == 50
    assert "note" not in answer, "no leg was left out for want of time"
    assert answer["stats"]["ms"] <= 4 * 2_000


@pytest.mark.requirement("RAG-04")
def test_the_passages_of_a_document_are_numbered_from_0(crowded: Mcp) -> None:
    for number in (0, 59):
        filters = {"doc_ids": [f"crowd:{number}"]}
        found = chunks_of(crowded.call("rag.search_fts", query="needle", k=50, filters=filters))
        assert len(found) > 1
        assert sorted(found) == sorted(f"crowd:{number}#{n}" for n in range(len(found)))


@pytest.mark.requirement("RAG-33")
@pytest.mark.parametrize("tool", SEARCHES)
def test_snippets_are_short(crowded: Mcp, tool: str) -> None:
    answer = crowded.call(tool, **asking(tool, "needle", **{"return": {"include_snippets": True}}))
    for hit in answer["results"]:
        assert 0 < len(hit["snippet"]) <= 300
    assert all("needle" in hit["snippet"] for hit in answer["results"])


@pytest.mark.requirement("RAG-12", "RAG-84")
@pytest.mark.parametrize("tool", SEARCHES)
@pytest.mark.parametrize("unit", ["a", "é", "漢", "🜁"])
def test_a_query_is_measured_in_bytes(tools: Mcp, tool: str, unit: str) -> None:
    size = len(unit.encode())
    largest = unit * (8192 // size) + "b" * (8192 % size)
    assert len(largest.encode()) == 8192
    tools.call(tool, **asking(tool, largest))
    failure = tools.failure(tool, **asking(tool, largest + "b"))
    assert (failure["code"], failure["status"]) == ("LIMIT_EXCEEDED", 422)


WRONG_NUMBERS: tuple[Any, ...] = (0, -1, 1.5, "ten", None, True, [], 1e300)
WRONG_RETURNS: tuple[Any, ...] = (
    *(1, [], "all"),
    *({"include_body": True}, {"include_title": "yes"}),
)
WRONG_QUERIES: tuple[Any, ...] = ("", "   ", 1, ["a"], {}, True)


@pytest.mark.requirement("RAG-30", "RAG-84", "X-25")
@pytest.mark.parametrize("tool", SEARCHES)
def test_wrong_arguments_are_refused(tools: Mcp, tool: str) -> None:
    key = "query_text" if tool == "rag.search_vector" else "query"
    bad: list[dict[str, Any]] = [{}, {**asking(tool), "unknown": 1}]
    bad += [{**asking(tool), "k": wrong} for wrong in WRONG_NUMBERS]
    bad += [{**asking(tool), "return": wrong} for wrong in WRONG_RETURNS]
    bad += [{key: wrong} for wrong in WRONG_QUERIES]
    for arguments in bad:
        failure = tools.failure(tool, **arguments)
        assert failure["code"] == "INVALID_ARGUMENT", arguments
        assert {*failure} == {"code", "status", "message", "details"}
        assert failure["status"] == 422


@pytest.mark.requirement("RAG-30")
@pytest.mark.parametrize("offset", [-1, 10_001, "none", 0.5, None])
def test_a_wrong_offset_is_refused(tools: Mcp, offset: Any) -> None:
    failure = tools.failure("rag.search_fts", query=QUERY, offset=offset)
    assert failure["code"] == "INVALID_ARGUMENT"


def _opened(data: Path) -> Any:
    chosen = configuration.load(
        {"data": str(data), **store_flags(data), "embedder": "hashed"}, environment={}
    )
    return build_runtime(chosen)


class Broken:
    async def read(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError


@pytest.mark.requirement("RAG-84")
def test_a_fault_of_ours_is_called_internal(data: Path) -> None:
    runtime = _opened(data)
    try:
        caller = Caller(dataclasses.replace(runtime, store=Broken()))
        for tool in SEARCHES:
            assert caller.refused(tool, **asking(tool)) == "INTERNAL"
        assert caller.refused("rag.get_docs", doc_ids=["a"]) == "INTERNAL"
    finally:
        runtime.store.close()
