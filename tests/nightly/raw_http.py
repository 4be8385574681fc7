"""Requests as bytes for a socket: what no client library would send."""

from __future__ import annotations

import random
from typing import Any

from tests.nightly.values import Values

_LINES = (
    b"GET /health HTTP/1.1",
    b"GET /documents HTTP/1.1",
    b"POST /mcp HTTP/1.1",
    b"POST /documents HTTP/1.1",
    b"PUT /documents/a HTTP/1.1",
    b"GET /search?query=a HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"GET http://localhost/health HTTP/1.1",
    b"CONNECT localhost:80 HTTP/1.1",
    b"BREW /pot HTTP/1.1",
    b"GET /health HTTP/1.0",
    b"GET /health HTTP/0.9",
    b"GET /health HTTP/2.0",
    b"PRI * HTTP/2.0",
    b"GET /health",
    b"GET  /health HTTP/1.1",
    b"get /health HTTP/1.1",
    b"GET /\xff\xfe HTTP/1.1",
    b"GET /%00%ff%zz HTTP/1.1",
    b"GET /documents/%F0%9F HTTP/1.1",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"",
)
_FIELDS = (
    b"Host: localhost",
    b"Host: localhost\r\nHost: localhost",
    b"Host: evil.example.org",
    b"Host:",
    b"Connection: close",
    b"Connection: keep-alive",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13",
    b"Content-Length: 0",
    b"Content-Length: 2",
    b"Content-Length: 2\r\nContent-Length: 3",
    b"Content-Length: 2, 2",
    b"Content-Length: -1",
    b"Content-Length: +2",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: \xb2",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    b"Expect: 100-continue",
    b"Expect: nothing",
    b"Accept: application/json",
    b"Accept: text/event-stream",
    b"Content-Type: application/json",
    b"X-Api-Key: cp_wrong",
    b"Authorization: Bearer \xff",
    b"X-Request-ID: a\tb",
    b" folded: line",
    b"a: b\r\n folded",
    b"no colon",
    b": no name",
    b"sp ace: x",
    b"nul: a\0b",
    b"bare: a\rb",
    b"bare: a\nb",
    b"\xff: x",
    b"Trailer: x",
    b"Cookie: " + b"a=b; " * 50,
)
_BODIES = (
    b"",
    b"{}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b'{"path":"made/raw","content":"x","upsert":true}',
    b"2\r\n{}\r\n0\r\n\r\n",
    b"2;ext=1\r\n{}\r\n0\r\nx: y\r\n\r\n",
    b"zz\r\n{}\r\n0\r\n\r\n",
    b"ffffffffffffffffff\r\n",
    b"-1\r\n\r\n",
    b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
)
_ENDS = (b"\r\n\r\n", b"\r\n\r\n", b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"\r\n", b"", b"\r\n\0\r\n")


def case(chance: random.Random, values: Values) -> dict[str, Any]:
    """Parts are sent one after another; `is_closed`: the sender then says that it is done."""
    fields = [b"Host: localhost"] if values.likely(0.8) else []
    fields += chance.choices(_FIELDS, k=chance.choice((0, 1, 2, 4)))
    parts = [{"text": _text(chance.choice(_LINES)), "times": 1}]
    parts += [{"text": _text(b"\r\n" + field), "times": 1} for field in fields]
    if values.likely(0.15):
        parts.append({"text": "\r\nx-many: 1", "times": values.size()})
    if values.likely(0.15):
        parts.append({"text": "\r\nx-long: ", "times": 1})
        parts.append({"text": chance.choice("a,;=\xe9"), "times": values.size()})
    parts.append({"text": _text(chance.choice(_ENDS)), "times": 1})
    parts.append({"text": _text(chance.choice(_BODIES)), "times": chance.choice((1, 1, 1, 50))})
    if values.likely(0.1):
        junk = chance.randbytes(chance.randrange(64))
        parts.insert(chance.randrange(len(parts) + 1), {"text": _text(junk), "times": 1})
    if values.likely(0.1):
        parts = parts[: chance.randrange(len(parts)) + 1]
    return {
        "kind": "raw",
        "parts": parts,
        "is_split": values.likely(0.2),
        "is_closed": values.likely(0.7),
    }


def sent(case: dict[str, Any]) -> list[bytes]:
    """The bytes of a raw case: several pieces if they go out apart."""
    parts = [part["text"].encode("latin-1") * part["times"] for part in case["parts"]]
    return parts if case["is_split"] else [b"".join(parts)]


def _text(data: bytes) -> str:
    return data.decode("latin-1")
