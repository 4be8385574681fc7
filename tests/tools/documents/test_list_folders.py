"""list_documents with folders: one level at a time, with counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.keys import create_key
from tests.drivers.mcp import Mcp
from tests.drivers.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("folders") / "data") as running:
        for path in (
            *("top-1", "top-2", "notes/a", "notes/b", "notes/deep/c", "notes/deep/er/d"),
            *("notesbook/e", "\u00fc\U0001f30a/f", "z" * 200 + "/g", "gone/h"),
        ):
            running.create(path)
        running.client.delete("/documents/gone/h").raise_for_status()
        yield running


@pytest.fixture(scope="module")
def mcp(server: Server) -> Mcp:
    return Mcp(server.client)


def level(mcp: Mcp, prefix: str = "", **more: Any) -> tuple[dict[str, int], list[str]]:
    answer = mcp.call("list_documents", prefix=prefix, folders=True, **more)
    folders = {one["prefix"]: one["count"] for one in answer["folders"]}
    assert answer["count"] == len(answer["items"])
    assert list(folders) == sorted(folders, key=str.encode)
    return folders, [item["document_id"] for item in answer["items"]]


def test_the_top(mcp: Mcp) -> None:
    folders, documents = level(mcp)
    assert folders == {"notes/": 4, "notesbook/": 1, "\u00fc\U0001f30a/": 1, "z" * 200 + "/": 1}
    assert documents == ["top-1", "top-2"]


def test_one_level_down(mcp: Mcp) -> None:
    assert level(mcp, "notes/") == ({"notes/deep/": 2}, ["notes/a", "notes/b"])
    assert level(mcp, "notes/deep/") == ({"notes/deep/er/": 1}, ["notes/deep/c"])
    assert level(mcp, "nowhere/") == ({}, [])


def test_a_prefix_need_not_end_at_a_folder(mcp: Mcp) -> None:
    assert level(mcp, "note") == ({"notes/": 4, "notesbook/": 1}, [])
    assert level(mcp, "\u00fc") == ({"\u00fc\U0001f30a/": 1}, [])


def test_five_thousand_documents_take_one_call(server: Server, mcp: Mcp) -> None:
    """Of which some are enough here: the answer has folders, not documents."""
    for number in range(60):
        server.create(f"big/{number % 6}/doc-{number}")
    assert level(mcp, "big/") == ({f"big/{number}/": 10 for number in range(6)}, [])


def test_pages_go_on_by_cursor_and_show_folders_once(server: Server, mcp: Mcp) -> None:
    for number in range(7):
        server.create(f"paged/{number}")
    server.create("paged/folder/x")
    answer = mcp.call("list_documents", prefix="paged/", folders=True, limit=3)
    assert answer["folders"] == [{"prefix": "paged/folder/", "count": 1}]
    seen = [item["document_id"] for item in answer["items"]]
    while "next_cursor" in answer:
        answer = mcp.call(
            "list_documents",
            prefix="paged/",
            folders=True,
            limit=3,
            cursor=answer["next_cursor"],
        )
        assert answer["folders"] == []
        seen += [item["document_id"] for item in answer["items"]]
    assert seen == [f"paged/{number}" for number in range(7)]
    error = mcp.failure("list_documents", prefix="paged/", folders=True, offset=3)
    assert error["details"]["field"] == "offset"


def test_rest_shows_the_same(server: Server) -> None:
    answer = server.client.get("/documents", params={"prefix": "notes/", "folders": "true"})
    assert answer.json()["folders"] == [{"prefix": "notes/deep/", "count": 2}]


def test_a_long_level_is_cut_and_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("cut") / "data"
    environment = {"ZIBALDONE_LIST_RESPONSE_BYTES_MAX": "4000"}
    with Server(data, environment=environment) as server:
        for number in range(80):
            server.create(f"{number:03}-{'x' * 40}/a")
        answer = server.client.get("/documents", params={"folders": "true"})
        assert len(answer.content) <= 4_300
        assert answer.json()["truncated"] is True
        assert "narrower prefix" in answer.json()["hint"]
        assert 10 < len(answer.json()["folders"]) < 80


def test_a_key_of_a_folder_sees_that_folder_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("bound") / "data"
    writer = create_key(data, "--effect", "read", "--effect", "write")
    bound = create_key(data, "--prefix", "team/", "--effect", "read")
    with Server(data) as server:
        for path in ("secret/plan.md", "team/plans.md", "team/x/c", "team/x/d"):
            body = {"path": path, "content": "text"}
            server.client.post("/documents", json=body, headers=writer.headers).raise_for_status()
        mcp = Mcp(server.client, headers=bound.headers)
        assert level(mcp) == ({"team/": 3}, [])
        assert level(mcp, "team/") == ({"team/x/": 2}, ["team/plans.md"])
        assert level(mcp, "secret/") == ({}, [])
        assert "secret/plan.md" not in str(mcp.call("get_document", path="secret/plan"))
        answer = mcp.call("get_document", path="team/plan.md")
        assert answer["details"]["near"][0] == "team/plans.md"
        assert all(path.startswith("team/") for path in answer["details"]["near"])
