"""Fuzz cases: what is sent, as a small JSON value that says all of it and can be made shorter.

    mcp    a JSON-RPC message, or several in a batch, to an MCP path
    rest   a request to a REST route
    file   a file in an allowed folder, and the call that ingests it
    raw    bytes for a socket, in parts

`damage` in an mcp or rest case puts other bytes somewhere into its body.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_from_bytes

from tests.drivers.mcp import BOTH, JSON, LEGACY, MODERN, SSE, modern_headers, modern_meta
from tests.nightly import files, raw_http
from tests.nightly.values import Schema, Values, encoded

Case = dict[str, Any]
Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    target: bytes
    """Path and query string as they stand in the request line."""
    headers: tuple[Header, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    url: str
    parameters: tuple[Schema, ...]
    body: Schema | None


@dataclass(frozen=True, slots=True)
class Surface:
    """What a server says of itself: its tools and its routes."""

    tools: dict[str, Schema]
    """Arguments by the name a tool has at `/mcp-all`."""
    operations: tuple[Operation, ...]


def described(tools: dict[str, Any], openapi: dict[str, Any]) -> Surface:
    """From the result of tools/list and the OpenAPI document."""
    operations = []
    for url, item in openapi["paths"].items():
        for method, spec in item.items():
            content = spec.get("requestBody", {}).get("content", {})
            operations.append(
                Operation(
                    method.upper(),
                    url,
                    tuple(spec.get("parameters", ())),
                    content.get("application/json", {}).get("schema"),
                )
            )
    return Surface(
        {tool["name"]: tool["inputSchema"] for tool in tools["tools"]}, tuple(operations)
    )


_OTHER_PATHS = ("/mcp", "/mcp-readonly", "/mcp-rag", "/mcp-gpt/", "/mcp/")
"""`/mcp-all` has every tool; the others show what a tool that is not offered looks like."""
_METHODS = (
    "initialize", "ping", "tools/list", "resources/list", "resources/templates/list",
    "resources/read", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
    "server/discover", "notifications/initialized", "notifications/cancelled", "tasks/get",
    "subscriptions/listen", "nope", "", "__init__",
)  # fmt: skip
_PARAMS: Schema = {
    "type": "object",
    "properties": {
        "name": {"enum": ["search_knowledge", "keep_note", "tidy_folder", "no tool"]},
        "arguments": {"type": "object"},
        "uri": {"enum": ["zibaldone:///notes/friday", "zibaldone:///", "file:///etc/passwd", "x:"]},
        "cursor": {"type": "string"},
        "protocolVersion": {"enum": [*LEGACY, MODERN, "1999-01-01"]},
        "capabilities": {"type": "object"},
        "ref": {
            "enum": [{"type": "ref/resource", "uri": "x"}, {"type": "ref/prompt", "name": "a"}]
        },
        "argument": {"enum": [{"name": "path", "value": "n"}, {"name": "path"}]},
        "level": {"enum": ["info", "loud"]},
        "requestId": {"type": "integer"},
        "_meta": {"type": "object"},
    },
}
_HEADERS: dict[str, tuple[str, ...]] = {
    "accept": (JSON, SSE, BOTH, "*/*", "a/b", f"{JSON};q=0", "text/*;q=abc", ";", ","),
    "mcp-protocol-version": (*LEGACY, MODERN, "1999-01-01", "é"),
    "mcp-method": ("tools/call", "tools/list", "=?base64?eA==?=", "=?base64?\xe9?="),
    "mcp-name": ("list_documents", "=?base64?eA==?=", "=?base64?=?="),
    "mcp-session-id": ("abc",),
    "last-event-id": ("1",),
    "x-request-id": ("req-1", "a b", "\xff"),
    "content-type": (JSON, "text/plain", f"{JSON}; charset=latin-1", "multipart/form-data"),
    "host": ("localhost", "127.0.0.1:80", "evil.example.org", "[::1]:9", ":", "localhost:x"),
    "origin": ("http://localhost:1", "https://evil.example.org", "null", "://", "http://[::1"),
    "authorization": ("Bearer x", "Basic eDp5", "Bearer", "Bearer \xe9", "bearer a.b.c"),
    "x-api-key": ("cp_wrong", "", "\xe9"),
    "x-forwarded-for": ("203.0.113.7",),
    "content-length": ("0", "5", "99999999999", "-1", "\xb2", "1e3"),
    "if-match": ("*", '"1"'),
    "range": ("bytes=0-1", "bytes=-", "lines=0-99999999999999999999"),
    "accept-encoding": ("gzip, br;q=0", "*;q=0"),
    "expect": ("100-continue",),
}
_OUTER = ("host", "origin", "content-length", "authorization", "x-api-key")
_INNER = tuple(name for name in _HEADERS if name not in _OUTER)


class Cases:
    """An endless supply, the same for the same seed."""

    def __init__(self, surface: Surface, chance: random.Random, scale: float = 1.0) -> None:
        self._surface = surface
        self._names = list(surface.tools)
        self._chance = chance
        self._values = Values(chance, scale)

    def in_process(self, *, file_share: float) -> Iterator[Case]:
        while True:
            luck = self._chance.random()
            if luck < file_share:
                yield {"kind": "file", "recipe": files.recipe(self._chance, self._values.size)}
            elif luck < 0.6:
                yield self._call()
            elif luck < 0.72:
                yield self._message()
            else:
                yield self._rest()

    def over_sockets(self) -> Iterator[Case]:
        ours = self.in_process(file_share=0.0)
        while True:
            if self._chance.random() < 0.5:
                yield raw_http.case(self._chance, self._values)
            else:
                yield next(ours)

    def _call(self) -> Case:
        name = self._chance.choice(self._names)
        params = {"name": name, "arguments": self._values.arguments(self._surface.tools[name])}
        return self._mcp("tools/call", params)

    def _message(self) -> Case:
        if self._values.likely(0.3):
            name = self._chance.choice([*self._names, "none", "rag.search_fts"])
            params: Any = {"name": name, "arguments": self._values.hostile()}
            case = self._mcp(self._chance.choice(("tools/call", *_METHODS)), params)
        else:
            case = self._mcp(self._chance.choice(_METHODS), self._values.arguments(_PARAMS))
        if self._values.likely(0.3):
            case["message"] = {
                self._chance.choice(("jsonrpc", "id", "method", "params", "result", "error")):
                self._values.hostile()
            }  # fmt: skip
        if self._values.likely(0.1):
            case["batch"] = self._chance.choice((0, 1, 2, 49, 50, 51, 300))
        return case

    def _mcp(self, method: str, params: Any) -> Case:
        case: Case = {
            "kind": "mcp",
            "path": self._chance.choice(_OTHER_PATHS) if self._values.likely(0.1) else "/mcp-all",
            "method": method,
            "params": params,
            "era": self._chance.choice((None, None, "2025-03-26", "2025-11-25", MODERN, MODERN)),
            "accept": self._chance.choice((JSON, JSON, SSE, BOTH)),
        }
        return self._finished(case)

    def _rest(self) -> Case:
        operation = self._chance.choice(self._surface.operations)
        while not operation.parameters and operation.body is None and self._values.likely(0.9):
            operation = self._chance.choice(
                self._surface.operations
            )  # /metrics: slow, and the same
        url = operation.url
        query: list[list[str]] = []
        for parameter in operation.parameters:
            value = self._in_url(parameter)
            if parameter["in"] == "path":
                url = url.replace(f"{{{parameter['name']}}}", value)
            elif parameter.get("required") or self._values.likely(0.5):
                query.append([parameter["name"], value])
        if self._values.likely(0.1):
            query.append(["unknown", "1"])
        if self._values.likely(0.05):
            query += query * self._chance.choice((1, 60))
        method = operation.method
        if self._values.likely(0.05):
            method = self._chance.choice(
                ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
            )
        case: Case = {"kind": "rest", "method": method, "url": url, "query": query}
        if operation.body is not None or self._values.likely(0.1):
            case["body"] = self._values.arguments(operation.body or {"type": "object"})
        return self._finished(case)

    def _in_url(self, parameter: Schema) -> str:
        value = self._values.right(parameter.get("schema", {}), parameter["name"])
        if self._values.likely(0.2):
            value = self._values.scalar()
        if isinstance(value, list):
            value = ",".join(str(part) for part in value)
        text = value if isinstance(value, str) else json.dumps(value)
        if self._values.likely(0.05):
            return quote_from_bytes(self._chance.randbytes(6))
        if self._values.likely(0.02):
            return quote(text * self._chance.choice((10, 1_000)), safe="/", errors="surrogatepass")
        return quote(text, safe="/", errors="surrogatepass")

    def _finished(self, case: Case) -> Case:
        values = self._values
        if values.likely(0.3):
            names = _INNER if values.likely(0.8) else _OUTER
            count = self._chance.choice((1, 1, 2, 4))
            case["headers"] = [self._header(name) for name in self._chance.choices(names, k=count)]
        if values.likely(0.3):
            case["is_ascii"] = False
        if values.likely(0.05):
            put = self._chance.randbytes(self._chance.choice((0, 1, 1, 3))).decode("latin-1")
            case["damage"] = {"at": self._chance.randrange(10_000), "put": put}
        return case

    def _header(self, name: str) -> list[str]:
        luck = self._chance.random()
        if luck < 0.8:
            return [name, self._chance.choice(_HEADERS[name])]
        if luck < 0.97:
            odd = bytes(b for b in self._chance.randbytes(12) if b not in b"\r\n\0")
            return [name, odd.decode("latin-1")]
        return [name, self._chance.choice(("a", ",", ";", "a/b,", "\xe9")) * self._values.size()]


def request_of(case: Case, folder: str = "") -> HttpRequest:
    """What is sent for a case; a file case writes its file into `folder` first."""
    match case["kind"]:
        case "mcp":
            return _mcp_request(case)
        case "rest":
            query = "&".join(f"{name}={value}" for name, value in case["query"])
            target = case["url"] + ("?" if query else "") + query
            body = _body(case, case["body"]) if "body" in case else b""
            headers = _headers(case, {"content-type": JSON} if body else {})
            return HttpRequest(case["method"], target.encode("latin-1", "replace"), headers, body)
        case "file":
            source = files.write(case["recipe"], folder)
            params = {"name": "ingest_document", "arguments": {"source": source, "path": "made/f"}}
            return _mcp_request({**_PLAIN_CALL, "params": params})
    raise ValueError(f"{case['kind']!r} is sent by other means")


_PLAIN_CALL: Case = {
    "kind": "mcp", "path": "/mcp-all", "method": "tools/call", "era": None, "accept": JSON
}  # fmt: skip


def _mcp_request(case: Case) -> HttpRequest:
    params = case["params"]
    stated = {"accept": case["accept"], "content-type": JSON}
    if case["era"] == MODERN:
        if isinstance(params, dict) and not any(name.startswith("$") for name in params):
            params = {**params, "_meta": {**modern_meta(), **_dict(params.get("_meta"))}}
            try:
                named = modern_headers(case["method"], params)
                stated |= {name: str(value) for name, value in named.items()}
            except (KeyError, AttributeError, TypeError, UnicodeEncodeError):
                stated["mcp-protocol-version"] = MODERN
    elif case["era"] is not None:
        stated["mcp-protocol-version"] = case["era"]
    message: Any = {"jsonrpc": "2.0", "id": 1, "method": case["method"], "params": params}
    if case["method"].startswith("notifications/"):
        del message["id"]
    message |= case.get("message", {})
    if "batch" in case:
        message = {"$list": message, "times": case["batch"]}
    return HttpRequest("POST", case["path"].encode(), _headers(case, stated), _body(case, message))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _headers(case: Case, stated: dict[str, str]) -> tuple[Header, ...]:
    given = [(name, value) for name, value in case.get("headers", ())]
    replaced = {name for name, _ in given}
    if "host" not in replaced:
        given.append(("host", "localhost"))
    kept = [pair for pair in stated.items() if pair[0] not in replaced]
    return tuple(
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in (*kept, *given)
    )


def _body(case: Case, value: Any) -> bytes:
    body = encoded(value, is_ascii=case.get("is_ascii", True))
    damage = case.get("damage")
    if damage is None:
        return body
    at: int = damage["at"] % (len(body) + 1)
    put: bytes = damage["put"].encode("latin-1")
    return body[:at] + put + body[at + 1 :]


def tool_of(case: Case) -> str:
    """Whose case it is, for counting and for telling findings apart."""
    if case["kind"] == "mcp":
        name = case["params"].get("name") if isinstance(case["params"], dict) else None
        return f"{case['method']} {name if isinstance(name, str) else ''}".strip()[:80]
    if case["kind"] == "rest":
        return f"{case['method']} {case['url'].split('/')[1][:40]}"
    return f"{case['kind']} {case['recipe']['form']}" if case["kind"] == "file" else "raw"
