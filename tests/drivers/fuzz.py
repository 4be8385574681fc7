"""Requests that a client could send by mistake or on purpose: nearly right, wrong, nonsense."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.drivers.catalogues import BY_NAME
from tests.drivers.mcp import BOTH, JSON, LEGACY, MODERN, PATHS, SSE, modern_headers, modern_meta
from zibaldone.protocol.methods import METHODS
from zibaldone.tools.schema import input_schema

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    headers: tuple[Header, ...]
    body: bytes


ARGUMENT_NAMES = sorted(
    {name for tool in BY_NAME.values() for name in input_schema(tool)["properties"]}
    | {"document_id", "count", "unknown"}
)

_ids = st.sampled_from(["a", "notes/a.md", "../up", "", "a//b", "tài liệu", "\u2028", "x" * 2_000])
_texts = st.one_of(_ids, st.text(max_size=20))
_numbers = st.one_of(
    st.integers(-2, 120),
    st.sampled_from([0.5, -1.5, 1e300, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63), 10**30]),
)
_json: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), _numbers, _texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


_values = st.one_of(_json, st.sampled_from([10, 60, 240, 252, 300, 900]).map(_deep))
_arguments = st.one_of(
    st.dictionaries(st.sampled_from(ARGUMENT_NAMES), _values, max_size=5),
    st.fixed_dictionaries(
        {"path": _ids},
        optional={"content": _texts, "old_str": _texts, "new_str": _texts, "metadata": _values},
    ),
    st.fixed_dictionaries({"query": _texts}, optional={"limit": _numbers}),
    _values,
)
_meta = st.one_of(
    st.builds(modern_meta),
    st.builds(modern_meta, st.sampled_from([*LEGACY, "2030-01-01"])),
    st.dictionaries(st.sampled_from(["progressToken", *modern_meta()]), _values, max_size=3),
    _values,
)
_tool_names = st.sampled_from([*BY_NAME, "move_document", "get.document", ""])
_params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(_tool_names, st.sampled_from(["keep_note", "tidy_folder"]), _values),
        "arguments": _arguments,
        "_meta": _meta,
        "uri": st.one_of(_texts.map("zibaldone:///{}".format), _values),
        "cursor": st.one_of(_texts, _values),
        "protocolVersion": st.one_of(st.sampled_from([*LEGACY, MODERN]), _values),
        "ref": st.one_of(st.just({"type": "ref/resource", "uri": "x"}), _values),
        "argument": st.one_of(st.just({"name": "path", "value": "a"}), _values),
        "level": st.one_of(st.just("info"), _values),
        "requestId": _values,
    },
)
_methods = st.sampled_from([*{name for _, name in METHODS}, "notifications/cancelled", "nope", ""])
_calls = st.fixed_dictionaries(
    {"name": _tool_names, "arguments": _arguments}, optional={"_meta": _meta}
)
_right = st.one_of(
    st.tuples(_methods, _params),
    st.tuples(st.just("tools/call"), _calls),
)
_ids_of_requests = st.one_of(st.integers(0, 9), st.integers(), st.text(max_size=5), _values)


def _message(request_id: Any, method: Any, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


_messages = st.one_of(
    _right.flatmap(lambda asked: st.builds(_message, _ids_of_requests, *map(st.just, asked))),
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.one_of(st.just("2.0"), _values),
            "id": _ids_of_requests,
            "method": st.one_of(_methods, _values),
            "params": st.one_of(_params, _values),
            "result": _values,
            "error": _values,
        },
    ),
    _values,
)
messages = st.one_of(_messages, _messages, _messages, st.lists(_messages, max_size=4))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _damaged(body: bytes, at: int, put: bytes) -> bytes:
    position = at % (len(body) + 1)
    return body[:position] + put + body[position + 1 :]


bodies = st.one_of(
    messages.map(_encoded),
    messages.map(_encoded),
    st.builds(_damaged, messages.map(_encoded), st.integers(0, 500), st.binary(max_size=3)),
    st.binary(max_size=40),
)

_known_values: dict[bytes, list[bytes]] = {
    b"accept": [value.encode() for value in (JSON, SSE, BOTH, "*/*", "a/b", f"{JSON};q=0")],
    b"mcp-protocol-version": [value.encode() for value in (*LEGACY, MODERN, "1999-01-01")],
    b"mcp-method": [b"tools/call", b"tools/list", b"initialize", b"=?base64?eA==?="],
    b"mcp-name": [b"list_documents", b"=?base64?eA==?=", b"=?base64?\xe9?=", b"=?base64?=?="],
    b"mcp-session-id": [b"abc"],
    b"last-event-id": [b"1"],
    b"x-request-id": [b"req-1", b"a b"],
    b"content-type": [b"application/json", b"text/plain", b"application/json; charset=latin-1"],
    b"host": [b"localhost", b"127.0.0.1:80", b"evil.example.org"],
    b"origin": [b"http://localhost:1", b"https://evil.example.org", b"null"],
    b"authorization": [b"Bearer x", b"Basic eDp5", b"Bearer"],
    b"x-api-key": [b"zib_wrong"],
    b"x-forwarded-for": [b"203.0.113.7"],
    b"content-length": [b"0", b"5", b"99999999999"],
}
_odd_bytes = st.binary(max_size=20).map(lambda value: value.translate(None, b"\r\n\0"))


_OUTER = (b"host", b"origin", b"content-length", b"x-forwarded-for")
_INNER = tuple(sorted(_known_values.keys() - {*_OUTER}))
"""Those that the protocol itself reads; the others decide whether it is reached at all."""


@st.composite
def _a_header(draw: st.DrawFn, names: tuple[bytes, ...]) -> Header:
    name = draw(st.sampled_from(names))
    values = st.sampled_from(_known_values[name])
    return name, draw(st.one_of(values, values, _odd_bytes))


def _seldom(usual: st.SearchStrategy[Any], rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 9).flatmap(lambda number: rare if number == 9 else usual)


_inner_headers = st.lists(_a_header(_INNER), max_size=3).map(tuple)
_any_headers = st.lists(_a_header(_OUTER + _INNER), min_size=1, max_size=5).map(tuple)
_headers = _seldom(_inner_headers, _any_headers)
_paths = _seldom(
    st.sampled_from([path + slash for path in (*PATHS, "/mcp-all") for slash in ("", "/")]),
    st.sampled_from(["/gpt-mcp/x/mcp", "/gpt-mcp//mcp", "/gpt-mcp/x/y/mcp", "/mcp//", "/MCP", "/"]),
)


@st.composite
def _modern(draw: st.DrawFn) -> HttpRequest:
    """A right request of the modern era, with one thing changed at most."""
    method, params = draw(_right)
    params = {**params, "_meta": modern_meta()}
    headers: dict[bytes, bytes] = {b"accept": draw(st.sampled_from(_known_values[b"accept"]))}
    try:
        stated = modern_headers(method, params)
        headers |= {name.encode(): value.encode("latin-1") for name, value in stated.items()}
    except (KeyError, AttributeError, UnicodeEncodeError):
        pass  # what it names is missing or no header can say it: one more wrong request
    headers |= dict(draw(_seldom(st.just(()), _any_headers)))
    body = _encoded(_message(draw(_ids_of_requests), method, params))
    return HttpRequest("POST", draw(st.sampled_from(sorted(PATHS))), tuple(headers.items()), body)


requests = st.one_of(
    st.builds(HttpRequest, st.just("POST"), _paths, _headers, bodies),
    _modern(),
    _modern(),
    st.builds(HttpRequest, st.just("POST"), _paths, _headers, messages.map(_encoded)),
    st.builds(
        HttpRequest,
        st.sampled_from(["GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS", "POST"]),
        _paths,
        _headers,
        bodies,
    ),
)
