"""Quotas and rates that the operator sets: what a caller is told, over every way in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import JSON, SSE, Mcp
from tests.drivers.server import Server, parsed, run_cli

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def bounded(data: Path) -> Iterator[Server]:
    environment = {
        "ZIBALDONE_NAMESPACE_DOCUMENTS_MAX": "2",
        "ZIBALDONE_NAMESPACE_REVISIONS_MAX": "10",
        "ZIBALDONE_NAMESPACE_BYTES_MAX": "100000",
    }
    with Server(data, environment=environment) as server:
        yield server


def test_a_full_namespace_refuses_with_a_stable_code(bounded: Server) -> None:
    bounded.create("a")
    bounded.create("b")
    refused = bounded.client.post("/documents", json={"path": "c", "content": "x"})
    assert refused.status_code == 507
    assert refused.json()["code"] == "QUOTA_EXCEEDED"
    assert refused.json()["details"] == {"quota": "documents", "maximum": 2}
    for accept in (JSON, SSE):
        mcp = Mcp(bounded.client, headers={"accept": accept})
        failure = mcp.failure("upload_document", path="c", content="x")
        assert failure["code"] == "QUOTA_EXCEEDED"
    assert bounded.client.get("/documents/c").status_code == 404
    assert bounded.client.delete("/documents/a").status_code == 200
    bounded.create("c")
    long = bounded.client.put("/documents/c", json={"content": "x" * 200_000})
    assert long.json()["details"]["quota"] == "bytes"


def test_the_operator_sees_what_is_held(bounded: Server) -> None:
    bounded.create("a", "x" * 1_000)
    environment = {"ZIBALDONE_NAMESPACE_DOCUMENTS_MAX": "2"}
    shown = parsed(run_cli("usage", "--json", data=bounded.data, environment=environment))
    (held,) = shown["namespaces"]
    assert (held["namespace"], held["documents"], held["revisions"]) == ("default", 1, 1)
    assert held["bytes"] >= 1_000
    assert shown["quotas"] == {"documents": 2, "revisions": None, "bytes": None}
    table = run_cli("usage", data=bounded.data, environment=environment).stdout
    assert "default" in table
    assert "(quota of each)" in table


class TestRate:
    @pytest.fixture
    def keys(self, data: Path) -> tuple[Key, Key]:
        return create_key(data), create_key(data)

    @pytest.fixture
    def limited(self, data: Path, keys: tuple[Key, Key]) -> Iterator[Server]:
        environment = {"ZIBALDONE_REQUESTS_PER_MINUTE_MAX": "20"}
        with Server(data, environment=environment) as server:
            yield server

    def test_a_minutes_requests_then_429(self, limited: Server, keys: tuple[Key, Key]) -> None:
        mine, other = keys
        statuses = [
            limited.client.get("/documents", headers=mine.headers).status_code for _ in range(25)
        ]
        assert statuses[:20] == [200] * 20
        assert statuses[-1] == 429
        refused = limited.client.post("/mcp", json=LIST, headers=mine.headers)
        assert refused.status_code == 429
        assert refused.json()["code"] == "RATE_LIMITED"
        wait_s = int(refused.headers["retry-after"])
        assert 1 <= wait_s <= 4
        assert limited.client.get("/documents", headers=other.headers).status_code == 200
        assert limited.client.get("/health").status_code == 200
        time.sleep(wait_s)
        assert limited.client.get("/documents", headers=mine.headers).status_code == 200

    def test_each_message_of_a_batch_counts(self, limited: Server, keys: tuple[Key, Key]) -> None:
        batch = [{**LIST, "id": number} for number in range(15)]
        headers = {**keys[0].headers, "mcp-protocol-version": "2025-03-26"}
        first = limited.client.post("/mcp", json=batch, headers=headers)
        assert first.status_code == 200
        second = limited.client.post("/mcp", json=batch, headers=headers)
        assert second.status_code == 429


def test_all_of_it_is_off_by_default(server: Server) -> None:
    for _ in range(200):
        assert server.client.get("/documents").status_code == 200
    quotas = parsed(run_cli("usage", "--json", data=server.data))["quotas"]
    assert quotas == {"documents": None, "revisions": None, "bytes": None}
