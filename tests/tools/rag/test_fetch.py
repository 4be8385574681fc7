"""rag.get_chunks, rag.get_docs, rag.admin.* and rag.fetch_from_source through MCP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.engines import backend_of
from tests.drivers.mcp import Mcp
from tests.drivers.rag import CORPUS, EVERYWHERE, SEARCHES, SOURCES, asking, posts_server, rag
from tests.drivers.server import Server
from zibaldone.limits import ID_CHARS_MAX

CHUNK_KEYS = {"chunk_id", "doc_id", "title", "body", "doc_metadata", "chunk_metadata"}
DOC_KEYS = {"doc_id", "source_id", "source_name", "pk_json", "title", "body", "metadata"}
CHUNK_BYTES_MAX = 2_000_000
ANSWER_BYTES_MAX = 5_000_000
_ENVELOPE_BYTES = 1_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with posts_server(tmp_path_factory.mktemp("fetch") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    """Documents that together are more than an answer may hold."""
    environment = {"ZIBALDONE_EMBEDDER": "none"}
    with Server(tmp_path_factory.mktemp("big") / "data", environment=environment) as running:
        for number in range(4):
            line = f"{'x' * 1199}\n"
            running.create(f"big:{number}", line * 1_500, title=f"Big {number}")
        sections = (f"# Part {n}\n\n{f'word{n} ' * 180}" for n in range(60))
        heavy = {"note": "m" * 60_000}
        running.create("heavy:1", "\n\n".join(sections), metadata=heavy)
        yield rag(running)


def size_bytes(tools: Mcp, tool: str, arguments: dict[str, Any]) -> int:
    outcome = tools.outcome(tool, arguments)
    assert outcome["isError"] is False
    return len(outcome["content"][0]["text"].encode())


# ---- passages ----


@pytest.mark.requirement("RAG-02", "RAG-63")
def test_a_passage_by_id(tools: Mcp) -> None:
    for post in CORPUS[:10]:
        answer = tools.call("rag.get_chunks", chunk_ids=[f"{post.doc_id}#0"])
        (chunk,) = answer["chunks"]
        assert {*chunk} == CHUNK_KEYS
        assert chunk["chunk_id"] == f"{post.doc_id}#0"
        assert (chunk["doc_id"], chunk["title"]) == (post.doc_id, post.title)
        assert chunk["body"] == post.body
        assert chunk["doc_metadata"] == post.metadata
        assert chunk["chunk_metadata"]["chunk_index"] == 0
        assert answer["missing"] == []
        assert answer["truncated"] is False


@pytest.mark.requirement("RAG-62", "RAG-63")
@pytest.mark.parametrize(
    ("flag", "key"),
    [
        ("include_title", "title"),
        ("include_doc_metadata", "doc_metadata"),
        ("include_chunk_metadata", "chunk_metadata"),
    ],
)
def test_parts_of_a_passage_can_be_left_out(tools: Mcp, flag: str, key: str) -> None:
    answer = tools.call("rag.get_chunks", chunk_ids=["posts:001#0"], **{"return": {flag: False}})
    assert {*answer["chunks"][0]} == CHUNK_KEYS - {key}


@pytest.mark.requirement("RAG-64")
def test_passages_come_in_the_order_asked_for(tools: Mcp) -> None:
    wanted = ["posts:090#0", "posts:002#0", "none:1#0", "posts:050#0", "posts:002#7", "posts:001#0"]
    unknown = ["none:1#0", "posts:002#7"]
    answer = tools.call("rag.get_chunks", chunk_ids=wanted)
    assert [chunk["chunk_id"] for chunk in answer["chunks"]] == [
        name for name in wanted if name not in unknown
    ]
    assert answer["missing"] == unknown
    assert answer["truncated"] is False


@pytest.mark.requirement("RAG-64")
def test_a_passage_asked_for_twice_comes_once(tools: Mcp) -> None:
    answer = tools.call("rag.get_chunks", chunk_ids=["posts:001#0", "posts:001#0"])
    assert [chunk["chunk_id"] for chunk in answer["chunks"]] == ["posts:001#0"]


@pytest.mark.requirement("RAG-02")
@pytest.mark.parametrize("tool", SEARCHES)
def test_what_a_search_found_can_be_fetched(tools: Mcp, tool: str) -> None:
    found = tools.call(tool, **asking(tool, "amber onyx"))["results"]
    wanted = [hit["chunk_id"] for hit in found]
    chunks = tools.call("rag.get_chunks", chunk_ids=wanted)["chunks"]
    assert [chunk["chunk_id"] for chunk in chunks] == wanted
    bodies = {post.doc_id: post.body for post in CORPUS}
    assert [chunk["body"] for chunk in chunks] == [bodies[hit["doc_id"]] for hit in found]


@pytest.mark.requirement("RAG-63", "RAG-04")
def test_passages_say_where_they_stand(big: Mcp) -> None:
    (document,) = big.call("rag.get_docs", doc_ids=["heavy:1"])["docs"]
    wanted = [f"heavy:1#{n}" for n in range(10)]
    chunks = big.call("rag.get_chunks", chunk_ids=wanted)["chunks"]
    assert [chunk["chunk_metadata"]["chunk_index"] for chunk in chunks] == [*range(10)]
    for chunk in chunks:
        start = chunk["chunk_metadata"]["start"]
        assert document["body"][start : start + len(chunk["body"])] == chunk["body"]


@pytest.mark.requirement("RAG-65", "RAG-15", "X-22")
def test_passages_beyond_the_cap_are_left_out(big: Mcp) -> None:
    wanted = [f"heavy:1#{n}" for n in range(55)]
    answer = big.call("rag.get_chunks", chunk_ids=wanted)
    kept = [chunk["chunk_id"] for chunk in answer["chunks"]]
    assert answer["truncated"] is True
    assert answer["missing"] == []
    assert 1 < len(kept) < len(wanted)
    assert kept == wanted[: len(kept)]
    size = size_bytes(big, "rag.get_chunks", {"chunk_ids": wanted})
    assert CHUNK_BYTES_MAX - 70_000 < size <= CHUNK_BYTES_MAX + _ENVELOPE_BYTES
    rest = big.call("rag.get_chunks", chunk_ids=wanted[len(kept) :])
    assert rest["chunks"][0]["chunk_id"] == wanted[len(kept)], "a caller can go on from there"
    lean = {"include_doc_metadata": False}
    answer = big.call("rag.get_chunks", chunk_ids=wanted, **{"return": lean})
    assert answer["truncated"] is False
    assert len(answer["chunks"]) == len(wanted)


# ---- documents ----


@pytest.mark.requirement("RAG-67", "RAG-68", "RAG-05")
def test_a_document_by_id(tools: Mcp) -> None:
    wanted = [CORPUS[number] for number in (70, 3, 45, 99)]
    answer = tools.call("rag.get_docs", doc_ids=[post.doc_id for post in wanted])
    assert [doc["doc_id"] for doc in answer["docs"]] == [post.doc_id for post in wanted]
    for post, doc in zip(wanted, answer["docs"], strict=True):
        assert {*doc} == DOC_KEYS
        assert (doc["source_id"], doc["source_name"]) == (SOURCES[post.source], post.source)
        assert doc["title"] == post.title
        assert doc["body"] == post.body
        assert doc["metadata"] == post.metadata
        assert type(doc["pk_json"]) is dict
        if post.source == "stack_posts":
            assert doc["pk_json"] == {"Id": post.number}
    assert answer["missing"] == []
    assert answer["truncated"] is False


@pytest.mark.requirement("RAG-66", "RAG-67")
@pytest.mark.parametrize(
    ("flag", "key"), [("include_body", "body"), ("include_metadata", "metadata")]
)
def test_parts_of_a_document_can_be_left_out(tools: Mcp, flag: str, key: str) -> None:
    answer = tools.call("rag.get_docs", doc_ids=["posts:001"], **{"return": {flag: False}})
    assert {*answer["docs"][0]} == DOC_KEYS - {key}


@pytest.mark.requirement("RAG-69", "7.1.j")
def test_a_deleted_document_is_not_live(server: Server, tools: Mcp) -> None:
    path = "gone:1"
    server.create(path, "vanishingword and more")
    assert [doc["doc_id"] for doc in tools.call("rag.get_docs", doc_ids=[path])["docs"]] == [path]
    assert server.client.delete(f"/documents/{path}").status_code == 200
    answer = tools.call("rag.get_docs", doc_ids=[path, "posts:001"])
    assert [doc["doc_id"] for doc in answer["docs"]] == ["posts:001"]
    assert answer["missing"] == [path]
    answer = tools.call("rag.get_chunks", chunk_ids=[f"{path}#0"])
    assert (answer["chunks"], answer["missing"]) == ([], [f"{path}#0"])
    for tool in SEARCHES:
        found = tools.call(tool, **asking(tool, "vanishingword", k=50))["results"]
        assert path not in {hit["doc_id"] for hit in found}
    tables = backend_of(server.data)
    left = tables.query(
        "SELECT 1 FROM chunks JOIN documents USING (document_key) WHERE document_id = ?", (path,)
    )
    orphans = tables.query(
        "SELECT 1 FROM vectors WHERE chunk_key NOT IN (SELECT chunk_key FROM chunks)"
    )
    assert (left, orphans) == ([], []), "neither passages nor their vectors stay"


@pytest.mark.requirement("RAG-13", "RAG-15")
def test_documents_beyond_the_cap_are_left_out(big: Mcp) -> None:
    wanted = [f"big:{number}" for number in range(4)]
    answer = big.call("rag.get_docs", doc_ids=wanted)
    assert [doc["doc_id"] for doc in answer["docs"]] == wanted[:2]
    assert answer["truncated"] is True
    assert answer["missing"] == []
    size = size_bytes(big, "rag.get_docs", {"doc_ids": wanted})
    assert 3_000_000 < size <= ANSWER_BYTES_MAX
    answer = big.call("rag.get_docs", doc_ids=wanted[:2])
    assert answer["truncated"] is False
    answer = big.call("rag.get_docs", doc_ids=wanted, **{"return": {"include_body": False}})
    assert [doc["doc_id"] for doc in answer["docs"]] == wanted
    assert answer["truncated"] is False


@pytest.mark.requirement("RAG-13", "RAG-15")
@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f701", "\x01"])
def test_names_count_as_well(big: Mcp, letter: str) -> None:
    """As many documents as fit, and as long names as may be: those of other documents too."""
    unknown = [f"{number:03}{letter * (ID_CHARS_MAX - 3)}" for number in range(196)]
    for wanted in (
        [*unknown, *(f"big:{number}" for number in range(4))],
        [*(f"big:{number}" for number in range(4)), *unknown],
    ):
        answer = big.call("rag.get_docs", doc_ids=wanted)
        named = [
            *answer["missing"],
            *answer["left_out"],
            *(doc["doc_id"] for doc in answer["docs"]),
        ]
        assert sorted(named) == sorted(wanted)
        assert answer["docs"]
        assert answer["truncated"] is True
        assert size_bytes(big, "rag.get_docs", {"doc_ids": wanted}) <= ANSWER_BYTES_MAX


@pytest.mark.requirement("RAG-13")
def test_names_of_passages_count_as_well(big: Mcp) -> None:
    unknown = [f"{number:03}{chr(1) * (ID_CHARS_MAX - 3)}#0" for number in range(145)]
    wanted = [*unknown, *(f"heavy:1#{n}" for n in range(55))]
    answer = big.call("rag.get_chunks", chunk_ids=wanted)
    assert answer["missing"] == unknown
    kept = [chunk["chunk_id"] for chunk in answer["chunks"]]
    assert [*kept, *answer["left_out"]] == wanted[len(unknown) :]
    assert kept
    assert size_bytes(big, "rag.get_chunks", {"chunk_ids": wanted}) <= ANSWER_BYTES_MAX


# ---- wrong input ----


LONG = "y" * 3_000_000


@pytest.mark.requirement("RAG-13", "RAG-84")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rag.get_docs", {"doc_ids": [LONG]}),
        ("rag.get_docs", {"doc_ids": ["posts:001"], LONG: 1}),
        ("rag.get_docs", {"doc_ids": ["posts:001"], "return": {LONG: True}}),
        (
            "rag.get_docs",
            {"doc_ids": ["posts:001"], **{f"{n}{LONG[:99_999]}": n for n in range(9)}},
        ),
        ("rag.get_chunks", {"chunk_ids": [f"{LONG}#0"]}),
        ("rag.get_chunks", {"chunk_ids": [LONG]}),
        ("rag.fetch_from_source", {"doc_ids": [LONG]}),
        ("rag.fetch_from_source", {"doc_ids": ["a"], "columns": [LONG]}),
        ("rag.admin.sync", {"source_names": [LONG]}),
        *((tool, asking(tool, filters={"doc_ids": [LONG]})) for tool in SEARCHES),
        *((tool, asking(tool, filters={"tags_any": [LONG]})) for tool in SEARCHES),
        *((tool, asking(tool, filters={LONG: 1})) for tool in SEARCHES),
        *((tool, {**asking(tool), LONG: 1}) for tool in SEARCHES),
    ],
)
def test_long_names_are_not_sent_back(tools: Mcp, tool: str, arguments: dict[str, Any]) -> None:
    failure = tools.failure(tool, **arguments)
    assert failure["code"] == "INVALID_ARGUMENT"
    assert len(str(failure)) < 10_000


@pytest.mark.requirement("RAG-13")
def test_long_names_are_not_sent_back_over_rest(server: Server) -> None:
    for path, body in (
        ("/rag/get_docs", {"doc_ids": [LONG]}),
        ("/rag/search_fts", {"query": "amber", LONG: 1}),
        ("/documents", {"path": "a", "content": "b", LONG: 1}),
    ):
        answer = server.client.post(path, json=body)
        assert answer.status_code == 422
        assert answer.json()["code"] == "INVALID_ARGUMENT"
        assert len(answer.content) < 10_000


@pytest.mark.requirement("RAG-30", "RAG-84")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rag.get_chunks", {}),
        ("rag.get_chunks", {"chunk_ids": []}),
        ("rag.get_chunks", {"chunk_ids": "posts:001#0"}),
        ("rag.get_chunks", {"chunk_ids": [1]}),
        ("rag.get_chunks", {"chunk_ids": ["posts:001"]}),
        ("rag.get_chunks", {"chunk_ids": ["posts:001#x"]}),
        ("rag.get_chunks", {"chunk_ids": ["posts:001#-1"]}),
        ("rag.get_chunks", {"chunk_ids": ["posts:001#²"]}),
        ("rag.get_chunks", {"chunk_ids": ["posts:001#99999999999999999999"]}),
        ("rag.get_chunks", {"chunk_ids": ["a#0"] * 201}),
        ("rag.get_chunks", {"chunk_ids": ["a#0"], "return": {"include_title": 1}}),
        ("rag.get_chunks", {"chunk_ids": ["a#0"], "return": {"include_body": True}}),
        ("rag.get_docs", {}),
        ("rag.get_docs", {"doc_ids": []}),
        ("rag.get_docs", {"doc_ids": [None]}),
        ("rag.get_docs", {"doc_ids": {"id": "a"}}),
        ("rag.get_docs", {"doc_ids": ["a"] * 201}),
        ("rag.get_docs", {"doc_ids": ["a"], "return": {"include_body": "no"}}),
        ("rag.get_docs", {"doc_ids": ["a"], "more": 1}),
        ("rag.admin.stats", {"more": 1}),
        ("rag.admin.sync", {"source_names": "kb"}),
        ("rag.fetch_from_source", {}),
        ("rag.fetch_from_source", {"doc_ids": ["a"], "limits": {"max_rows": 0}}),
        ("rag.fetch_from_source", {"doc_ids": ["a"], "limits": {"max_bytes": -1}}),
        ("rag.fetch_from_source", {"doc_ids": ["a"], "sql": "SELECT 1"}),
    ],
)
def test_wrong_arguments_are_refused(tools: Mcp, tool: str, arguments: dict[str, Any]) -> None:
    failure = tools.failure(tool, **arguments)
    assert failure["code"] == "INVALID_ARGUMENT"
    assert {*failure} == {"code", "status", "message", "details"}


# ---- sources ----


@pytest.mark.requirement("RAG-78", "RAG-05")
def test_the_counts_are_those_of_the_store(server: Server, tools: Mcp) -> None:
    answer = tools.call("rag.admin.stats")
    rows = backend_of(server.data).query(
        "SELECT source_id, count(DISTINCT document_key), count(chunk_key)"
        " FROM documents LEFT JOIN chunks USING (document_key)"
        " WHERE documents.namespace = 'default' AND deleted_at_us IS NULL GROUP BY source_id"
    )
    counted = {source_id: (documents, chunks) for source_id, documents, chunks in rows}
    assert {*counted} == {*SOURCES.values()}
    assert sum(docs for docs, _ in counted.values()) == len(CORPUS)
    found = {one["source_id"]: (one["docs"], one["chunks"]) for one in answer["sources"]}
    assert found == counted
    for one in answer["sources"]:
        assert {*one} == {"source_id", "source_name", "enabled", "docs", "chunks", "last_sync"}
        assert SOURCES[one["source_name"]] == one["source_id"]
        assert one["last_sync"] is None
        assert one["enabled"] is (one["source_name"] != "docs_disabled")


@pytest.mark.requirement("RAG-84", "X-25")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rag.fetch_from_source", {"doc_ids": ["posts:041"], "columns": ["Id", "Title"]}),
        ("rag.admin.sync", {}),
        ("rag.admin.sync", {"source_names": ["stack_posts"]}),
    ],
)
def test_what_needs_a_database_says_that_none_is_set_up(
    tools: Mcp, tool: str, arguments: dict[str, Any]
) -> None:
    failure = tools.failure(tool, **arguments)
    assert (failure["code"], failure["status"]) == ("NOT_CONFIGURED", 501)


@pytest.mark.requirement("RAG-15", "RAG-85")
def test_every_answer_says_how_long_it_took_and_whether_it_was_cut(tools: Mcp) -> None:
    calls: dict[str, dict[str, Any]] = {
        **{tool: asking(tool, EVERYWHERE) for tool in SEARCHES},
        "rag.get_chunks": {"chunk_ids": ["posts:001#0"]},
        "rag.get_docs": {"doc_ids": ["posts:001"]},
        "rag.admin.stats": {},
    }
    unanswered = {"rag.fetch_from_source", "rag.admin.sync"}
    assert {*calls} | unanswered == {tool["name"] for tool in tools.tools()}
    for tool, arguments in calls.items():
        answer = tools.call(tool, **arguments)
        assert answer["truncated"] is False, tool
        assert type(answer["stats"]["ms"]) in (int, float), tool
        assert answer["stats"]["ms"] > 0, tool
