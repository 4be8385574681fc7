"""What the three rag searches have in common, and keyword search."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drivers.golden import GOLDEN
from tests.drivers.mcp import Mcp
from tests.drivers.rag import (
    CORPUS,
    IDS,
    SEARCHES,
    SOURCES,
    asking,
    chunks_of,
    docs_of,
    holding,
    metric,
    posts_server,
    rag,
    without_time,
)
from tests.drivers.server import Server

RECORDED_SCHEMAS = GOLDEN / "rag_schemas.json"
QUERY = "amber garnet willow"
SCORES = {
    "rag.search_fts": {"score_fts", "score_fts_raw"},
    "rag.search_vector": {"score_vec", "distance_raw"},
    "rag.search_hybrid": {"score", "score_fts", "score_vec", "debug"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with posts_server(tmp_path_factory.mktemp("search") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


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


@pytest.mark.requirement("RAG-86", "RAG-87")
def test_calls_are_counted_and_timed(server: Server, tools: Mcp) -> None:
    calls: dict[str, dict[str, Any]] = {
        **{tool: asking(tool, QUERY) for tool in SEARCHES},
        "rag.get_chunks": {"chunk_ids": ["posts:001#0"]},
        "rag.get_docs": {"doc_ids": ["posts:001"]},
        "rag.admin.stats": {},
    }
    for tool, arguments in calls.items():
        before = metric(server, "zibaldone_tool_calls_total", tool=tool, outcome="ok")
        all_before = metric(server, "zibaldone_tool_calls_total", tool=tool)
        for _ in range(3):
            tools.call(tool, **arguments)
        tools.failure(tool, unknown=1)
        assert metric(server, "zibaldone_tool_calls_total", tool=tool, outcome="ok") == before + 3
        counted = metric(server, "zibaldone_tool_calls_total", tool=tool)
        assert counted == all_before + 4
        assert metric(server, "zibaldone_tool_seconds_count", tool=tool) == counted
        assert metric(server, "zibaldone_tool_seconds_bucket", tool=tool, le="+Inf") == counted
        assert metric(server, "zibaldone_tool_seconds_sum", tool=tool) > 0
