"""MCP as plain HTTP: requests, and answers read strictly."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from tests.drivers.answers import check_answer

JSON, SSE = "application/json", "text/event-stream"
BOTH = f"{JSON}, {SSE}"
MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

JSON_TYPE = "application/json; charset=utf-8"
SSE_TYPE = "text/event-stream; charset=utf-8"

PATHS = {"/mcp": 10, "/mcp-readonly": 5, "/mcp-gpt": 8, "/mcp-gpt-full": 10}
"""The seed's four paths and how many tools each has."""

_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_ONE_FRAME = re.compile(rb"\Aevent: message\ndata: ([^\r\n]+)\n\n\Z")


def frame_of(body: bytes) -> Any:
    """The envelope in a body that is exactly one frame."""
    found = _ONE_FRAME.match(body)
    assert found is not None, body
    return json.loads(found[1])


def frames_of(body: bytes) -> list[Any]:
    """The envelopes of a stream of several frames."""
    *frames, rest = body.split(b"\n\n")
    assert rest == b"", body
    return [frame_of(frame + b"\n\n") for frame in frames]


def envelope_of(answer: httpx.Response) -> dict[str, Any]:
    """The envelope, by the content type it came as."""
    kind = answer.headers["content-type"]
    if kind == SSE_TYPE:
        value = frame_of(answer.content)
    else:
        assert kind == JSON_TYPE, answer.headers
        value = answer.json()
    assert value["jsonrpc"] == "2.0"
    assert ("result" in value) != ("error" in value), value
    envelope: dict[str, Any] = value
    return envelope


@dataclass(frozen=True, slots=True)
class Mcp:
    """One path of one server, spoken to in one version."""

    client: httpx.Client
    path: str = "/mcp"
    version: str | None = None
    """None: no version is stated, as curl and old clients do."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def post(self, body: bytes | Any, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        plain = {"content-type": JSON, "accept": BOTH, **self.headers}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(self.path, content=content, headers={**plain, **given})

    def rpc(
        self, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> httpx.Response:
        params = dict(params or {})
        stated: dict[str, str] = {}
        if self.version == MODERN:
            params["_meta"] = {**modern_meta(), **params.get("_meta", {})}
            stated = modern_headers(method, params)
        elif self.version is not None:
            stated = {"mcp-protocol-version": self.version}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.post(message, **stated, **headers)

    def note(self, method: str, **headers: str) -> httpx.Response:
        return self.post({"jsonrpc": "2.0", "method": method}, **headers)

    def result(
        self, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> dict[str, Any]:
        answer = self.rpc(method, params, **headers)
        assert answer.status_code == 200, answer.text
        envelope = envelope_of(answer)
        assert "result" in envelope, envelope
        result: dict[str, Any] = envelope["result"]
        return result

    def error(
        self, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> dict[str, Any]:
        error: dict[str, Any] = envelope_of(self.rpc(method, params, **headers))["error"]
        return error

    def tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = self.result("tools/list")["tools"]
        return tools

    def outcome(self, tool: str, arguments: dict[str, Any], **headers: str) -> dict[str, Any]:
        """The whole result of a call, failed or not."""
        result = self.result("tools/call", {"name": tool, "arguments": arguments}, **headers)
        if not result["isError"]:
            check_answer(tool, text_of(result))
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a successful call answers."""
        result = self.outcome(tool, arguments)
        assert result["isError"] is False, result
        return text_of(result)

    def failure(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a failed call says."""
        result = self.outcome(tool, arguments)
        assert result["isError"] is True, result
        return text_of(result)


def text_of(result: dict[str, Any]) -> dict[str, Any]:
    """The object in the text of a call's result."""
    (content,) = result["content"]
    assert content["type"] == "text"
    found: dict[str, Any] = json.loads(content["text"])
    return found


def modern_meta(version: str = MODERN) -> dict[str, Any]:
    return {PROTOCOL_VERSION_META_KEY: version, CLIENT_CAPABILITIES_META_KEY: {}}


def modern_headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if method in _NAMED_BY:
        headers["mcp-name"] = params[_NAMED_BY[method]]
    return headers


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known.lower() == name]


def raw_post(port: int, path: str, body: bytes, headers: Sequence[tuple[str, str]]) -> RawAnswer:
    """A POST with these headers and no others, and the answer's headers as they are on the wire."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest("POST", path, skip_accept_encoding=True)
        connection.putheader("Content-Length", str(len(body)))
        for name, value in headers:
            connection.putheader(name, value.encode("latin-1"))
        connection.endheaders(body)
        answer = connection.getresponse()
        return RawAnswer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()
