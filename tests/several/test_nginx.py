"""Three servers behind nginx are as one; and the short form of `make storm`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.drivers.mcp import Mcp, envelope_of
from tests.several.deployment import Deployment, deployment
from tests.several.storm import storm

PATCHES = 50
END = "(end)"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("several")) as started:
        yield started


@pytest.fixture
def client(running: Deployment) -> httpx.Client:
    running.nginx.client.headers.update(running.headers)
    return running.nginx.client


def test_any_request_may_go_to_any_server(running: Deployment, client: httpx.Client) -> None:
    for number in range(12):
        path = f"any/{number}"
        made = client.post("/documents", json={"path": path, "content": f"a zebra, {number}"})
        assert made.status_code == 201
        for server in running.servers:
            found = server.client.get(f"/documents/{path}", headers=running.headers)
            assert found.json()["revision"] == 1
            listed = server.client.get(
                "/documents", params={"prefix": path}, headers=running.headers
            )
            assert [item["document_id"] for item in listed.json()["items"]] == [path]


def test_a_session_begun_at_one_server_goes_on_at_the_others(running: Deployment) -> None:
    first = Mcp(running.servers[0].client, "/mcp", headers=running.headers)
    begun = first.post(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
    )
    assert begun.status_code == 200
    session = begun.headers["mcp-session-id"]
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "list_documents", "arguments": {}},
    }
    for server in running.servers:
        mcp = Mcp(server.client, "/mcp", headers=running.headers)
        answer = mcp.post(call, mcp_session_id=session, mcp_protocol_version="2025-06-18")
        assert answer.status_code == 200
        assert "result" in envelope_of(answer)


def test_fifty_patches_of_one_document_through_three_servers_all_land(
    running: Deployment, client: httpx.Client
) -> None:
    path = "shared/log"
    assert client.post("/documents", json={"path": path, "content": END}).status_code == 201

    def append(number: int) -> int:
        change = {"old_str": END, "new_str": f"e{number} {END}"}
        return client.patch(f"/documents/{path}", json=change).status_code

    with ThreadPoolExecutor(PATCHES) as threads:
        assert list(threads.map(append, range(PATCHES))) == [200] * PATCHES
    for server in running.servers:
        stored = server.client.get(
            f"/documents/{path}", params={"view": "full"}, headers=running.headers
        ).json()
        assert sorted(stored["content"].split()) == sorted(
            [*(f"e{n}" for n in range(PATCHES)), END]
        )
        assert stored["revision"] == PATCHES + 1


@pytest.mark.requirement("K1")
@pytest.mark.timeout(400)
def test_processes_that_die_under_load_lose_nothing(tmp_path: Path) -> None:
    outcome = storm(20.0, tmp_path)
    assert outcome.report.problems == []
    assert outcome.report.acknowledged > 0
    assert sum(outcome.kills.values()) > 0
