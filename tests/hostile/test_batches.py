"""JSON-RPC batches: a short request for an endless answer."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from tests.drivers.mcp import JSON, SSE, frame_of
from tests.drivers.server import Server
from tests.hostile.peers import Bystander, resident_mib
from tests.test_stdio import Stdio
from zibaldone.access.principal import LOCAL
from zibaldone.limits import BATCH_MESSAGES_MAX, BATCH_SMALL_ANSWER_BYTES, Limits
from zibaldone.protocol.dispatch import dispatch_batch
from zibaldone.protocol.surface import Surface
from zibaldone.protocol.versions import VERSIONS
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.profiles import Profile
from zibaldone.tools.spec import AnyTool, Arguments, Call, Runtime, ToolSpec

_BYTES_MAX = Limits().batch_response_bytes_max + (BATCH_MESSAGES_MAX + 1) * BATCH_SMALL_ANSWER_BYTES
_VERSION = {"mcp-protocol-version": "2025-03-26"}


def _calls(tool: str, *arguments: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": tool, "arguments": given},
        }
        for number, given in enumerate(arguments)
    ]


@pytest.mark.parametrize("accept", [JSON, SSE])
def test_many_large_documents_at_once(server: Server, accept: str) -> None:
    server.create("large", "0123456789abcde\n" * 500_000)
    batch = _calls("get_document_for_rewrite", *[{"path": "large"}] * 49)
    batch += [{**_calls("get_document", {"path": "large"})[0], "id": 49}]
    with Bystander(server):
        answer = server.client.post("/mcp", json=batch, headers={"accept": accept, **_VERSION})
    assert answer.status_code == 200
    assert len(answer.content) <= _BYTES_MAX
    assert resident_mib(server) < 500
    envelopes = frame_of(answer.content) if accept == SSE else answer.json()
    assert [envelope["id"] for envelope in envelopes] == list(range(50))
    codes = [envelope.get("error", {}).get("data", {}).get("code") for envelope in envelopes]
    assert codes[0] is None
    assert codes[1:] == ["RESPONSE_TOO_LARGE"] * 49


def test_many_large_documents_over_stdio(tmp_path: Any) -> None:
    with Stdio(tmp_path / "data", environment={}) as stdio:
        stdio.ask("initialize", {"protocolVersion": "2025-03-26"})
        stdio.call("upload_document", path="large", content="0123456789abcde\n" * 500_000)
        batch = _calls("get_document_for_rewrite", *[{"path": "large"}] * 50)
        stdio.write(json.dumps(batch).encode())
        envelopes = stdio.read()
    assert len(json.dumps(envelopes)) <= _BYTES_MAX + 10_000
    assert sum("result" in envelope for envelope in envelopes) == 1


def test_a_batch_has_the_time_of_one_call(data: Any) -> None:
    with Server(data, environment={"ZIBALDONE_TOOL_SECONDS_MAX": "0.000001"}) as server:
        batch = _calls("get_document", *[{"path": "x"}] * 3)
        started_s = time.perf_counter()
        answer = server.client.post("/mcp", json=batch, headers=_VERSION)
        assert time.perf_counter() - started_s < 20
    texts = [envelope["result"]["content"][0]["text"] for envelope in answer.json()]
    assert [json.loads(text)["code"] for text in texts] == ["DEADLINE_EXCEEDED"] * 3


class _Nothing(Arguments):
    """Of a tool that takes no arguments."""


def test_the_messages_of_a_batch_share_one_deadline() -> None:
    """Each is done in time, and all of them together are not."""

    async def wait(call: Call, given: _Nothing) -> dict[str, str]:
        del call, given
        await asyncio.sleep(0.1)
        return {}

    tool: AnyTool = ToolSpec(
        "wait", "Wait", "Waits.", arguments=_Nothing, result=dict, effect="read", handler=wait
    )
    surface = Surface(Profile("mcp", "/mcp", ("wait",)), Catalogue((tool,)))
    runtime = SimpleNamespace(limits=Limits(tool_seconds_max=0.4))
    call = Call(cast("Runtime", runtime), LOCAL)
    batch = _calls("wait", *[{}] * 6)
    answers = asyncio.run(dispatch_batch(batch, VERSIONS["2025-03-26"], surface, call))
    last = json.loads(orjson.dumps(answers))[-1]["result"]["content"][0]["text"]
    assert json.loads(last)["code"] == "DEADLINE_EXCEEDED"


def test_writes_are_answered_though_there_is_no_room(server: Server) -> None:
    server.create("large", "0123456789abcde\n" * 500_000)
    batch = [
        *_calls("get_document_for_rewrite", {"path": "large"}, {"path": "large"}),
        {**_calls("upload_document", {"path": "small", "content": "x"})[0], "id": 2},
    ]
    envelopes = server.client.post("/mcp", json=batch, headers=_VERSION).json()
    assert "error" in envelopes[1]
    assert json.loads(envelopes[2]["result"]["content"][0]["text"])["status"] == "created"


def test_others_are_served_between_the_messages() -> None:
    """Most are answered without waiting for anything; fifty of them may take half a second."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    surface = Surface(Profile("mcp", "/mcp", ()), Catalogue(()))
    call = Call(cast("Runtime", SimpleNamespace(limits=Limits())), LOCAL)

    async def turns_of_others() -> int:
        batch = asyncio.create_task(
            dispatch_batch([ping] * BATCH_MESSAGES_MAX, VERSIONS["2025-03-26"], surface, call)
        )
        turns = 0
        while not batch.done():
            turns += 1
            await asyncio.sleep(0)
        assert len(batch.result()) == BATCH_MESSAGES_MAX
        return turns

    assert asyncio.run(turns_of_others()) >= BATCH_MESSAGES_MAX
