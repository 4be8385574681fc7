"""When something inside breaks: the client still gets a whole answer, and never a 5xx."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import httpx2 as httpx
import pytest
from typing_extensions import TypedDict

from tests.drivers.engines import backend_of
from tests.drivers.golden import GOLDEN
from tests.drivers.in_process import application, post
from tests.drivers.mcp import (
    JSON,
    MODERN,
    SSE,
    Mcp,
    envelope_of,
    frames_of,
    modern_headers,
    modern_meta,
    text_of,
)
from tests.drivers.server import Server
from zibaldone.tools.spec import Answer, AnyTool, Arguments, Call, ToolSpec

CALLS: dict[str, dict[str, Any]] = {
    "search_knowledge": {"query": "anything"},
    "list_documents": {},
    "get_document": {"path": "faults/a"},
    "get_document_for_rewrite": {"path": "faults/a"},
    "batch_read": {"paths": ["faults/a"]},
    "upload_document": {"path": "faults/new", "content": "text"},
    "update_document": {"path": "faults/a", "content": "other"},
    "patch_document": {"path": "faults/a", "old_str": "text", "new_str": "other"},
    "delete_document": {"path": "faults/a"},
    "ingest_document": {"path": "faults/new", "text": "text"},
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose tables were taken away while it runs."""
    with Server(tmp_path_factory.mktemp("faults") / "data") as server:
        server.create("faults/a", "text")
        for table in ("documents", "chunks"):
            backend_of(server.data).execute(f"ALTER TABLE {table} RENAME TO {table}_gone")
        yield server


class TestABrokenStore:
    def test_every_tool_is_tried(self) -> None:
        assert set(CALLS) == {tool["name"] for tool in _listed()}

    @pytest.mark.requirement("000/FR.11", "000/FR.12", "000/FR.13")
    @pytest.mark.parametrize("version", [None, "2025-11-25", MODERN])
    @pytest.mark.parametrize("tool", CALLS)
    def test_a_tool_says_so_in_its_result(
        self, broken: Server, tool: str, version: str | None
    ) -> None:
        mcp = Mcp(broken.client, version=version)
        params = {"name": tool, "arguments": CALLS[tool]}
        results = []
        for accept in (JSON, SSE):
            answer = mcp.rpc("tools/call", params, accept=accept, x_request_id="same")
            assert answer.status_code == 200
            results.append(envelope_of(answer)["result"])
        assert results[0] == results[1]
        if tool == "batch_read":
            (item,) = text_of(results[0])["items"] if not results[0]["isError"] else [{}]
            failure = item.get("error") or text_of(results[0])
        else:
            assert results[0]["isError"] is True
            failure = text_of(results[0])
        assert {"code", "status", "message"} <= failure.keys()
        assert failure["status"] >= 500
        assert failure["message"]

    @pytest.mark.parametrize("method", ["resources/list", "resources/read"])
    def test_a_resource_is_not_said_to_be_missing(self, broken: Server, method: str) -> None:
        error = Mcp(broken.client).error(method, {"uri": "zibaldone:///faults/a"})
        assert error["code"] == -32603

    def test_what_needs_no_store_still_works(self, broken: Server) -> None:
        mcp = Mcp(broken.client)
        assert len(mcp.tools()) == 10
        assert mcp.result("ping") == {}


class NoArguments(Arguments):
    pass


async def _odd_values(call: Call, given: NoArguments) -> Answer:
    return {
        "when": datetime(2026, 11, 15, 12, 30, tzinfo=UTC),
        "day": date(2026, 11, 15),
        "id": uuid.UUID(int=7),
        "path": PurePosixPath("a/b"),
        "amount": Decimal("1.50"),
    }


async def _breaks(call: Call, given: NoArguments) -> Answer:
    await call.progress(1, 2, "half way")
    raise RuntimeError("the secret reason")


async def _unsayable(call: Call, given: NoArguments) -> Answer:
    return {"number": 2**70}


