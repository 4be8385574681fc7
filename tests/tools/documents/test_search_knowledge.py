"""search_knowledge through MCP: whole documents, found by words and by meaning."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED, embedding_server, rag, wait_until_indexed
from tests.drivers.server import Server

ANSWER_BYTES = 6_000
FINDABLE_SECONDS_MAX = 15

LANGUAGES: dict[str, tuple[str, str]] = {
    "code/cpp.md": ("Templates in c++ are expanded by the compiler.", "c++"),
    "code/c.md": ("Pointers in plain C need care.", "pointers"),
    "code/hyphen.md": ("Set the option foo-bar to false.", "foo-bar"),
    "threats/apt.md": ("The group APT-28 was seen again.", "apt-28"),
    "code/sql.md": ("Use json_extract(body, '$.a') in a query.", "json_extract"),
    "code/camel.md": ("Call parseHttpRequest before anything else.", "parseHttpRequest"),
    "de/kuendigung.md": ("Die Kündigungsfrist beträgt drei Monate.", "kündigungsfrist"),
    "de/strasse.md": ("Die Straße ist wegen Bauarbeiten gesperrt.", "strasse"),
    "vi/quy-trinh.md": ("Quy trình vận hành máy chủ sản xuất.", "vận hành máy chủ"),
    "zh/bushu.md": ("数据库部署流程需要先备份再升级。", "部署流程"),
}
RULES = "governance/operating-rules.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("knowledge") / "data", environment=HASHED) as running:
        running.create(
            RULES,
            "# Operating rules\n\nThis file is the SSOT of how we operate: one source of truth.",
            title="Operating rules (SSOT)",
        )
        for path, (body, _) in LANGUAGES.items():
            running.create(path, body)
        for number in range(60):
            running.create(
                f"shelf/{'ab'[number % 2]}/{number:02}",
                f"A volume on astronomy, number{number}. " + "Stars and planets move. " * 10,
                tags=[("red", "green", "blue")[number % 3], *(["rare"] if number < 10 else [])],
            )
        running.create("long/guide.md", _guide(), title="Guide")
        wait_until_indexed(running)
        yield running


def _guide() -> str:
    """Several passages, each of which holds the word."""
    return "\n\n".join(
        f"## Chapter {n}\n\nThe sextant helps here, in way {n}. " + f"Plain text {n} follows. " * 40
        for n in range(8)
    )


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return Mcp(server.client)


def found(tools: Mcp, query: str, **more: Any) -> list[str]:
    answer = tools.call("search_knowledge", query=query, **more)
    return [hit["document_id"] for hit in answer["results"]]


def first_by_words(server: Server, query: str) -> str:
    """Without vectors, which are noise here: hashed ones know no meaning."""
    name: str = rag(server).call("rag.search_fts", query=query)["results"][0]["doc_id"]
    return name


# ---- the answer ----


@pytest.mark.requirement("7.1.a")
def test_the_operating_rules_are_found(tools: Mcp) -> None:
    for _ in range(50):
        assert found(tools, "operating rules SSOT")[0] == RULES


@pytest.mark.parametrize("path", ["/mcp", "/mcp-readonly", "/mcp-gpt", "/mcp-gpt-full"])
def test_every_profile_searches_alike(server: Server, tools: Mcp, path: str) -> None:
    given = {"query": "operating rules"}
    assert Mcp(server.client, path).call("search_knowledge", **given) == tools.call(
        "search_knowledge", **given
    )


def test_the_shape_of_an_answer(tools: Mcp) -> None:
    answer = tools.call("search_knowledge", query="sextant")
    assert {*answer} == {"results", "count", "truncated", "read_on"}
    assert answer["count"] == len(answer["results"])
    for hit in answer["results"]:
        assert {*hit} == {*("document_id", "title", "score", "relevance", "updated_at", "passages")}
        assert 1 <= len(hit["passages"]) <= 2
        for passage in hit["passages"]:
            assert {"snippet", "start"} <= {*passage} <= {"snippet", "start", "heading", "matches"}
    scores = [hit["score"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)


def test_a_document_is_one_hit_with_its_best_passages(tools: Mcp) -> None:
    answer = tools.call("search_knowledge", query="sextant chapter", limit=50)
    names = [hit["document_id"] for hit in answer["results"]]
    assert names[0] == "long/guide.md"
    assert len(names) == len({*names})
    passages = answer["results"][0]["passages"]
    assert len(passages) == 2
    assert len({passage["start"] for passage in passages}) == 2
    assert all(passage["heading"].startswith("Chapter") for passage in passages)


@pytest.mark.parametrize("query", ["sextant", "astronomy", "vận hành", "部署流程", "operating"])
def test_snippets_stand_where_they_say(server: Server, tools: Mcp, query: str) -> None:
    hits = tools.call("search_knowledge", query=query)["results"]
    assert hits
    marked = 0
    for hit in hits:
        document = tools.call("get_document_for_rewrite", path=hit["document_id"])
        body = document["content"]
        for passage in hit["passages"]:
            snippet, start = passage["snippet"], passage["start"]
            assert 0 < len(snippet) <= 300
            assert body[start : start + len(snippet)] == snippet
            for begin, end in passage.get("matches", []):
                assert 0 <= begin < end <= len(snippet)
                marked += 1
    assert marked > 0, "some words of the query are marked"


def test_marks_cover_the_words_of_the_query(tools: Mcp) -> None:
    (passage, *_) = tools.call("search_knowledge", query="sextant")["results"][0]["passages"]
    words = [passage["snippet"][begin:end].lower() for begin, end in passage["matches"]]
    assert words
    assert {*words} == {"sextant"}


# ---- bounds ----


@pytest.mark.parametrize("limit", [1, 3, 10, 25, 50])
def test_no_more_hits_than_asked_for(tools: Mcp, limit: int) -> None:
    answer = tools.call("search_knowledge", query="astronomy", limit=limit)
    assert len(answer["results"]) <= limit
    assert answer["truncated"] is (len(answer["results"]) < limit)


def test_a_default_answer_is_short(tools: Mcp) -> None:
    for query in ("astronomy stars planets", "sextant", "number7 volume"):
        outcome = tools.outcome("search_knowledge", {"query": query})
        assert len(outcome["content"][0]["text"].encode()) <= ANSWER_BYTES + 200


def test_a_cut_answer_says_so(server: Server, tools: Mcp) -> None:
    """Ten hits whose snippets are long in bytes do not fit."""
    for number in range(10):
        server.create(f"wide/{number}", "海洋气象" * 300)
    answer = tools.call("search_knowledge", query="海洋气象", prefix="wide/")
    assert len(json.dumps(answer, ensure_ascii=False).encode()) <= ANSWER_BYTES * 1.1
    assert answer["truncated"] is (len(answer["results"]) < 10)
    answer = tools.call("search_knowledge", query="海洋气象", prefix="wide/", limit=2)
    assert len(answer["results"]) == 2
    assert answer["truncated"] is False


@pytest.mark.parametrize("limit", [0, -1, 51, "ten", 1.5, None])
def test_a_wrong_limit_is_refused(tools: Mcp, limit: Any) -> None:
    failure = tools.failure("search_knowledge", query="a", limit=limit)
    assert failure["code"] == "INVALID_ARGUMENT"


@pytest.mark.requirement("RAG-12")
def test_a_query_is_bounded(tools: Mcp) -> None:
    tools.call("search_knowledge", query="é" * 4096)
    failure = tools.failure("search_knowledge", query="é" * 4096 + "a")
    assert failure["code"] == "LIMIT_EXCEEDED"
    for empty in ("", " \n"):
        assert tools.failure("search_knowledge", query=empty)["code"] == "INVALID_ARGUMENT"


# ---- filters ----


def test_only_under_a_prefix(tools: Mcp) -> None:
    names = found(tools, "astronomy", prefix="shelf/a/", limit=50)
    assert names
    assert all(name.startswith("shelf/a/") for name in names)
    assert found(tools, "astronomy", prefix="shelf/b/01") == ["shelf/b/01"]
    assert found(tools, "astronomy", prefix="none/") == []


def test_only_with_all_tags(tools: Mcp) -> None:
    names = found(tools, "astronomy", tags=["red", "rare"], limit=50)
    assert sorted(names) == ["shelf/a/00", "shelf/a/06", "shelf/b/03", "shelf/b/09"]
    assert found(tools, "astronomy", tags=["red", "green"]) == []
    assert found(tools, "astronomy", tags=["red", "rare"], prefix="shelf/a/", limit=50) == sorted(
        ["shelf/a/00", "shelf/a/06"], key=names.index
    )


def test_blank_tags_are_not_taken_for_no_tags(tools: Mcp) -> None:
    assert tools.failure("search_knowledge", query="astronomy", tags=[" "])["code"] == (
        "INVALID_ARGUMENT"
    )


# ---- words ----


@pytest.mark.requirement("RAG-38")
@pytest.mark.parametrize("path", LANGUAGES)
def test_a_term_is_found_as_it_is_written(server: Server, tools: Mcp, path: str) -> None:
    term = LANGUAGES[path][1]
    assert path in found(tools, term)
    assert first_by_words(server, term) == path


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("KUNDIGUNGSFRIST", "de/kuendigung.md"),
        ("Straße", "de/strasse.md"),
        ("van hanh may chu", "vi/quy-trinh.md"),
        ("备份", "zh/bushu.md"),
        ("数据库", "zh/bushu.md"),
        ("http request", "code/camel.md"),
        ("JSON_EXTRACT", "code/sql.md"),
    ],
)
def test_a_term_is_found_in_another_form(server: Server, tools: Mcp, query: str, path: str) -> None:
    assert path in found(tools, query)
    assert first_by_words(server, query) == path


def test_operators_are_strict(server: Server, tools: Mcp) -> None:
    """Nearness in meaning does not bring back what an operator excludes."""
    for path, body, title in (
        ("op/1", "copper kettle on the stove", "Kitchen"),
        ("op/2", "kettle of copper", "Kettle"),
        ("op/3", "copper kettle, tarnished", "Attic"),
    ):
        server.create(path, body, title=title)
    wait_until_indexed(server)

    def only(query: str) -> list[str]:
        return sorted(found(tools, query, limit=50))

    assert only('"copper kettle"') == ["op/1", "op/3"]
    assert "op/3" not in only("copper -tarnished")
    assert {*only("copper -tarnished")} >= {"op/1", "op/2"}
    assert only("title:kettle") == ["op/2"]
    assert only('"copper kettle" -stove') == ["op/3"]
    assert {*only("tarnish*")} >= {"op/3"}


# ---- what was written ----


@pytest.mark.requirement("000/CC.02", "7.1.f")
def test_a_write_is_found_at_once(tools: Mcp) -> None:
    """By keyword in the very next call; among what is near in meaning, soon after."""
    for number in range(20):
        word, path = f"freshword{number}q", f"fresh/{number}"
        tools.call("upload_document", path=path, content=f"Here is {word}.")
        assert word in tools.call("get_document_for_rewrite", path=path)["content"]
        assert found(tools, f'"{word}"') == [path]
        deadline_s = time.monotonic() + FINDABLE_SECONDS_MAX
        while found(tools, word)[:1] != [path]:
            assert time.monotonic() < deadline_s
    tools.call("update_document", path="fresh/0", content="Now about changedwordq.")
    assert found(tools, '"changedwordq"') == ["fresh/0"]
    assert found(tools, '"freshword0q"') == []


@pytest.mark.requirement("7.1.j")
def test_a_deleted_document_is_not_found(server: Server, tools: Mcp) -> None:
    server.create("doomed/1", "ephemeralword that goes away")
    wait_until_indexed(server)
    assert found(tools, "ephemeralword")[0] == "doomed/1"
    tools.call("delete_document", path="doomed/1")
    assert "doomed/1" not in found(tools, "ephemeralword", limit=50)
    wait_until_indexed(server)
    assert "doomed/1" not in found(tools, "ephemeralword that goes away", limit=50)
    assert found(tools, "ephemeralword", prefix="doomed/") == []


# ---- vectors that are not there ----


def test_without_a_model_keywords_remain_and_the_answer_says_so(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    environment = {"ZIBALDONE_EMBEDDER": "none"}
    data = tmp_path_factory.mktemp("plain") / "data"
    with Server(data, environment=environment) as running:
        running.create("a", "keyword alone")
        answer = Mcp(running.client).call("search_knowledge", query="keyword")
        assert [hit["document_id"] for hit in answer["results"]] == ["a"]
        assert answer["note"] == "The setting embedder is none: keywords only"


@pytest.mark.requirement("7.1.f")
def test_documents_whose_vectors_are_pending_are_announced(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = tmp_path_factory.mktemp("pending") / "data"
    with embedding_server() as stub, Server(data, environment=stub.environment) as running:
        tools = Mcp(running.client)
        running.create("ready", "keyword first")
        wait_until_indexed(running)
        assert "note" not in tools.call("search_knowledge", query="keyword")
        stub.flowing.clear()
        try:
            running.create("late", "keyword second")
            answer = tools.call("search_knowledge", query="keyword")
            assert {hit["document_id"] for hit in answer["results"]} == {"ready", "late"}
            assert answer["note"].startswith("1 document is found by keyword only")
        finally:
            stub.flowing.set()
        wait_until_indexed(running)
        assert "note" not in tools.call("search_knowledge", query="keyword")


def test_a_match_whose_vector_is_pending_comes_before_what_has_no_match(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = tmp_path_factory.mktemp("outranked") / "data"
    with embedding_server() as stub, Server(data, environment=stub.environment) as running:
        tools = Mcp(running.client)
        for number in range(12):
            running.create(f"old/{number}", f"what is the plan{number}")
        wait_until_indexed(running)
        query = "what is the newcomer"  # near the others by words that say nothing
        tools.call("search_knowledge", query=query)  # its vector is known now
        stub.flowing.clear()
        try:
            running.create("new", "newcomer")
            assert found(tools, query)[0] == "new"
        finally:
            stub.flowing.set()


@pytest.mark.requirement("7.1.a")
def test_a_question_that_shares_no_word_is_answered_by_meaning(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """With the real model."""
    bodies = {
        "ops/backup.md": "Nightly snapshots of the database are copied to another building.",
        "hr/leave.md": "Employees receive thirty days of paid vacation each year.",
        "food/soup.md": "Simmer onions, carrots and celery for an hour.",
        "pets/cat.md": "The kitten sleeps on the sofa most of the afternoon.",
    }
    question = "How much holiday do staff get?"
    asked = {word.strip("?").lower() for word in question.split()}
    assert not asked & {*bodies["hr/leave.md"].lower().replace(".", "").split()}
    environment = {"ZIBALDONE_EMBEDDER": "minilm"}
    data = tmp_path_factory.mktemp("meaning") / "data"
    with Server(data, environment=environment) as running:
        for path, body in bodies.items():
            running.create(path, body)
        wait_until_indexed(running)
        tools = Mcp(running.client)
        answer = tools.call("search_knowledge", query=question)
        assert answer["results"][0]["document_id"] == "hr/leave.md", json.dumps(answer)
        near = Mcp(running.client, "/mcp-rag").call("rag.search_vector", query_text=question)
        assert near["results"][0]["doc_id"] == "hr/leave.md"
