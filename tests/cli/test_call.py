"""Any tool by name, with JSON arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.rag import embedding_server
from tests.drivers.server import parsed, run_cli


def test_a_tool_is_called_by_its_name(data: Path) -> None:
    run_cli("put", "posts:1", data=data, stdin="The migration runs first.")
    arguments = json.dumps({"query": "migration", "k": 3})
    found = parsed(run_cli("call", "rag.search_fts", arguments, data=data))
    assert [hit["chunk_id"] for hit in found["results"]] == ["posts:1#0"]
    listed_by_mcp = run_cli("call", "rag_search_fts", arguments, data=data)
    assert parsed(listed_by_mcp)["results"] == found["results"]
    by_stdin = run_cli(
        "call", "rag.get_chunks", "-", data=data, stdin='{"chunk_ids":["posts:1#0"]}'
    )
    assert parsed(by_stdin)["chunks"][0]["body"] == "The migration runs first."


def test_what_is_wrong_is_said(data: Path) -> None:
    Commands(data).ok("put", "any", stdin="x")
    for arguments, said in (
        (("rag.serch_fts", "{}"), "rag.search_fts"),
        (("rag_serch_fts", "{}"), "search_fts"),
        (("rag.search_fts", "{"), "not JSON"),
        (("rag.search_fts", "[]"), "JSON object"),
        (("rag.search_fts", "{}"), "query"),
    ):
        result = run_cli("call", *arguments, data=data)
        assert result.returncode == 3
        assert said in result.stderr


@pytest.mark.engine("sqlite", reason="it is about the model")
def test_a_search_waits_for_the_model(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question to a model may take longer than a search has: one goes ahead."""
    with embedding_server() as model:
        for name, value in model.environment.items():
            monkeypatch.setenv(name, value)
        cli.ok("put", "notes/a", stdin="The migration runs first.")
        model.texts.clear()
        cli.ok("call", "rag.get_docs", '{"doc_ids": ["notes/a"]}')
        assert model.texts == [], "nothing to wait for"
        found = json.loads(cli.ok("call", "search_knowledge", '{"query": "what is first"}'))
        assert found["results"][0]["document_id"] == "notes/a"
        assert model.texts == ["ready?", "what is first"]
