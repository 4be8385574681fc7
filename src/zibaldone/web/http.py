"""What every endpoint needs of HTTP, directly on ASGI.

Endpoints are ASGI applications: a framework's request and response objects would cost as much as
the rest of a read (docs/benchmarks.md, "HTTP").
"""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any

import orjson

from zibaldone.errors import (
    BadRequest,
    InsufficientScope,
    IssuerUnavailable,
    MethodNotAllowed,
    PayloadTooLarge,
    TooManyRequests,
    Unauthenticated,
    ZibaldoneError,
)
from zibaldone.limits import REQUEST_ID_CHARS_MAX
from zibaldone.text.json_values import ValueCount, load_json

HttpScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Endpoint = Callable[[HttpScope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON_TYPE: Header = (b"content-type", b"application/json; charset=utf-8")
_REQUEST_ID = re.compile(rf"[\w.:/+=@-]{{1,{REQUEST_ID_CHARS_MAX}}}", re.ASCII)

# State of a request, kept in its ASGI scope.
_HEADERS_KEY = "zibaldone.headers"
_REQUEST_ID_KEY = "zibaldone.request_id"
_STARTED_KEY = "zibaldone.answer_started"
KEY_ID_KEY = "zibaldone.key_id"
"""Who is called for, once the caller is known."""
EXTRA_HEADERS_KEY = "zibaldone.extra_headers"
"""Headers to add to the answer to this request."""


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


def headers_of(scope: HttpScope) -> dict[bytes, bytes]:
    """The headers by name. Of one that is repeated, the first value."""
    headers: dict[bytes, bytes] | None = scope.get(_HEADERS_KEY)
    if headers is None:
        headers = scope[_HEADERS_KEY] = dict(reversed(scope["headers"]))
    return headers


def header(scope: HttpScope, name: bytes) -> str | None:
    """The value of a header, stripped, or None. If it is repeated, the first value."""
    value = headers_of(scope).get(name)
    return None if value is None else value.decode("latin-1").strip()


def has_twice(scope: HttpScope, name: bytes) -> bool:
    """Whether the request has the header more than once."""
    headers: list[Header] = scope["headers"]
    if len(headers_of(scope)) == len(headers):
        return False
    return sum(given == name for given, _ in headers) > 1


def request_id(scope: HttpScope) -> str:
    """The caller's X-Request-ID if it is valid, else a new one; the same for the whole request."""
    known: str | None = scope.get(_REQUEST_ID_KEY)
    if known is None:
        given = header(scope, b"x-request-id")
        is_valid = given is not None and _REQUEST_ID.fullmatch(given)
        known = given if given and is_valid else f"{random.getrandbits(64):016x}"
        scope[_REQUEST_ID_KEY] = known
    return known


async def next_part(receive: Receive) -> tuple[bytes, bool]:
    """A part of the body, and whether more follows."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


def payload_too_large(bytes_max: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"The request body is larger than {bytes_max} bytes.", bytes_max=bytes_max
    )


def parse_object(body: bytes, count: ValueCount | None = None) -> dict[str, Any]:
    """`count`: of the values in it, where they were counted already."""
    try:
        value = load_json(body, count=count)
    except orjson.JSONDecodeError as problem:
        raise BadRequest(f"The body is not valid JSON: {problem}", field="body") from None
    if not isinstance(value, dict):
        raise BadRequest("The body must be a JSON object.", field="body")
    return value


def has_started(scope: HttpScope) -> bool:
    """Whether an answer has begun; then no other can be sent."""
    return _STARTED_KEY in scope


async def send_start(scope: HttpScope, send: Send, status: int, headers: Iterable[Header]) -> None:
    await send(_start(scope, status, headers))


async def send_body(
    scope: HttpScope, send: Send, status: int, body: bytes, headers: Iterable[Header]
) -> None:
    await send_pieces(scope, send, status, (body,), headers)


async def send_pieces(
    scope: HttpScope, send: Send, status: int, pieces: Sequence[bytes], headers: Iterable[Header]
) -> None:
    """A body that is not joined: the transport writes the pieces at once."""
    length = () if status == 204 else ((b"content-length", b"%d" % sum(map(len, pieces))),)
    await send(_start(scope, status, (*headers, *length)))
    *others, last = (b"",) if scope["method"] == "HEAD" else pieces
    for piece in others:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": last})


def _start(scope: HttpScope, status: int, headers: Iterable[Header]) -> Message:
    scope[_STARTED_KEY] = True
    all_headers = [*headers, (b"x-request-id", request_id(scope).encode())]
    extra = scope.get(EXTRA_HEADERS_KEY)
    if extra is not None:
        all_headers += extra
    return {"type": "http.response.start", "status": status, "headers": all_headers}


def send_json(
    scope: HttpScope, send: Send, status: int, value: Any, headers: Iterable[Header] = ()
) -> Awaitable[None]:
    return send_body(scope, send, status, orjson.dumps(value), (JSON_TYPE, *headers))


async def send_error(
    scope: HttpScope, send: Send, error: ZibaldoneError, headers: Iterable[Header] = ()
) -> None:
    value = {
        "code": error.code,
        "message": error.message,
        "details": error.details,
        "request_id": request_id(scope),
    }
    extra: list[Header] = []
    if isinstance(error, Unauthenticated | InsufficientScope):
        extra.append((b"www-authenticate", error.challenge.encode()))
    if isinstance(error, TooManyRequests | IssuerUnavailable):
        extra.append((b"retry-after", str(error.details.get("retry_after", 1)).encode()))
    body = orjson.dumps(value, default=str)
    await send_body(scope, send, error.status, body, (JSON_TYPE, *extra, *headers))


async def refuse_method(scope: HttpScope, send: Send, allowed: str) -> None:
    error = MethodNotAllowed(f"Use {allowed} for this URL.", allowed=allowed.split(", "))
    await send_error(scope, send, error, [(b"allow", allowed.encode())])
