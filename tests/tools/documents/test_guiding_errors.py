"""Errors that a model can act on, and answers that say how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.server import Server

LONG = "The walrus sleeps on the ice. " * 100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("guiding") / "data") as running:
        for path in (
            "handbook/deploy-checklist.md",
            "handbook/onboarding.md",
            "archive/2025/incident-report.md",
            "README.md",
        ):
            running.create(path, f"# {path}\n\ntext")
        running.create("teams/plans/q3.md", "Nothing here has a word of its path.")
        for number in range(120):
            running.create(f"many/item-{number:03}", "text")
        running.create("long.md", LONG)
        yield running


@pytest.fixture(scope="module")
def mcp(server: Server) -> Mcp:
    return Mcp(server.client)


class TestUnknownArguments:
    @pytest.mark.parametrize(
        ("tool", "arguments", "field", "meant"),
        [
            ("get_document", {"pth": "a"}, "pth", "path"),
            ("get_document", {"PATH": "a"}, "PATH", "path"),
            ("get_document", {"path": "a", "fromchar": 5}, "fromchar", "from_char"),
            ("search_knowledge", {"query": "a", "Limits": 5}, "Limits", "limit"),
            (
                "patch_document",
                {"path": "a", "replacements": [{"old_string": "a", "new_str": "b"}]},
                "replacements.0.old_string",
                "old_str",
            ),
        ],
    )
    def test_the_nearest_is_named_and_all_are_listed(
        self, mcp: Mcp, tool: str, arguments: dict[str, Any], field: str, meant: str
    ) -> None:
        error = mcp.failure(tool, **arguments)
        assert error["code"] == "INVALID_ARGUMENT"
        problems = {one["field"]: one["why"] for one in error["details"]["problems"]}
        assert f"did you mean '{meant}'?" in problems[field]
        assert meant in error["details"]["valid"]
        assert "count" not in error["details"]["valid"]

    def test_inside_an_object_its_own_names_are_listed(self, mcp: Mcp) -> None:
        edit = {"old_str": "a", "new_str": "b", "path": "a"}
        error = mcp.failure("patch_document", path="a", replacements=[edit])
        assert error["details"]["field"] == "replacements.0.path"
        assert error["details"]["valid"] == ["old_str", "new_str", "replace_all"]

    def test_what_is_like_none_is_only_told_which_there_are(self, mcp: Mcp) -> None:
        error = mcp.failure("list_documents", xyzzy=1)
        assert error["message"] == (
            "xyzzy: unknown argument. Valid: prefix, limit, offset, cursor, folders, sort, "
            "updated_after, updated_before."
        )
        assert error["details"]["valid"][:5] == ["prefix", "limit", "offset", "cursor", "folders"]

    def test_a_name_of_any_length_is_compared(self, mcp: Mcp) -> None:
        error = mcp.failure("list_documents", **{"prefix" * 5_000: 1})
        assert error["code"] == "INVALID_ARGUMENT"
        assert len(str(error)) < 2_000

    def test_rest_says_the_same(self, server: Server) -> None:
        answer = server.client.post("/documents", json={"path": "x", "contents": "y"})
        assert answer.status_code == 422
        assert "did you mean 'content'?" in answer.text


class TestWholeNumbers:
    @pytest.mark.parametrize("limit", [5, "5", " 5 ", "+5", 5.0, "005"])
    def test_a_number_that_is_written_as_text_is_taken(self, mcp: Mcp, limit: object) -> None:
        assert mcp.call("list_documents", prefix="many/", limit=limit)["count"] == 5

    @pytest.mark.parametrize("limit", ["five", "5.5", 5.5, True, "", "0x5", "5 5", "9" * 30, [5]])
    def test_nothing_else_is(self, mcp: Mcp, limit: object) -> None:
        error = mcp.failure("list_documents", limit=limit)
        assert error["code"] == "INVALID_ARGUMENT"
        assert error["details"]["field"] == "limit"

    def test_bounds_still_hold(self, mcp: Mcp) -> None:
        assert mcp.failure("list_documents", limit="100000")["code"] == "INVALID_ARGUMENT"

    def test_a_text_stays_a_text(self, mcp: Mcp) -> None:
        assert mcp.failure("get_document", path=5)["code"] == "INVALID_ARGUMENT"
        mcp.call("upload_document", path="numbers/1", content="5")
        assert mcp.call("get_document", path="numbers/1")["content"] == "5"


class TestMissingDocuments:
    @pytest.mark.parametrize(
        ("missing", "near"),
        [
            ("handbook/deploy-cheklist.md", "handbook/deploy-checklist.md"),
            ("handbook/deploy-checklist", "handbook/deploy-checklist.md"),
            ("handbook/Onboarding.md", "handbook/onboarding.md"),
            ("handbooks/onboarding.md", "handbook/onboarding.md"),
            ("team/plans/q3.md", "teams/plans/q3.md"),
            ("incident-report.md", "archive/2025/incident-report.md"),
            ("readme.md", "README.md"),
            ("many/item-1190", "many/item-119"),
        ],
    )
    def test_near_paths_are_named(self, server: Server, mcp: Mcp, missing: str, near: str) -> None:
        answer = mcp.call("get_document", path=missing)
        assert answer["code"] == "NOT_FOUND"
        assert near in answer["details"]["near"]
        assert repr(near) in answer["error"]
        error = mcp.failure("patch_document", path=missing, old_str="a", new_str="b")
        assert near in error["details"]["near"]
        rest = server.client.get(f"/documents/{missing}")
        assert rest.status_code == 404
        assert near in rest.text
        (item,) = mcp.call("batch_read", paths=[missing])["items"]
        assert near in item["error"]["details"]["near"]

    def test_what_is_like_nothing_is_only_missing(self, mcp: Mcp) -> None:
        answer = mcp.call("get_document", path="qqqq/zzzz")
        assert answer["error"] == "There is no document 'qqqq/zzzz'."
        assert "near" not in answer["details"]

    def test_a_revision_that_is_missing_names_no_others(self, server: Server) -> None:
        answer = server.client.get("/documents/README.md/revisions/9")
        assert answer.status_code == 404
        assert "near" not in answer.text


class TestReadingOn:
    def test_a_passage_leads_to_the_text_after_it(self, mcp: Mcp) -> None:
        found = mcp.call("search_knowledge", query="walrus ice")
        assert "from_char" in found["read_on"]
        (hit,) = [hit for hit in found["results"] if hit["document_id"] == "long.md"]
        start = hit["passages"][0]["start"]
        part = mcp.call("get_document", path="long.md", from_char=start)
        assert part["content"].startswith(hit["passages"][0]["snippet"][:20])
        assert "read_on" not in mcp.call("search_knowledge", query="nothingofthekind")

    def test_the_beginning_says_where_to_go_on(self, mcp: Mcp) -> None:
        part = mcp.call("get_document", path="long.md")
        text = part["content"]
        while part["truncated"]:
            assert part["read_on"] == f"get_document with from_char {part['next_char']}"
            part = mcp.call(
                "get_document", path="long.md", from_char=part["next_char"], char_count=1_000
            )
            text += part["content"]
        assert text == LONG
        assert "read_on" not in part

    def test_lines_go_on_by_lines(self, mcp: Mcp) -> None:
        mcp.call("upload_document", path="lines.md", content="a\nb\nc")
        part = mcp.call("get_document", path="lines.md", from_line=1, line_count=2)
        assert part["read_on"] == "get_document with from_line 3"
