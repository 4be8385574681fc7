"""Clients other people wrote, against a running server: each finds everything at the first try.

A report (see scripts/) holds what a client made of the answers, and each warning its library gave.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.run import (
    CLIENTS,
    FASTMCP_2,
    VERSION_OF_ERA,
    Client,
    Report,
    over_http,
    over_stdio,
)
from tests.drivers.server import COMMAND, Server, run_cli

# The first test that needs an environment waits for it to be installed.
pytestmark = pytest.mark.timeout(900)

PATH = "guides/coffee.md"
CONTENT = "# Coffee\n\nGrind, wait, pour. Cà phê sữa đá ☕\n"

READONLY = (
    "search_knowledge",
    "list_documents",
    "get_document",
    "get_document_for_rewrite",
    "batch_read",
)
GPT = (*READONLY, "upload_document", "update_document", "patch_document")
FULL = (*GPT, "delete_document", "ingest_document")


@dataclass(frozen=True, slots=True)
class Profile:
    path: str
    tools: tuple[str, ...]
    tool_count: int
    refusal: str
    """What the error for a tool that does not exist says."""


PROFILES = (
    Profile("/mcp", FULL, 10, "Unknown tool: no_such_tool"),
    Profile("/mcp-readonly", READONLY, 5, "not allowed"),
    Profile("/mcp-gpt", GPT, 8, "not allowed"),
    Profile("/mcp-gpt-full", FULL, 10, "not allowed"),
)
MAIN, _, GPT_PROFILE, _ = PROFILES

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
each_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One document, which no test changes."""
    with Server(tmp_path_factory.mktemp("clients") / "data") as running:
        running.create(PATH, CONTENT, title="Coffee")
        yield running


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same document, in a folder that no server holds."""
    folder = tmp_path_factory.mktemp("stdio") / "data"
    done = run_cli("put", PATH, "--title", "Coffee", data=folder, stdin=CONTENT)
    assert done.returncode == 0, done.stderr
    return folder


def answer_of(result: dict[str, Any]) -> Any:
    """What a tool said, in whichever form it was sent; sent in both, they agree."""
    assert not result.get("isError"), result
    texts = [json.loads(block["text"]) for block in result["content"] if block["type"] == "text"]
    structured = result.get("structuredContent")
    told = [*texts, *([] if structured is None else [structured])]
    assert told
    assert all(one == told[0] for one in told)
    return told[0]


def assert_found_everything(report: Report, client: Client, profile: Profile) -> None:
    assert report["warnings"] == []
    assert report["protocol_version"] == VERSION_OF_ERA[client.era]
    assert report["server_info"]["name"] == "zibaldone"
    assert report["ping"] is (True if client.era == "legacy" else None)

    assert set(report["tools"]) == set(profile.tools)
    assert len(report["tools"]) == profile.tool_count

    listed = answer_of(report["list_documents"])
    assert [item["document_id"] for item in listed["items"]] == [PATH]
    assert listed["next_offset"] is None
    assert answer_of(report["get_document"])["content"] == CONTENT
    # Not an error of the protocol or of the tool: the answer is that there is none.
    assert answer_of(report["missing"])["error"]

    error = report["unknown_tool_error"]
    assert error["code"] == (-32601 if client.era == "legacy" else -32602)
    assert profile.refusal in error["message"]

    resources = report["resources"]
    assert len(resources["uris"]) == 1
    assert [one["text"] for one in resources["first"]] == [CONTENT]
    assert resources["templates"]
    assert report["prompts"]


class TestHttp:
    @pytest.mark.requirement("000/U13", "7.3.h", "X-08", "X-36")
    @pytest.mark.requirement("001/U10a", "001/U10b", "001/U10c", "001/U10d")
    @pytest.mark.requirement("V1", "V2", "7.1.k", "000/D3.01")
    @each_profile
    @each_client
    def test_finds_everything(self, server: Server, client: Client, profile: Profile) -> None:
        report = over_http(client, server.url + profile.path, path=PATH)
        assert_found_everything(report, client, profile)

    @pytest.mark.requirement("X-37")
    @each_client
    def test_a_slash_at_the_end_changes_nothing(self, server: Server, client: Client) -> None:
        report = over_http(client, f"{server.url}{GPT_PROFILE.path}/", path=PATH)
        assert_found_everything(report, client, GPT_PROFILE)

    @pytest.mark.requirement("001/FM.1", "001/FM.2")
    def test_fastmcp_of_the_seed_has_nothing_to_warn_of(self, server: Server) -> None:
        report = over_http(FASTMCP_2, server.url + GPT_PROFILE.path, path=PATH)
        assert report["client"] == "fastmcp 2.10.5"
        assert_found_everything(report, FASTMCP_2, GPT_PROFILE)

    @pytest.mark.requirement("001/FM.2", "001/R2", "X-01")
    def test_fastmcp_of_the_seed_survives_204(self, data: Path) -> None:
        with Server(data, environment={"ZIBALDONE_NOTIFICATION_STATUS": "204"}) as running:
            running.create(PATH, CONTENT)
            report = over_http(FASTMCP_2, running.url + GPT_PROFILE.path, path=PATH)
        assert len(report["warnings"]) <= 1
        assert_found_everything({**report, "warnings": []}, FASTMCP_2, GPT_PROFILE)


class TestStdio:
    @each_client
    def test_finds_everything(self, data_folder: Path, client: Client) -> None:
        """A client reports each line that is not the protocol's, so there was none on stdout."""
        command = [*COMMAND, "--data", str(data_folder), "stdio"]
        report = over_stdio(client, command, path=PATH)
        assert_found_everything(report, client, MAIN)
