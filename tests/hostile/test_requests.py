"""Requests that are large for nothing: names nobody knows, lists of empty lists."""

from __future__ import annotations

import json

import pytest

from tests.drivers.mcp import BOTH, JSON, SSE
from tests.drivers.server import Server
from tests.hostile.peers import Bystander, resident_mib
from zibaldone.limits import TOOL_REQUEST_BYTES_MAX


def _names(count: int) -> bytes:
    return b",".join(b'"n%d":0' % number for number in range(count))


_LISTS = b"[" + b"[]," * 8_000_000 + b"[]]"
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{%s}}}'
_LONG = b"x" * (TOOL_REQUEST_BYTES_MAX + 1)
_REST = {
    "unknown names": ("/search", b'{"query":"x",%s}' % _names(2_000_000), 422),
    "unknown names in a filter": (
        "/rag/search_fts",
        b'{"query":"x","filters":{%s}}' % _names(80_000),
        422,
    ),
    "lists": ("/search", b'{"query":"x","tags":%s}' % _LISTS, 422),
    "lists as metadata": (
        "/documents",
        b'{"path":"x","content":"x","metadata":{"a":%s}}' % _LISTS,
        422,
    ),
    "fewer lists as metadata": (
        "/documents",
        b'{"path":"x","content":"x","metadata":{"a":[%s[]]}}' % (b"[]," * 100_000),
        422,
    ),
    "a list instead of an object": ("/documents", _LISTS, 422),
    "a long query": ("/search", b'{"query":"%s"}' % _LONG, 413),
}


@pytest.mark.parametrize("name", _REST)
def test_a_large_request_stops_nobody(shared_server: Server, name: str) -> None:
    path, body, status = _REST[name]
    with Bystander(shared_server) as bystander:
        answer = shared_server.client.post(
            path, content=body, headers={"content-type": "application/json"}
        )
        bystander.wait_for_a_round()
    assert answer.status_code == status, answer.text[:500]
    assert len(answer.content) < 10_000
    assert resident_mib(shared_server) < 600


@pytest.mark.parametrize("accept", [JSON, SSE, BOTH])
@pytest.mark.parametrize(
    "arguments",
    [
        _names(2_000_000),
        b'"tags":' + _LISTS,
        b'"query":"%s"' % _LONG,
    ],
    ids=["names", "lists", "query"],
)
def test_a_large_call_stops_nobody(shared_server: Server, accept: str, arguments: bytes) -> None:
    headers = {"content-type": "application/json", "accept": accept}
    body = _CALL % (b"search_knowledge", arguments)
    with Bystander(shared_server) as bystander:
        answer = shared_server.client.post("/mcp", content=body, headers=headers)
        bystander.wait_for_a_round()
    assert answer.status_code == 200
    assert b"error" in answer.content.lower()
    assert len(answer.content) < 10_000


def test_a_tool_that_takes_a_text_takes_a_long_one(shared_server: Server) -> None:
    content = 'a, "b" [c]\n' * (TOOL_REQUEST_BYTES_MAX // 10)
    body = json.dumps({"path": "long", "content": content})
    answer = shared_server.client.post(
        "/documents", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 201


def test_a_message_of_a_batch_is_measured_by_itself(shared_server: Server) -> None:
    """No longer than its own text, and no shorter for being one of many."""
    long, short = (
        json.loads(_CALL % (b"search_knowledge", b'"query":"%s"' % query))
        for query in (_LONG, b"x")
    )
    answer = shared_server.client.post(
        "/mcp", json=[long, short], headers={"mcp-protocol-version": "2025-03-26"}
    )
    refused, answered = (envelope["result"] for envelope in answer.json())
    assert "PAYLOAD_TOO_LARGE" in refused["content"][0]["text"]
    assert answered["isError"] is False
