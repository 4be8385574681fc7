"""A name that a caller made up does not come back whole, however long it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.drivers.mcp import JSON, LEGACY, MODERN, SSE, Mcp
from tests.drivers.server import Server

LONG = "n" * 1_000_000
HEADER_LONG = "n" * 14_000
ANSWER_BYTES_MAX = 2_000

PATHS = ("/mcp", "/mcp-readonly", "/mcp-gpt", "/mcp-rag", "/mcp-all")

MESSAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "tool": ("tools/call", {"name": LONG, "arguments": {}}),
    "dotted tool": ("tools/call", {"name": "rag." * 100_000, "arguments": {}}),
    "prompt": ("prompts/get", {"name": LONG}),
    "resource": ("resources/read", {"uri": f"zibaldone:///{LONG}"}),
    "foreign resource": ("resources/read", {"uri": f"{LONG}:///a"}),
    "method": (LONG, {}),
    "cursor": ("resources/list", {"cursor": LONG}),
    "reference": ("completion/complete", {"ref": {"type": LONG}, "argument": {}}),
    "level": ("logging/setLevel", {"level": LONG}),
}


@pytest.mark.parametrize("accept", [JSON, SSE])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", MESSAGES)
def test_over_mcp(shared_server: Server, path: str, accept: str, name: str) -> None:
    method, params = MESSAGES[name]
    before = len(shared_server.log())
    for version in (None, *LEGACY):
        mcp = Mcp(shared_server.client, path, version=version)
        answer = mcp.rpc(method, params, accept=accept)
        assert len(answer.content) < ANSWER_BYTES_MAX
        assert "error" in answer.text
    assert len(shared_server.log()) - before < ANSWER_BYTES_MAX * (1 + len(LEGACY))


@pytest.mark.parametrize("path", PATHS)
def test_in_the_modern_era(shared_server: Server, path: str) -> None:
    """There the name is in a header too, which has its own bound."""
    mcp = Mcp(shared_server.client, path, version=MODERN)
    for method, params in (
        ("tools/call", {"name": HEADER_LONG, "arguments": {}}),
        ("prompts/get", {"name": HEADER_LONG}),
        ("resources/read", {"uri": f"zibaldone:///{HEADER_LONG}"}),
        (HEADER_LONG, {}),
    ):
        answer = mcp.rpc(method, params)
        assert "error" in answer.text
        assert len(answer.content) < ANSWER_BYTES_MAX
    answer = Mcp(shared_server.client, path).rpc("ping", {}, mcp_protocol_version=HEADER_LONG)
    assert "error" in answer.text
    assert len(answer.content) < ANSWER_BYTES_MAX


@pytest.mark.parametrize(
    "url",
    [
        f"/documents?{HEADER_LONG}=1",
        f"/documents?{HEADER_LONG}=1&{HEADER_LONG}=2",
        f"/documents/{HEADER_LONG}",
        f"/documents/a/revisions/{'9' * 14_000}",
        f"/jobs/{HEADER_LONG}",
        f"/jobs?state={HEADER_LONG}",
        f"/search?query=a&limit={HEADER_LONG}",
        f"/{HEADER_LONG}",
        f"/mcp-{HEADER_LONG}",
        f"/gpt-mcp/{HEADER_LONG}/mcp",
    ],
    ids=lambda url: url.replace(HEADER_LONG, "LONG")[:40],
)
def test_over_rest(shared_server: Server, url: str) -> None:
    answer = shared_server.client.get(url)
    assert 400 <= answer.status_code < 500
    assert len(answer.content) < ANSWER_BYTES_MAX
