"""Tags and ids are the same however a keyboard or a file system writes their letters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED, SEARCHES, asking, docs_of, rag, wait_until_indexed
from tests.drivers.server import Server

TOGETHER = "caf\u00e9"
APART = unicodedata.normalize("NFD", TOGETHER)
SHORT = f"names/{TOGETHER}/a"
METADATA_TAGS: dict[str, Any] = {
    "meta/angled": f"<{APART}><Two   Words>",
    "meta/listed": [APART.upper(), " two words "],
    "meta/commas": f"{TOGETHER},two\u00a0words",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("names") / "data", environment=HASHED) as running:
        running.create(SHORT, "one body", tags=[APART, "two  words"])
        running.create("names/plain", "another body", tags=["cafe"])
        for path, tags in METADATA_TAGS.items():
            running.create(path, "third body", metadata={"Tags": tags})
        wait_until_indexed(running)
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


@pytest.mark.requirement("RAG-22", "RAG-23")
@pytest.mark.parametrize("tool", SEARCHES)
@pytest.mark.parametrize("field", ["tags_any", "tags_all"])
@pytest.mark.parametrize(
    "tag", [TOGETHER, APART, APART.upper(), f" {APART} ", "two words", "two  words", "TWO\tWords"]
)
def test_a_tag_in_any_spelling(tools: Mcp, tool: str, field: str, tag: str) -> None:
    answer = tools.call(tool, **asking(tool, "body", filters={field: [tag]}))
    assert {*docs_of(answer)} == {SHORT, *METADATA_TAGS}


@pytest.mark.requirement("RAG-23")
@pytest.mark.parametrize("tool", SEARCHES)
def test_a_tag_in_two_spellings_is_one(tools: Mcp, tool: str) -> None:
    filters = {"tags_all": [TOGETHER, APART, "two words", "two   words"]}
    answer = tools.call(tool, **asking(tool, "body", filters=filters))
    assert {*docs_of(answer)} == {SHORT, *METADATA_TAGS}


@pytest.mark.parametrize("tool", SEARCHES)
def test_a_blank_tag_is_one_that_nothing_has(tools: Mcp, tool: str) -> None:
    for field in ("tags_any", "tags_all"):
        assert docs_of(tools.call(tool, **asking(tool, "body", filters={field: [" "]}))) == []


SPELLINGS = (SHORT, unicodedata.normalize("NFD", SHORT), f"/{SHORT}", f"names//{TOGETHER}/./a/")


@pytest.mark.requirement("RAG-19")
@pytest.mark.parametrize("tool", SEARCHES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_id_of_a_filter_in_any_spelling(tools: Mcp, tool: str, spelling: str) -> None:
    filters = {"doc_ids": [spelling, "../names", "\x01"]}
    assert docs_of(tools.call(tool, **asking(tool, "body", filters=filters))) == [SHORT]
    none = {"doc_ids": ["../names", ""]}
    assert docs_of(tools.call(tool, **asking(tool, "body", filters=none))) == []


@pytest.mark.requirement("RAG-64", "RAG-68")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_documents_and_passages_by_any_spelling(tools: Mcp, spelling: str) -> None:
    answer = tools.call("rag.get_docs", doc_ids=[spelling])
    assert [doc["doc_id"] for doc in answer["docs"]] == [SHORT]
    assert answer["missing"] == []
    answer = tools.call("rag.get_chunks", chunk_ids=[f"{spelling}#0"])
    assert [chunk["chunk_id"] for chunk in answer["chunks"]] == [f"{SHORT}#0"]
    assert answer["missing"] == []


@pytest.mark.requirement("RAG-64", "RAG-68")
def test_what_is_missing_is_named_as_it_was_asked_for(tools: Mcp) -> None:
    unknown = ["/no", unicodedata.normalize("NFD", "n\u00f6"), "../no", "", "no\x01"]
    answer = tools.call("rag.get_docs", doc_ids=[*unknown, *SPELLINGS])
    assert answer["missing"] == unknown
    assert [doc["doc_id"] for doc in answer["docs"]] == [SHORT], "once, however often it is named"
    passages = [f"{name}#0" for name in unknown]
    answer = tools.call("rag.get_chunks", chunk_ids=[*passages, *(f"{s}#0" for s in SPELLINGS)])
    assert answer["missing"] == passages
    assert [chunk["chunk_id"] for chunk in answer["chunks"]] == [f"{SHORT}#0"]