class AnyAnswer(TypedDict):
    pass


def _tool(name: str, handler: Any) -> AnyTool:
    return ToolSpec(
        name=name,
        title=name,
        description=name,
        arguments=NoArguments,
        result=AnyAnswer,
        effect="read",
        handler=handler,
        reports_progress=True,
    )


TOOLS = (
    _tool("odd.values", _odd_values),
    _tool("breaks", _breaks),
    _tool("unsayable", _unsayable),
)


@pytest.fixture
def app(data: Path) -> Iterator[Any]:
    profile = {"faults": [tool.name for tool in TOOLS]}
    with application(data, *TOOLS, profiles=profile) as built:
        yield built


def answered(
    app: Any, tool: str, accept: str, *, token: str | None = None, modern: bool = False
) -> httpx.Response:
    params: dict[str, Any] = {"name": tool, "arguments": {}, "_meta": {}}
    headers = {"accept": accept}
    if modern:
        params["_meta"] |= modern_meta()
        headers |= modern_headers("tools/call", params)
    if token is not None:
        params["_meta"]["progressToken"] = token
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return asyncio.run(post(app, "/mcp-faults", message, headers))


class TestAToolOfOurOwn:
    @pytest.mark.requirement("000/FR.08")
    @pytest.mark.parametrize("accept", [JSON, SSE])
    def test_values_that_json_lacks_become_text(self, app: Any, accept: str) -> None:
        result = envelope_of(answered(app, "odd.values", accept))["result"]
        assert text_of(result) == {
            "when": "2026-11-15T12:30:00+00:00",
            "day": "2026-11-15",
            "id": "00000000-0000-0000-0000-000000000007",
            "path": "a/b",
            "amount": "1.50",
        }

    def test_both_spellings_are_callable(self, app: Any) -> None:
        dotted, underscored = (
            envelope_of(answered(app, name, JSON)) for name in ("odd.values", "odd_values")
        )
        assert dotted == underscored

    @pytest.mark.requirement("000/R9", "000/FR.13")
    @pytest.mark.parametrize("accept", [JSON, SSE])
    @pytest.mark.parametrize("modern", [False, True])
    def test_a_tool_that_breaks_is_a_whole_answer_without_its_reason(
        self, app: Any, accept: str, modern: bool
    ) -> None:
        answer = answered(app, "breaks", accept, modern=modern)
        assert answer.status_code == 200
        result = envelope_of(answer)["result"]
        assert result["isError"] is True
        assert text_of(result)["code"] == "INTERNAL"
        assert b"secret" not in answer.content

    def test_what_an_endless_name_may_mean_is_not_looked_for(self, app: Any) -> None:
        started_s = time.thread_time()
        answer = answered(app, "odd.value" * 1_000_000, JSON)
        assert time.thread_time() - started_s < 0.5
        assert len(answer.content) < 1_000

    @pytest.mark.requirement("000/R9")
    def test_a_stream_that_breaks_ends_with_a_whole_frame(self, app: Any) -> None:
        progress, last = frames_of(answered(app, "breaks", SSE, token="t").content)
        assert progress["params"]["message"] == "half way"
        assert last["result"]["isError"] is True

    @pytest.mark.requirement("000/FR.13", "000/R9")
    @pytest.mark.parametrize("token", [None, "t"])
    @pytest.mark.parametrize("modern", [False, True])
    def test_an_answer_that_cannot_be_said_is_an_error_that_can(
        self, app: Any, token: str | None, modern: bool
    ) -> None:
        answer = answered(app, "unsayable", SSE, token=token, modern=modern)
        assert answer.status_code == 200
        result = envelope_of(answer)["result"]
        assert result["isError"] is True
        assert text_of(result)["code"] == "INTERNAL"


def _listed() -> list[dict[str, Any]]:
    golden = GOLDEN / "tools-list-2025-11-25.json"
    tools: list[dict[str, Any]] = json.loads(golden.read_bytes())["result"]["tools"]
    return tools
