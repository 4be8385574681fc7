"""A title is taken from the text where none is given, whichever way it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.server import Server, run_cli
from zibaldone.text.title import title_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("titles")
    files = folder / "files"
    files.mkdir()
    (files / "page.md").write_text("# Of a file\n\ntext")
    environment = {"ZIBALDONE_INGEST_ROOTS": str(files)}
    with Server(folder / "data", environment=environment) as running:
        yield running


@pytest.fixture(scope="module")
def mcp(server: Server) -> Mcp:
    return Mcp(server.client)


def title(mcp: Mcp, path: str) -> Any:
    return mcp.call("get_document", path=path, related=False)["title"]


TEXTS = {
    "# Deploying\n\nFirst …": "Deploying",
    "intro\n\n## Setup\n": "Setup",
    "Walrus facts\n============\n": "Walrus facts",
    "---\nauthor: me\n---\n\nNotes on *tides*\n\nmore": "Notes on tides",
    "---\ntitle: Of the front\n---\n# Of the text\n": "Of the front",
    "- **Buy** [milk](shop.md) and `eggs`\n- more": "Buy milk and eggs",
    "> 1. quoted": "quoted",
    "```\n# code\n```\nAfter the code": "After the code",
    "see [[people/ada|Ada]] there": "see Ada there",
    "<!-- hidden -->\nShown": "Shown",
    "word " * 60: " ".join(["word"] * 19) + "\u2026",
    "x" * 300: "x" * 99 + "\u2026",
    "": "",
    "\n \n***\n---\n": "",
    "a" + "\u0301" * 500: "",
}


@pytest.mark.parametrize(("body", "expected"), TEXTS.items())
def test_the_first_heading_or_line(body: str, expected: str) -> None:
    assert title_of(body, "text/markdown") == expected


@pytest.mark.parametrize("mime", ["application/json", "text/x-python", "text/html", "text/csv"])
def test_other_kinds_have_no_line_that_names_them(mime: str) -> None:
    assert title_of("# a comment\nx = 1", mime) == ""


def test_plain_text_has_no_headings() -> None:
    assert title_of("first line\n# second", "text/plain") == "first line"


class TestWaysOfWriting:
    def test_upload(self, mcp: Mcp) -> None:
        mcp.call("upload_document", path="up.md", content="# Up\n\ntext")
        assert title(mcp, "up.md") == "Up"
        mcp.call("upload_document", path="given.md", content="# Up\n\ntext", title="Given")
        assert title(mcp, "given.md") == "Given"

    def test_rest(self, server: Server, mcp: Mcp) -> None:
        server.create("rest.md", "# Rest\n\ntext")
        assert title(mcp, "rest.md") == "Rest"
        assert "# Rest" not in str(
            server.client.get("/documents", params={"prefix": "rest"}).json()
        )

    def test_ingest_of_a_text_and_of_a_file(self, server: Server, mcp: Mcp) -> None:
        mcp.call("ingest_document", text="First line\nsecond", path="in.md")
        assert title(mcp, "in.md") == "First line"
        file = server.data.parent / "files" / "page.md"
        mcp.call("ingest_document", source=str(file), path="file.md")
        assert title(mcp, "file.md") == "Of a file"

    def test_import(self, server: Server, mcp: Mcp, tmp_path: Path) -> None:
        folder = tmp_path / "imported"
        folder.mkdir()
        (folder / "one.md").write_text("# One\n")
        (folder / "two.md").write_text("Just a line\n")
        (folder / "three.txt").write_text("Plain line\n")
        run_cli("import", str(folder), data=server.data)
        titles = [title(mcp, name) for name in ("one.md", "two.md", "three.txt")]
        assert titles == ["One", "Just a line", "Plain line"]


class TestFollowing:
    def test_a_title_that_was_taken_follows_the_text(self, mcp: Mcp) -> None:
        mcp.call("upload_document", path="follow.md", content="# Old\n\ntext")
        mcp.call("patch_document", path="follow.md", old_str="# Old", new_str="# New")
        assert title(mcp, "follow.md") == "New"
        mcp.call("update_document", path="follow.md", content="# Newer\n")
        assert title(mcp, "follow.md") == "Newer"
        mcp.call("upload_document", path="follow.md", content="# Newest\n", upsert=True)
        assert title(mcp, "follow.md") == "Newest"

    def test_a_title_that_was_given_stays(self, mcp: Mcp) -> None:
        mcp.call("upload_document", path="stay.md", content="# Old\n", title="Mine")
        mcp.call("update_document", path="stay.md", content="# New\n")
        assert title(mcp, "stay.md") == "Mine"
        mcp.call("update_document", path="stay.md", title="")
        mcp.call("update_document", path="stay.md", content="# Newer\n")
        assert title(mcp, "stay.md") == ""

    def test_it_is_found_by_its_title(self, mcp: Mcp) -> None:
        mcp.call("upload_document", path="found.md", content="# Narwhal tusks\n\ntext")
        hits = mcp.call("search_knowledge", query="title:narwhal")["results"]
        assert [hit["document_id"] for hit in hits] == ["found.md"]
