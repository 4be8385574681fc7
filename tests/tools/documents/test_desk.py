"""The desk: recent changes, and a document that is renamed with its history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.keys import create_key
from tests.drivers.mcp import Mcp
from tests.drivers.server import Server

LONG = "\n\n".join(f"Paragraph {number} is about wombats." for number in range(4_000))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("desk") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def desk(server: Server) -> Mcp:
    return Mcp(server.client, "/mcp-desk")


class TestRecentChanges:
    def test_the_newest_first_each_document_once(self, desk: Mcp) -> None:
        for path in ("recent/a.md", "recent/b.md", "recent/c.md"):
            desk.call("upload_document", path=path, content=f"# {path}")
        desk.call("patch_document", path="recent/a.md", append="more")
        desk.call("delete_document", path="recent/b.md")
        answer = desk.call("recent_changes", prefix="recent/")
        seen = [
            (change["document_id"], change["operation"], change["revision"], change["title"])
            for change in answer["changes"]
        ]
        assert seen == [
            ("recent/b.md", "delete", 2, None),
            ("recent/a.md", "patch", 2, "recent/a.md"),
            ("recent/c.md", "create", 1, "recent/c.md"),
        ]
        assert answer["truncated"] is False
        assert answer["changes"][0]["changed_by"] == "local"
        assert answer["changes"][0]["changed_at"] >= answer["changes"][-1]["changed_at"]

    def test_a_limit_cuts(self, server: Server, desk: Mcp) -> None:
        for number in range(3):
            server.create(f"limited/{number}")
        answer = desk.call("recent_changes", prefix="limited/", limit="2")
        assert len(answer["changes"]) == 2
        assert answer["truncated"] is True
        rest = server.client.get("/changes", params={"prefix": "limited/", "limit": 2})
        assert rest.json() == answer


class TestRename:
    def test_the_history_goes_with_it(self, server: Server, desk: Mcp) -> None:
        desk.call("upload_document", path="old/one.md", content="first walrus", tags=["x"])
        desk.call("update_document", path="old/one.md", content="second walrus")
        answer = desk.call("rename_document", path="old/one.md", new_path="new/place/uno.md")
        assert answer == {
            "id": "new/place/uno.md",
            "status": "renamed",
            "revision": 3,
            "renamed_from": "old/one.md",
        }
        document = desk.call("get_document", path="new/place/uno.md")
        assert (document["content"], document["tags"]) == ("second walrus", ["x"])
        assert document["parent_id"] == "new/place"
        history = desk.call("document_history", path="new/place/uno.md")["revisions"]
        assert [(one["revision"], one["operation"]) for one in history] == [
            (3, "rename"),
            (2, "update"),
            (1, "create"),
        ]
        assert (
            "first walrus"
            in desk.call("document_diff", path="new/place/uno.md", older=1, newer=3)["diff"]
        )
        assert desk.call("get_document", path="old/one.md")["code"] == "NOT_FOUND"
        hits = desk.call("search_knowledge", query="second walrus")["results"]
        assert [hit["document_id"] for hit in hits] == ["new/place/uno.md"]
        listed = server.client.get("/documents", params={"prefix": "old/"}).json()
        assert listed["count"] == 0
        desk.call("restore_document", path="new/place/uno.md", revision=1)
        assert desk.call("get_document", path="new/place/uno.md")["content"] == "first walrus"

    def test_the_old_path_is_free_again(self, desk: Mcp) -> None:
        desk.call("upload_document", path="free/a", content="one")
        desk.call("rename_document", path="free/a", new_path="free/b")
        assert desk.call("upload_document", path="free/a", content="two")["revision"] == 1
        answer = desk.call("rename_document", path="free/b", new_path="free/c")
        assert answer["revision"] == 3

    def test_a_long_document_too(self, desk: Mcp) -> None:
        desk.call("upload_document", path="long/a", content=LONG)
        desk.call("rename_document", path="long/a", new_path="long/b")
        assert desk.call("get_document_for_rewrite", path="long/b")["content"] == LONG

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            ({"path": "no/a", "new_path": "no/never"}, "CONFLICT"),
            ({"path": "no/a", "new_path": "no/deleted"}, "CONFLICT"),
            ({"path": "no/a", "new_path": "no/a"}, "INVALID_ARGUMENT"),
            ({"path": "no/a", "new_path": "../a"}, "INVALID_ARGUMENT"),
            ({"path": "no/a", "new_path": "no/x", "last_known_revision": 9}, "CONFLICT"),
            ({"path": "no/missing", "new_path": "no/x"}, "NOT_FOUND"),
            ({"path": "no/deleted", "new_path": "no/x"}, "NOT_FOUND"),
        ],
    )
    def test_what_is_refused_changes_nothing(
        self, desk: Mcp, arguments: dict[str, Any], code: str
    ) -> None:
        for path in ("no/a", "no/never", "no/deleted"):
            desk.call("upload_document", path=path, content="text", upsert=True)
        desk.call("delete_document", path="no/deleted")
        before = desk.call("get_document", path="no/a")
        assert desk.failure("rename_document", **arguments)["code"] == code
        assert desk.call("get_document", path="no/a") == before

    def test_over_rest_and_move_stays_absent(self, server: Server) -> None:
        server.create("rest/a")
        answer = server.client.post("/documents/rest/a/rename", json={"new_path": "rest/b"})
        assert answer.json()["id"] == "rest/b"
        assert server.client.get("/documents/rest/b").status_code == 200
        moved = server.client.post("/documents/rest/b/move", json={"new_path": "rest/c"})
        assert moved.status_code == 501

    def test_a_key_of_a_folder_renames_within_it(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        data = tmp_path_factory.mktemp("bound") / "data"
        bound = create_key(data, "--prefix", "team/", "--effect", "read", "--effect", "write")
        with Server(data) as server:
            mcp = Mcp(server.client, "/mcp-desk", headers=bound.headers)
            mcp.call("upload_document", path="team/a", content="text")
            error = mcp.failure("rename_document", path="team/a", new_path="others/a")
            assert error["code"] == "FORBIDDEN"
            error = mcp.failure("rename_document", path="others/a", new_path="team/b")
            assert error["code"] == "FORBIDDEN"
            assert mcp.call("rename_document", path="team/a", new_path="team/b")["revision"] == 2
            changes = mcp.call("recent_changes")["changes"]
            assert {change["document_id"] for change in changes} == {"team/a", "team/b"}


def test_the_ten_are_there_too(server: Server, desk: Mcp) -> None:
    names = {tool["name"] for tool in desk.tools()}
    assert {tool["name"] for tool in Mcp(server.client).tools()} < names
    assert "move_document" not in names
    answer: httpx.Response = server.client.get("/mcp-desk")
    assert answer.json()["profile"] == "desk"
