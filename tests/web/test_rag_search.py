"""rag.search_fts, rag.search_vector and rag.search_hybrid through MCP."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace import settings as configuration
from commonplace.embed.hashed import Hashed
from commonplace.embed.port import Vectors
from commonplace.find.query_vector import QueryVectors
from commonplace.wiring import build_runtime
from tests.keep.runtimes import Caller
from tests.keep.test_list_statements import Trace
from tests.server import Server
from tests.web.mcp import Mcp
from tests.web.rag import (
    CORPUS,
    ENABLED,
    EVERYWHERE,
    HASHED,
    SEARCHES,
    SOURCES,
    EmbeddingServer,
    asking,
    chunks_of,
    docs_of,
    embedding,
    embedding_server,
    holding,
    metric,
    packed,
    posts_server,
    rag,
    wait_until_indexed,
    without_time,
)

RECORDED_SCHEMAS = Path(__file__).with_name("golden") / "rag_schemas.json"
QUERY = "amber garnet willow"
IDS = {"chunk_id", "doc_id", "source_id", "source_name"}
SCORES = {
    "rag.search_fts": {"score_fts", "score_fts_raw"},
    "rag.search_vector": {"score_vec", "distance_raw"},
    "rag.search_hybrid": {"score", "score_fts", "score_vec", "debug"},
}
MAIN_SCORE = {
    "rag.search_fts": "score_fts",
    "rag.search_vector": "score_vec",
    "rag.search_hybrid": "score",
}
MODES = ("fuse", "fts_then_vec", "convex")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with posts_server(tmp_path_factory.mktemp("search") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    """More passages that hold one word equally often than any leg may bring."""
    with Server(tmp_path_factory.mktemp("crowded") / "data", environment=HASHED) as running:
        for number in range(60):
            parts = (_section(number, part) for part in range(10))
            running.create(f"crowd:{number}", "\n\n".join(parts))
        wait_until_indexed(running)
        yield rag(running)


def _section(number: int, part: int) -> str:
    """Long enough to be a passage of its own, with words that no other has."""
    words = " ".join(f"w{number}x{part}x{word}" for word in range(110))
    return f"# Part {part}\n\nneedle {words}"


# ---- contract ----


@pytest.mark.requirement("RAG-01", "RAG-31", "RAG-62", "RAG-66")
def test_schemas_are_the_recorded_ones(tools: Mcp) -> None:
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools.tools()}
    if os.environ.get("GOLDEN_WRITE"):
        RECORDED_SCHEMAS.write_text(json.dumps(schemas, indent=1, sort_keys=True) + "\n")
    assert schemas == json.loads(RECORDED_SCHEMAS.read_text())


@pytest.mark.requirement("RAG-31", "RAG-62", "RAG-66")
def test_the_arguments_are_those_of_the_contract(tools: Mcp) -> None:
    schemas = {tool["name"]: tool["inputSchema"]["properties"] for tool in tools.tools()}
    assert {*schemas["rag.search_fts"]} == {"query", "k", "offset", "filters", "return"}
    shown = {"include_title", "include_metadata", "include_snippets"}
    assert {*schemas["rag.search_fts"]["return"]["properties"]} == shown
    assert {*schemas["rag.get_chunks"]} == {"chunk_ids", "return"}
    flags = {"include_title", "include_doc_metadata", "include_chunk_metadata"}
    assert {*schemas["rag.get_chunks"]["return"]["properties"]} == flags
    assert {*schemas["rag.get_docs"]} == {"doc_ids", "return"}
    flags = {"include_body", "include_metadata"}
    assert {*schemas["rag.get_docs"]["return"]["properties"]} == flags


@pytest.mark.requirement(
    "RAG-02", "RAG-09", "RAG-33", "RAG-35", "RAG-36", "RAG-45", "RAG-59", "RAG-60"
)
@pytest.mark.parametrize("tool", SEARCHES)
def test_the_keys_of_a_hit(tools: Mcp, tool: str) -> None:
    """Ids and scores, never a body."""
    plain = IDS | SCORES[tool]
    no, yes = {"include_title": False}, {"include_title": True}
    cases: list[tuple[dict[str, bool], set[str]]] = [
        ({}, plain | {"title", "metadata"}),
        (no, plain | {"metadata"}),
        (yes | {"include_metadata": False}, plain | {"title"}),
        (no | {"include_metadata": False}, plain),
        ({"include_snippets": True}, plain | {"title", "metadata", "snippet"}),
    ]
    for wanted, keys in cases:
        answer = tools.call(tool, **asking(tool, QUERY, **{"return": wanted}))
        assert answer["results"]
        assert {*answer} == {"results", "truncated", "stats"}
        for hit in answer["results"]:
            assert {*hit} == keys, wanted


@pytest.mark.requirement("RAG-60", "RAG-61", "RAG-54", "RAG-59")
@pytest.mark.parametrize("mode", MODES)
def test_the_keys_of_a_hybrid_answer_in_each_mode(tools: Mcp, mode: str) -> None:
    answer = tools.call("rag.search_hybrid", query=QUERY, mode=mode, k=7)
    assert answer["results"]
    for hit in answer["results"]:
        assert {*hit} == IDS | SCORES["rag.search_hybrid"] | {"title", "metadata"}
        assert {*hit["debug"]} == {"rank_fts", "rank_vec"}
        ranks = [rank for rank in hit["debug"].values() if rank is not None]
        assert ranks
        assert all(type(rank) is int and rank >= 1 for rank in ranks)
        assert (hit["score_fts"] is None) == (hit["debug"]["rank_fts"] is None)
    stats = answer["stats"]
    assert {*stats} == {"mode", "k_requested", "k_returned", "ms"}
    assert (stats["mode"], stats["k_requested"]) == (mode, 7)
    assert stats["k_returned"] == len(answer["results"]) == 7


@pytest.mark.requirement("RAG-37", "RAG-45", "RAG-85")
@pytest.mark.parametrize("tool", SEARCHES[:2])
def test_the_stats_of_a_search(tools: Mcp, tool: str) -> None:
    for k in (1, 5, 200):
        answer = tools.call(tool, **asking(tool, QUERY, k=k))
        stats = answer["stats"]
        assert {*stats} == {"k_requested", "k_returned", "ms"}
        assert stats["k_requested"] == k
        assert stats["k_returned"] == len(answer["results"]) <= min(k, 50)
        assert type(stats["ms"]) in (int, float)
        assert stats["ms"] > 0


@pytest.mark.requirement("RAG-04", "RAG-05")
@pytest.mark.parametrize("tool", SEARCHES)
def test_ids_and_sources_of_a_hit(tools: Mcp, tool: str) -> None:
    """Each post is one passage, so its number is 0."""
    sources = {post.doc_id: post.source for post in CORPUS}
    titles = {post.doc_id: post.title for post in CORPUS}
    listed = tools.call("rag.admin.stats")["sources"]
    known = {one["source_id"]: one["source_name"] for one in listed}
    answer = tools.call(tool, **asking(tool, k=50))
    assert len(answer["results"]) == 50
    for hit in answer["results"]:
        assert hit["chunk_id"] == f"{hit['doc_id']}#0"
        assert hit["source_name"] == sources[hit["doc_id"]]
        assert hit["source_id"] == SOURCES[hit["source_name"]]
        assert known[hit["source_id"]] == hit["source_name"]
        assert hit["title"] == titles[hit["doc_id"]]


@pytest.mark.requirement("RAG-03")
def test_ids_survive_a_second_ingest(server: Server, tools: Mcp) -> None:
    writer = Mcp(server.client)
    path, body = "again:77", "unrepeated marvellousword"
    server.create(path, body)
    try:
        first = chunks_of(tools.call("rag.search_fts", query="marvellousword"))
        writer.call("update_document", path=path, content=f"{body} changed")
        second = chunks_of(tools.call("rag.search_fts", query="marvellousword"))
        writer.call("delete_document", path=path)
        assert chunks_of(tools.call("rag.search_fts", query="marvellousword")) == []
        writer.call("upload_document", path=path, content=body)
        third = chunks_of(tools.call("rag.search_fts", query="marvellousword"))
        assert first == second == third == ["again:77#0"]
    finally:
        server.client.delete(f"/documents/{path}")


@pytest.mark.requirement("X-25")
@pytest.mark.parametrize("tool", [*SEARCHES, "rag.admin.stats"])
def test_both_spellings_of_a_name(server: Server, tools: Mcp, tool: str) -> None:
    everything = Mcp(server.client, "/mcp-all")
    spelled = tool.replace(".", "_")
    assert tool in {one["name"] for one in tools.tools()}
    assert spelled in {one["name"] for one in everything.tools()}
    arguments = {} if tool == "rag.admin.stats" else asking(tool, QUERY)
    answers = [
        without_time(path.call(name, **arguments))
        for path in (tools, everything)
        for name in (tool, spelled)
    ]
    assert all(answer == answers[0] for answer in answers)


# ---- order and bounds ----


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
    assert answer["stats"]["ms"] <= 2_000


@pytest.mark.requirement("RAG-04")
def test_the_passages_of_a_document_are_numbered_from_0(crowded: Mcp) -> None:
    for number in (0, 59):
        filters = {"doc_ids": [f"crowd:{number}"]}
        found = chunks_of(crowded.call("rag.search_fts", query="needle", k=50, filters=filters))
        assert len(found) > 1
        assert sorted(found) == sorted(f"crowd:{number}#{n}" for n in range(len(found)))


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


WRONG_NUMBERS: tuple[Any, ...] = (0, -1, 1.5, "10", None, True, [], 1e300)
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


@pytest.mark.requirement("RAG-30", "RAG-48")
@pytest.mark.parametrize(
    "more",
    [
        {"mode": "magic"},
        {"mode": 1},
        {"mode": None},
        {"fuse": {"fts_k": 0}},
        {"fuse": {"fts_k": -5}},
        {"fuse": {"rrf_k0": -1}},
        {"fuse": {"w_fts": -0.1}},
        {"fuse": {"w_vec": "1"}},
        {"fuse": {"unknown": 1}},
        {"fts_then_vec": {"candidates_k": 0}},
        {"fts_then_vec": {"rerank_k": "5"}},
        {"fts_then_vec": {"vec_metric": "euclid"}},
        {"convex": {"w_vec": 1.1}},
        {"fuse": []},
    ],
)
def test_wrong_hybrid_options_are_refused(tools: Mcp, more: dict[str, Any]) -> None:
    assert tools.failure("rag.search_hybrid", query=QUERY, **more)["code"] == "INVALID_ARGUMENT"


@pytest.mark.requirement("RAG-30")
@pytest.mark.parametrize("offset", [-1, 10_001, "0", 0.5, None])
def test_a_wrong_offset_is_refused(tools: Mcp, offset: Any) -> None:
    failure = tools.failure("rag.search_fts", query=QUERY, offset=offset)
    assert failure["code"] == "INVALID_ARGUMENT"


# ---- keyword search ----


@pytest.mark.requirement("RAG-32")
@pytest.mark.parametrize("words", ["amber", "quartz onyx", "yarrow zephyr kelp", "absentword"])
def test_keyword_search_finds_whoever_has_a_word(tools: Mcp, words: str) -> None:
    found: list[str] = []
    while page := docs_of(tools.call("rag.search_fts", query=words, k=50, offset=len(found))):
        found += page
    assert len(found) == len({*found})
    assert {*found} == holding(*words.split())


@pytest.mark.requirement("RAG-32")
def test_a_word_of_the_title_alone_is_found(server: Server, tools: Mcp) -> None:
    server.create("titled:1", "nothing here", title="Gobbledygook")
    try:
        assert docs_of(tools.call("rag.search_fts", query="gobbledygook")) == ["titled:1"]
        assert docs_of(tools.call("rag.search_fts", query="title:gobbledygook")) == ["titled:1"]
    finally:
        server.client.delete("/documents/titled:1")


@pytest.mark.requirement("RAG-34")
@pytest.mark.parametrize("size", [1, 7, 13])
def test_pages_join_without_overlap_or_gap(tools: Mcp, size: int) -> None:
    whole = chunks_of(tools.call("rag.search_fts", query=QUERY, k=50))
    pages: list[str] = []
    while len(pages) < len(whole):
        answer = tools.call("rag.search_fts", query=QUERY, k=size, offset=len(pages))
        pages += chunks_of(answer)
        assert answer["results"]
    assert pages[: len(whole)] == whole
    assert (
        len(whole) == 50
        or chunks_of(tools.call("rag.search_fts", query=QUERY, offset=len(whole))) == []
    )


@pytest.mark.requirement("RAG-33")
@pytest.mark.parametrize("tool", SEARCHES)
def test_snippets_are_short(crowded: Mcp, tool: str) -> None:
    answer = crowded.call(tool, **asking(tool, "needle", **{"return": {"include_snippets": True}}))
    for hit in answer["results"]:
        assert 0 < len(hit["snippet"]) <= 300
    assert all("needle" in hit["snippet"] for hit in answer["results"])


@pytest.mark.requirement("RAG-38")
@settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    query=st.lists(
        st.one_of(
            st.sampled_from(
                [*"-\"()*:^{}+'\\", "AND", "NOT", "NEAR(", "title:", "body:", '""', " "]
            ),
            st.sampled_from(["amber", "garnet", "c++", "\x00", "%", "_", "é", "漢字", "🜁"]),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        ),
        max_size=12,
    ).map("".join)
)
def test_no_query_breaks_a_search(tools: Mcp, query: str) -> None:
    for tool in ("rag.search_fts", "rag.search_hybrid"):
        outcome = tools.outcome(tool, {"query": query, "k": 3})
        said = json.loads(outcome["content"][0]["text"])
        if outcome["isError"]:
            assert said["code"] == "INVALID_ARGUMENT", said
            assert not query.strip()
        else:
            assert len(said["results"]) <= 3


# ---- vector search ----


@pytest.mark.requirement("RAG-39", "RAG-40", "RAG-43")
@pytest.mark.parametrize("number", [0, 17, 44, 99])
def test_a_passage_is_nearest_to_itself(tools: Mcp, number: int) -> None:
    text = CORPUS[number].text
    by_text = tools.call("rag.search_vector", query_text=text, k=5)
    by_vector = tools.call("rag.search_vector", query_embedding=embedding(text), k=5)
    assert docs_of(by_text)[0] == CORPUS[number].doc_id
    assert by_text["results"][0]["score_vec"] > 0.999
    assert chunks_of(by_vector) == chunks_of(by_text)


@pytest.mark.requirement("RAG-07", "RAG-43")
def test_the_order_is_that_of_the_cosine(tools: Mcp) -> None:
    vectors = Hashed().embed([post.text for post in ENABLED])
    cosines = vectors @ Hashed().embed([QUERY])[0]
    exact = {post.doc_id: float(cosine) for post, cosine in zip(ENABLED, cosines, strict=True)}
    hits = tools.call("rag.search_vector", query_text=QUERY, k=50)["results"]
    for hit in hits:
        assert hit["score_vec"] == pytest.approx(exact[hit["doc_id"]], abs=0.02)
    missed = sorted(exact.values())[-50] - min(exact[hit["doc_id"]] for hit in hits)
    assert missed < 0.02, "up to the rounding of stored vectors, none that is nearer is left out"


@pytest.mark.requirement("RAG-42")
def test_a_given_vector_wins_over_a_text(tools: Mcp) -> None:
    text, other = CORPUS[5].text, CORPUS[6].text
    both = tools.call("rag.search_vector", query_text=other, query_embedding=embedding(text))
    alone = tools.call("rag.search_vector", query_embedding=embedding(text))
    assert both["results"] == alone["results"]
    assert docs_of(both)[0] == CORPUS[5].doc_id


GOOD = embedding("amber")
SHORT = base64.b64encode(base64.b64decode(GOOD["values_b64"])[:-1]).decode()


@pytest.mark.requirement("RAG-41", "RAG-30")
@pytest.mark.parametrize(
    "given_vector",
    [
        packed([0.5] * 63),
        packed([0.5] * 65),
        {**GOOD, "dim": 32},
        {**GOOD, "dim": 0},
        {**GOOD, "dim": -64},
        {**GOOD, "dim": "64"},
        {**GOOD, "values_b64": SHORT},
        {**GOOD, "values_b64": ""},
        {**GOOD, "values_b64": "not base64!"},
        {**GOOD, "values_b64": "A"},
        {**GOOD, "values_b64": [0.5] * 64},
        packed([float("nan")] + [0.5] * 63),
        packed([float("inf")] + [0.5] * 63),
        packed([0.0] * 64),
        {"dim": 64},
        {},
        [0.5] * 64,
    ],
)
def test_a_wrong_vector_is_refused(tools: Mcp, given_vector: Any) -> None:
    failure = tools.failure("rag.search_vector", query_embedding=given_vector)
    assert failure["code"] == "INVALID_ARGUMENT"
    assert failure["details"]["field"].startswith("query_embedding")


@pytest.mark.requirement("RAG-39", "RAG-46")
def test_the_model_may_be_named(tools: Mcp) -> None:
    plain = tools.call("rag.search_vector", query_text=QUERY)
    named = tools.call("rag.search_vector", query_text=QUERY, embedding={"model": "hashed"})
    assert named["results"] == plain["results"]
    failure = tools.failure("rag.search_vector", query_text=QUERY, embedding={"model": "gpt-9"})
    assert failure["code"] == "INVALID_ARGUMENT"
    assert failure["details"] == {"field": "embedding.model", "model": "hashed"}
    assert "gpt-9" in failure["message"]


# ---- hybrid ----


@pytest.mark.requirement("RAG-47", "RAG-49", "RAG-55")
def test_what_is_left_out_is_the_default(tools: Mcp) -> None:
    fuse = {"fts_k": 50, "vec_k": 50, "rrf_k0": 60, "w_fts": 1.0, "w_vec": 1.0}
    rerank = {"candidates_k": 200, "rerank_k": 50, "vec_metric": "cosine"}
    for query in (QUERY, EVERYWHERE, "quartz"):
        plain = tools.call("rag.search_hybrid", query=query, k=50)
        assert plain["stats"]["mode"] == "fuse"
        explicit = tools.call("rag.search_hybrid", query=query, k=50, mode="fuse", fuse=fuse)
        assert without_time(plain) == without_time(explicit)
        second = tools.call("rag.search_hybrid", query=query, k=50, mode="fts_then_vec")
        explicit = tools.call(
            "rag.search_hybrid", query=query, k=50, mode="fts_then_vec", fts_then_vec=rerank
        )
        assert without_time(second) == without_time(explicit)
    for name, other in (("fts_k", 3), ("vec_k", 3), ("rrf_k0", 1), ("w_fts", 0.2), ("w_vec", 0.2)):
        changed = tools.call("rag.search_hybrid", query=QUERY, k=50, fuse={**fuse, name: other})
        unchanged = tools.call("rag.search_hybrid", query=QUERY, k=50)
        assert changed["results"] != unchanged["results"], f"{name} matters"


@pytest.mark.requirement("RAG-55")
def test_defaults_of_reranking_matter(crowded: Mcp) -> None:
    def ranked(**options: Any) -> list[str]:
        answer = crowded.call(
            "rag.search_hybrid", query="needle", k=50, mode="fts_then_vec", fts_then_vec=options
        )
        return chunks_of(answer)

    assert ranked() == ranked(candidates_k=200, rerank_k=50)
    assert ranked() != ranked(candidates_k=150)
    assert ranked() != ranked(candidates_k=250)
    assert len(ranked(rerank_k=49)) == 49


@pytest.mark.requirement("RAG-51", "RAG-52", "RAG-08", "RAG-54")
@pytest.mark.parametrize(
    "options",
    [
        {"rrf_k0": 60},
        {"rrf_k0": 1, "w_fts": 0.7, "w_vec": 0.3},
        {"rrf_k0": 60, "fts_k": 5, "vec_k": 9},
        {"rrf_k0": 60, "w_vec": 0},
        {"rrf_k0": 0.5, "w_fts": 3.25},
    ],
)
def test_the_fused_score_can_be_computed_again(tools: Mcp, options: dict[str, float]) -> None:
    k0, w_fts, w_vec = (options.get(name, 1) for name in ("rrf_k0", "w_fts", "w_vec"))
    answer = tools.call("rag.search_hybrid", query=QUERY, k=50, fuse=options)
    lexical = chunks_of(tools.call("rag.search_fts", query=QUERY, k=options.get("fts_k", 50)))
    near = chunks_of(tools.call("rag.search_vector", query_text=QUERY, k=options.get("vec_k", 50)))
    found = chunks_of(answer)
    assert len(found) == len({*found})
    assert {*found} <= {*lexical} | {*near}
    assert len(found) == min(50, len({*lexical} | {*near}))
    for hit in answer["results"]:
        by_words, by_meaning = hit["debug"]["rank_fts"], hit["debug"]["rank_vec"]
        score = (w_fts / (k0 + by_words) if by_words else 0) + (
            w_vec / (k0 + by_meaning) if by_meaning else 0
        )
        assert hit["score"] == pytest.approx(score, abs=1e-9)
        chunk_id = hit["chunk_id"]
        assert by_words == (lexical.index(chunk_id) + 1 if chunk_id in lexical else None)
        assert by_meaning == (near.index(chunk_id) + 1 if chunk_id in near else None)


@pytest.mark.requirement("RAG-50")
def test_weights_are_not_rounded(tools: Mcp) -> None:
    found = [
        tools.call("rag.search_hybrid", query=QUERY, k=50, fuse={"w_vec": weight})["results"]
        for weight in (0, 0.3, 0.7, 1)
    ]
    orders = [[hit["score"] for hit in hits] for hits in found]
    assert all(a != b for a, b in pairwise(orders))
    assert len({tuple(hit["chunk_id"] for hit in hits) for hits in found}) > 2


@pytest.mark.requirement("RAG-53")
@pytest.mark.parametrize("mode", MODES)
def test_ties_never_change_places(tools: Mcp, crowded: Mcp, mode: str) -> None:
    """In the crowd all passages match a word equally well."""
    for where, query in ((tools, EVERYWHERE), (crowded, "needle")):
        answers = [
            chunks_of(where.call("rag.search_hybrid", query=query, k=50, mode=mode))
            for _ in range(20)
        ]
        assert len(answers[0]) == 50
        assert all(answer == answers[0] for answer in answers)


@pytest.mark.requirement("RAG-53")
def test_the_top_is_the_top(tools: Mcp) -> None:
    whole = chunks_of(tools.call("rag.search_hybrid", query=QUERY, k=50))
    for k in (1, 3, 20):
        assert chunks_of(tools.call("rag.search_hybrid", query=QUERY, k=k)) == whole[:k]


@pytest.mark.requirement("RAG-56", "RAG-58")
@pytest.mark.parametrize("candidates", [1, 5, 20, 50])
def test_reranking_keeps_to_the_candidates(tools: Mcp, candidates: int) -> None:
    lexical = chunks_of(tools.call("rag.search_fts", query=QUERY, k=candidates))
    options = {"candidates_k": candidates, "rerank_k": 50}
    answer = tools.call(
        "rag.search_hybrid", query=QUERY, k=50, mode="fts_then_vec", fts_then_vec=options
    )
    assert sorted(chunks_of(answer)) == sorted(lexical)
    near = [hit["score_vec"] for hit in answer["results"]]
    assert near == sorted(near, reverse=True), "in the order of their vectors"
    three = tools.call(
        "rag.search_hybrid", query=QUERY, k=3, mode="fts_then_vec", fts_then_vec=options
    )
    assert chunks_of(three) == chunks_of(answer)[:3]


# ---- an embedder elsewhere ----


@pytest.fixture(scope="module")
def elsewhere(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Mcp, EmbeddingServer]]:
    with (
        embedding_server() as stub,
        Server(tmp_path_factory.mktemp("remote") / "data", environment=stub.environment) as running,
    ):
        for post in CORPUS[:20]:
            running.create(post.doc_id, post.body, title=post.title)
        wait_until_indexed(running)
        yield rag(running), stub


@pytest.mark.requirement("RAG-57")
@pytest.mark.parametrize("mode", MODES)
def test_only_the_query_is_embedded(elsewhere: tuple[Mcp, EmbeddingServer], mode: str) -> None:
    tools, stub = elsewhere
    query = f"{EVERYWHERE} {mode}"
    before = len(stub.texts)
    answer = tools.call("rag.search_hybrid", query=query, mode=mode, k=20)
    assert len(answer["results"]) == 20
    assert all(hit["score_vec"] is not None for hit in answer["results"])
    assert stub.texts[before:] == [query]


@pytest.mark.requirement("RAG-14", "X-22")
def test_a_slow_embedder(elsewhere: tuple[Mcp, EmbeddingServer]) -> None:
    """Hybrid goes on with keywords and says so; vector search has nothing to go on with."""
    tools, stub = elsewhere
    stub.flowing.clear()
    try:
        started_s = time.monotonic()
        answer = tools.call("rag.search_hybrid", query=f"{EVERYWHERE} slow one")
        assert len(answer["results"]) == 10
        assert all(hit["score_vec"] is None for hit in answer["results"])
        assert "keywords only" in answer["note"]
        assert 250 <= answer["stats"]["ms"] <= 2_000
        failure = tools.failure("rag.search_vector", query_text=f"{EVERYWHERE} slow two")
        assert failure["code"] in ("EMBEDDING_FAILED", "DEADLINE_EXCEEDED")
        assert time.monotonic() - started_s < 5, "both were answered, not left hanging"
    finally:
        stub.flowing.set()


# ---- in this process ----


def _opened(data: Path) -> Any:
    chosen = configuration.load({"data": str(data), "embedder": "hashed"}, environment={})
    return build_runtime(chosen)


@pytest.mark.requirement("RAG-88")
@pytest.mark.parametrize("tool", SEARCHES)
def test_hits_are_joined_in_one_statement(data: Path, tool: str) -> None:
    trace = Trace()
    apsw.connection_hooks.append(trace.attach)
    runtime = _opened(data)
    try:
        caller = Caller(runtime)
        for post in CORPUS[:40]:
            caller("upload_document", path=post.doc_id, content=post.body)
        assert asyncio.run(runtime.index.drain()).passages == 40
        caller(tool, **asking(tool, k=1))  # reads the vectors into memory
        counts = []
        for k in (2, 30):
            trace.clear()
            assert len(caller(tool, **asking(tool, k=k))["results"]) == k
            counts.append(len(trace.selects))
            joins = [one for one in trace.selects if "JSON_EACH(:CHUNK_KEYS)" in one]
            assert len(joins) == 1
        assert counts[0] == counts[1], "no more statements for more hits"
    finally:
        runtime.store.close()
        apsw.connection_hooks.remove(trace.attach)


class Broken:
    name = identity = "broken"
    dimensions = 64

    def embed(self, texts: Any) -> Vectors:
        raise ZeroDivisionError(texts)

    def vector_weight(self, text: str) -> float:
        del text
        return 1.0


@pytest.mark.requirement("RAG-84")
def test_a_fault_of_ours_is_called_internal(data: Path) -> None:
    runtime = _opened(data)
    try:
        broken = dataclasses.replace(runtime, query_vectors=QueryVectors(Broken()))
        caller = Caller(broken)
        assert caller.refused("rag.search_hybrid", query="a") == "INTERNAL"
        assert caller.refused("rag.search_vector", query_text="a") == "INTERNAL"
    finally:
        runtime.store.close()


# ---- what is counted ----


@pytest.mark.requirement("RAG-86", "RAG-87")
def test_calls_are_counted_and_timed(server: Server, tools: Mcp) -> None:
    calls: dict[str, dict[str, Any]] = {
        **{tool: asking(tool, QUERY) for tool in SEARCHES},
        "rag.get_chunks": {"chunk_ids": ["posts:001#0"]},
        "rag.get_docs": {"doc_ids": ["posts:001"]},
        "rag.admin.stats": {},
    }
    for tool, arguments in calls.items():
        before = metric(server, "commonplace_tool_calls_total", tool=tool, outcome="ok")
        all_before = metric(server, "commonplace_tool_calls_total", tool=tool)
        for _ in range(3):
            tools.call(tool, **arguments)
        tools.failure(tool, unknown=1)
        assert metric(server, "commonplace_tool_calls_total", tool=tool, outcome="ok") == before + 3
        counted = metric(server, "commonplace_tool_calls_total", tool=tool)
        assert counted == all_before + 4
        assert metric(server, "commonplace_tool_seconds_count", tool=tool) == counted
        assert metric(server, "commonplace_tool_seconds_bucket", tool=tool, le="+Inf") == counted
        assert metric(server, "commonplace_tool_seconds_sum", tool=tool) > 0
