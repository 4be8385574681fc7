"""Links and backlinks: Markdown's and those of wikis, kept with every write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.keys import create_key
from tests.drivers.mcp import Mcp
from tests.drivers.server import Server
from zibaldone.limits import LINKS_MAX
from zibaldone.text.links import links_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("links") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def desk(server: Server) -> Mcp:
    return Mcp(server.client, "/mcp-desk")


def out(desk: Mcp, path: str) -> list[tuple[str, Any]]:
    links = desk.call("document_links", path=path)["links"]
    return [(link["target"], link["document_id"]) for link in links]


def back(desk: Mcp, path: str) -> list[str]:
    return [one["document_id"] for one in desk.call("document_links", path=path)["backlinks"]]


def test_links_lead_to_documents_and_back(server: Server, desk: Mcp) -> None:
    desk.call("upload_document", path="wiki/ada.md", content="# Ada Lovelace")
    desk.call("upload_document", path="wiki/sub/engine.md", content="# Engine")
    desk.call("upload_document", path="top.md", content="# Top")
    text = (
        "# Index\n\nSee [Ada](ada.md), [engine](sub/engine.md#parts), [[Ada Lovelace]], "
        "[[engine|the machine]], [up](../top.md), [from the top](/top), [gone](gone.md), "
        "[web](https://example.org/ada.md), ![image](ada.md), `[code](ada.md)` and [anchor](#x).\n"
        "\n```\n[[not this]]\n```\n"
    )
    desk.call("upload_document", path="wiki/index.md", content=text)
    assert out(desk, "wiki/index.md") == [
        ("wiki/ada.md", "wiki/ada.md"),
        ("wiki/sub/engine.md", "wiki/sub/engine.md"),
        ("top.md", "top.md"),
        ("top", "top.md"),
        ("wiki/gone.md", None),
        ("ada lovelace", "wiki/ada.md"),
        ("engine", "wiki/sub/engine.md"),
    ]
    for path in ("wiki/ada.md", "wiki/sub/engine.md", "top.md"):
        assert back(desk, path) == ["wiki/index.md"]
    rest = server.client.get("/links", params={"path": "wiki/ada.md"})
    assert rest.json() == desk.call("document_links", path="wiki/ada.md")
    assert rest.json()["backlinks"] == [{"document_id": "wiki/index.md", "title": "Index"}]


def test_they_follow_every_change(desk: Mcp) -> None:
    desk.call("upload_document", path="f/b.md", content="b", title="Bee")
    desk.call("upload_document", path="f/a.md", content="[b](b.md)")
    assert back(desk, "f/b.md") == ["f/a.md"]
    desk.call("patch_document", path="f/a.md", old_str="[b](b.md)", new_str="[[bee]]")
    assert back(desk, "f/b.md") == ["f/a.md"]
    desk.call("update_document", path="f/b.md", title="Wasp")
    assert back(desk, "f/b.md") == []
    assert out(desk, "f/a.md") == [("bee", None)]
    desk.call("rename_document", path="f/b.md", new_path="f/bee.md")
    assert back(desk, "f/bee.md") == ["f/a.md"]
    desk.call("delete_document", path="f/a.md")
    assert back(desk, "f/bee.md") == []
    desk.call("restore_document", path="f/a.md", revision=1)
    assert out(desk, "f/a.md") == [("f/b.md", None)]


def test_a_renamed_document_resolves_its_links_from_its_new_folder(desk: Mcp) -> None:
    desk.call("upload_document", path="r/one/a", content="[b](b)")
    desk.call("upload_document", path="r/two/b", content="text")
    assert out(desk, "r/one/a") == [("r/one/b", None)]
    desk.call("rename_document", path="r/one/a", new_path="r/two/a")
    assert out(desk, "r/two/a") == [("r/two/b", "r/two/b")]


def test_a_document_is_not_among_its_own_backlinks(desk: Mcp) -> None:
    desk.call("upload_document", path="self/a.md", content="See [above](a.md) and [[a]].")
    assert out(desk, "self/a.md")[0] == ("self/a.md", "self/a.md")
    assert back(desk, "self/a.md") == []


def test_missing_documents_have_none(desk: Mcp) -> None:
    assert desk.failure("document_links", path="never/there")["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("[a](<with blank.md>)", ["x/with blank.md"]),
        ("[a](with%20blank.md?raw=1)", ["x/with blank.md"]),
        ("[a]: other.md\n\nsee [a]", ["x/other.md"]),
        ("[a](zibaldone:///deep/b.md)", ["deep/b.md"]),
        ("[a](../../../etc/passwd)", []),
        ("[a](mailto:me@example.org) [b](//host/x)", []),
        ("[[Name#part|label]]", ["name"]),
        ("[[  Two   Words ]]", ["two words"]),
        ("[[]] [[|]] []() [x](", []),
        ("[" * 50_000, []),
        ("[a](" * 20_000, ["x/[a]"]),
        ("[[a" * 20_000, []),
        ("```\n[a](b)\n", []),
    ],
)
def test_what_counts_as_a_link(body: str, targets: list[str]) -> None:
    assert [link.target for link in links_of("x/doc.md", "", body).out] == targets


def test_there_are_only_so_many() -> None:
    body = " ".join(f"[a](b{number})" for number in range(LINKS_MAX + 50))
    assert len(links_of("x", "", body).out) == LINKS_MAX


def test_a_key_of_a_folder_sees_links_within_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("bound") / "data"
    writer = create_key(data, "--effect", "read", "--effect", "write")
    bound = create_key(data, "--prefix", "team/", "--effect", "read")
    other = create_key(data, "--namespace", "other", "--effect", "read", "--effect", "write")
    with Server(data) as server:
        mcp = Mcp(server.client, "/mcp-desk", headers=writer.headers)
        mcp.call("upload_document", path="team/a.md", content="[[plan]] [s](/secret/plan.md)")
        mcp.call("upload_document", path="secret/plan.md", content="[t](/team/a.md)")
        elsewhere = Mcp(server.client, "/mcp-desk", headers=other.headers)
        elsewhere.call("upload_document", path="x", content="[t](/team/a.md)", title="plan")
        assert back(mcp, "team/a.md") == ["secret/plan.md"]
        limited = Mcp(server.client, "/mcp-desk", headers=bound.headers)
        assert back(limited, "team/a.md") == []
        assert out(limited, "team/a.md") == [("secret/plan.md", None), ("plan", None)]
