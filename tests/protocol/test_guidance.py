"""What a profile tells its clients names the profile's own tools and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.catalogues import CATALOGUE
from tests.drivers.mcp import LEGACY, MODERN, Mcp
from tests.drivers.server import Server

MINE = {"list_documents", "document_history"}
PROFILES = {
    **{profile.path: set(profile.tools) for profile in CATALOGUE.profiles},
    "/mcp-mine": MINE,
    "/mcp-jobs": {"list_jobs"},
}
NAMES = {name for tool in CATALOGUE.tools for name in (tool.name, tool.name.replace(".", "_"))}
OLD_TEXT = (
    "A shared knowledge base of documents under paths. search_knowledge before you answer from "
    "memory; get_document to look, get_document_for_rewrite before rewriting; patch_document for "
    "small edits. Put what others should know under a clear path with upload_document."
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    profiles = {"mine": sorted(MINE), "jobs": ["list_jobs"]}
    assistants = {name: {"provider": "openai", "model": "x"} for name in ("reviewer", "writer")}
    environment = {
        "ZIBALDONE_PROFILES": json.dumps(profiles),
        "ZIBALDONE_ASSISTANTS": json.dumps(assistants),
    }
    with Server(tmp_path_factory.mktemp("guidance") / "data", environment=environment) as running:
        running.create("notes/a.md")
        yield running


def named_in(text: str) -> set[str]:
    words = re.findall(r"[a-z_]+(?:\.[a-z_]+)*", text)
    return {word for word in words if word in NAMES}


def instructions(server: Server, path: str) -> str:
    text: str = Mcp(server.client, path).result("initialize", {"protocolVersion": LEGACY[-1]})[
        "instructions"
    ]
    discovered = Mcp(server.client, path, MODERN).result("server/discover")
    assert discovered["instructions"] == text
    return text


def prompts(server: Server, path: str) -> dict[str, str]:
    """The text of each prompt of a path."""
    mcp = Mcp(server.client, path)
    texts = {}
    for prompt in mcp.result("prompts/list")["prompts"]:
        arguments = {one["name"]: "x" for one in prompt["arguments"]}
        result = mcp.result("prompts/get", {"name": prompt["name"], "arguments": arguments})
        texts[prompt["name"]] = result["messages"][0]["content"]["text"]
    return texts


@pytest.mark.parametrize("path", PROFILES)
def test_only_tools_of_the_path_are_named(server: Server, path: str) -> None:
    listed = {tool["name"] for tool in Mcp(server.client, path).tools()}
    assert named_in(instructions(server, path)) <= listed
    for text in prompts(server, path).values():
        assert named_in(text)
        assert named_in(text) <= listed


def test_the_main_path_says_what_it_always_said(server: Server) -> None:
    assert instructions(server, "/mcp") == OLD_TEXT


def test_each_path_says_what_it_is_for(server: Server) -> None:
    assert "rewriting" not in instructions(server, "/mcp-readonly")
    assert named_in(instructions(server, "/mcp-rag")) == {"rag.search_hybrid", "rag.get_chunks"}
    assert "list_documents" in instructions(server, "/mcp-mine")
    assert named_in(instructions(server, "/mcp-memory")) == {"recall", "add_memory"}
    assert prompts(server, "/mcp").keys() == {"answer_from_knowledge", "keep_note", "tidy_folder"}
    assert prompts(server, "/mcp-readonly").keys() == {"answer_from_knowledge", "tidy_folder"}
    assert named_in(prompts(server, "/mcp-rag")["answer_from_knowledge"]) == {
        "rag.search_hybrid",
        "rag.get_chunks",
    }
    assert prompts(server, "/mcp-mine") == {}


def test_each_path_says_what_it_holds(server: Server) -> None:
    documents = "A shared knowledge base of documents"
    assert instructions(server, "/mcp-rag").startswith(documents)
    assert instructions(server, "/mcp-all").startswith(documents)
    assert documents not in instructions(server, "/mcp-memory")
    consult = instructions(server, "/mcp-consult")
    assert consult.startswith("Other models that can be asked about files. Ask with chat_with_")
    assert "chat_with_reviewer" in instructions(server, "/mcp-all")
    assert "chat_with" not in instructions(server, "/mcp")


def test_what_a_path_cannot_do_is_not_offered(server: Server) -> None:
    def capabilities(path: str) -> dict[str, Any]:
        result = Mcp(server.client, path).result("initialize", {"protocolVersion": LEGACY[-1]})
        offered: dict[str, Any] = result["capabilities"]
        return offered

    assert {"prompts", "completions"} <= capabilities("/mcp").keys()
    assert not {"prompts", "completions"} & capabilities("/mcp-jobs").keys()
    error = Mcp(server.client, "/mcp-mine").error("prompts/get", {"name": "keep_note"})
    assert error["code"] == -32602


@pytest.mark.parametrize(
    ("path", "prompt", "argument", "values"),
    [
        ("/mcp", "tidy_folder", "prefix", ["notes/a.md"]),
        ("/mcp", "keep_note", "path", ["notes/a.md"]),
        ("/mcp", "keep_note", "topic", []),
        ("/mcp", "tidy_folder", "path", []),
        ("/mcp-readonly", "keep_note", "path", []),
        ("/mcp-jobs", "tidy_folder", "prefix", []),
    ],
)
def test_arguments_of_offered_prompts_are_completed(
    server: Server, path: str, prompt: str, argument: str, values: list[str]
) -> None:
    params = {
        "ref": {"type": "ref/prompt", "name": prompt},
        "argument": {"name": argument, "value": "no"},
    }
    for version in (MODERN, LEGACY[-1]):
        answer = Mcp(server.client, path, version).result("completion/complete", params)
        assert answer["completion"]["values"] == values
        assert ("resultType" in answer) is (version == MODERN)
