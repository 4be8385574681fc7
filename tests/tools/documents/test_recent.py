"""What was written last: in lists, as a filter, and in hits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED, rag, wait_until_indexed
from tests.drivers.runtimes import Caller, opened
from tests.drivers.server import Server

PATHS = [f"log/{number}" for number in range(6)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("recent") / "data", environment=HASHED) as running:
        for path in PATHS:
            running.create(path, f"The sextant of {path} was cleaned.")
        running.create("other/old", "An anchor.")
        Mcp(running.client).call(
            "patch_document", path="log/1", old_str="cleaned", new_str="polished"
        )
        wait_until_indexed(running)
        yield running


NEWEST_FIRST = ["log/1", "other/old", "log/5", "log/4", "log/3", "log/2", "log/0"]


def times(server: Server) -> dict[str, str]:
    listed = Mcp(server.client).call("list_documents", sort="recent")["items"]
    return {item["document_id"]: item["updated_at"] for item in listed}


def test_a_list_of_what_changed_last(server: Server) -> None:
    tools = Mcp(server.client)
    whole = tools.call("list_documents", sort="recent")
    assert [item["document_id"] for item in whole["items"]] == NEWEST_FIRST
    assert whole["next_offset"] is None
    for item in whole["items"]:
        document = tools.call("get_document", path=item["document_id"])
        assert item["updated_at"] == document["updated_at"]
    assert "updated_at" not in tools.call("list_documents")["items"][0]


def test_its_pages_fit_together(server: Server) -> None:
    tools = Mcp(server.client)
    paths: list[str] = []
    arguments: dict[str, object] = {}
    while True:
        page = tools.call("list_documents", sort="recent", limit=3, **arguments)
        paths += [item["document_id"] for item in page["items"]]
        if "next_cursor" not in page:
            break
        arguments = {"cursor": page["next_cursor"]}
    assert paths == NEWEST_FIRST
    second = tools.call("list_documents", sort="recent", limit=3, offset=3)
    assert [item["document_id"] for item in second["items"]] == NEWEST_FIRST[3:6]
    assert second["next_offset"] == 6


def test_dates_restrict_the_list(server: Server) -> None:
    tools, known = Mcp(server.client), times(server)
    after = tools.call("list_documents", prefix="log/", updated_after=known["log/4"])
    assert [item["document_id"] for item in after["items"]] == ["log/1", "log/5", "log/4"]
    before = tools.call("list_documents", updated_before=known["log/3"])
    assert [item["document_id"] for item in before["items"]] == ["log/2", "log/0"]
    assert tools.call("list_documents", updated_after="2999-01-01")["items"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"sort": "recent", "folders": True},
        {"sort": "path", "updated_after": "2026-01-01"},
        {"updated_before": "yesterday"},
        {"sort": "recent", "cursor": "bm90IG91cnM"},
        {"sort": "newest"},
    ],
)
def test_what_does_not_go_together_is_refused(server: Server, arguments: dict[str, object]) -> None:
    error = Mcp(server.client).failure("list_documents", **arguments)
    assert error["code"] == "INVALID_ARGUMENT"


def test_a_cursor_belongs_to_its_list(server: Server) -> None:
    tools = Mcp(server.client)
    by_path = tools.call("list_documents", limit=2)["next_cursor"]
    by_time = tools.call("list_documents", limit=2, sort="recent")["next_cursor"]
    assert (
        tools.failure("list_documents", sort="recent", cursor=by_path)["details"]["field"]
        == "cursor"
    )
    assert tools.failure("list_documents", cursor=by_time)["details"]["field"] == "cursor"


def test_hits_say_when_they_were_written(server: Server) -> None:
    known = times(server)
    answers = [
        Mcp(server.client).call("search_knowledge", query="sextant"),
        rag(server).call("rag.search_fts", query="sextant"),
        rag(server).call("rag.search_vector", query_text="sextant"),
        rag(server).call("rag.search_hybrid", query="sextant"),
    ]
    for answer in answers:
        assert answer["results"]
        for hit in answer["results"]:
            assert hit["updated_at"] == known[hit.get("document_id") or hit["doc_id"]]


def test_searches_filter_by_it(server: Server) -> None:
    known = times(server)
    period = {"updated_after": known["log/2"], "updated_before": known["log/5"]}
    expected = {"log/2", "log/3", "log/4"}
    answer = Mcp(server.client).call("search_knowledge", query="sextant", **period)
    assert {hit["document_id"] for hit in answer["results"]} == expected
    for tool, name in (
        ("rag.search_fts", "query"),
        ("rag.search_vector", "query_text"),
        ("rag.search_hybrid", "query"),
    ):
        answer = rag(server).call(tool, **{name: "sextant"}, filters=period)
        assert {hit["doc_id"] for hit in answer["results"]} == expected


def test_the_newest_of_the_matches_first(server: Server) -> None:
    answer = Mcp(server.client).call("search_knowledge", query="sextant", sort="recent", limit=3)
    assert [hit["document_id"] for hit in answer["results"]] == ["log/1", "log/5", "log/4"]


def test_newer_ones_that_match_poorly_are_left_out_where_good_ones_are(data: Path) -> None:
    with opened(data) as runtime:
        ask = Caller(runtime)
        for path, content in (
            ("good/older", "To clean a sextant, wipe its mirrors with linen."),
            ("good/newer", "Linen wipes the mirrors of a sextant and is clean."),
            ("poor", "The sails were made of linen."),
        ):
            ask("upload_document", path=path, content=content)
        answer = ask("search_knowledge", query="clean sextant mirrors linen", sort="recent")
        assert [hit["document_id"] for hit in answer["results"]] == ["good/newer", "good/older"]
        answer = ask("search_knowledge", query="linen hats ties coats shoes", sort="recent")
        assert answer["weak"] is True
        assert answer["results"][0]["document_id"] == "poor", "nothing is good: the newest of all"


def test_over_rest(server: Server) -> None:
    listed = server.client.get("/documents", params={"sort": "recent", "limit": 1}).json()
    assert listed["items"][0]["document_id"] == "log/1"
