"""Checks every request before any route sees it: size, Host, Origin.

It wraps the whole application, so that no route can miss it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from zibaldone.access.loopback import is_loopback, without_port
from zibaldone.errors import (
    BadRequest,
    Forbidden,
    HeadersTooLarge,
    Internal,
    MisdirectedRequest,
    ShuttingDown,
    UrlTooLong,
    ZibaldoneError,
)
from zibaldone.jobs.supervisor import Supervisor
from zibaldone.limits import HEADERS_MAX, URL_BYTES_MAX
from zibaldone.web.gone import GONE
from zibaldone.web.http import (
    EXTRA_HEADERS_KEY,
    KEY_ID_KEY,
    ClientGone,
    Endpoint,
    Header,
    HttpScope,
    Receive,
    Send,
    has_started,
    has_twice,
    header,
    headers_of,
    payload_too_large,
    request_id,
    send_body,
    send_error,
)
from zibaldone.web.pace import STRANGERS, Pace

_log = logging.getLogger("zibaldone.web")


STOPPING = "the server stops"
"""With this message the server cancels requests when it has no more time for them."""


_LENGTH_DIGITS_MAX = 20
"""Of 2**64; `int` raises for thousands of them."""


@dataclass(frozen=True, slots=True)
class GuardRules:
    body_bytes_max: int
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (
        b"access-control-allow-headers",
        b", ".join(
            (
                b"accept",
                b"authorization",
                b"content-type",
                b"mcp-method",
                b"mcp-name",
                b"mcp-protocol-version",
                b"mcp-session-id",
                b"x-api-key",
                b"x-request-id",
            )
        ),
    ),
    (b"access-control-max-age", b"600"),
)


class Guard:
    def __init__(
        self,
        inner: Endpoint,
        rules: GuardRules,
        pace: Pace,
        background: Supervisor | None = None,
    ) -> None:
        self._inner = inner
        self._pace = pace
        self._background = background or Supervisor()
        self._rules = rules
        self._hosts = frozenset(host.lower() for host in rules.allowed_hosts)
        self._last_host: bytes | None = None
        """The Host that was allowed last: most requests have the same."""

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _follow_lifespan(receive, send, self._background)
            return
        if scope["type"] != "http":
            return  # a websocket: returning without accepting refuses it
        cors_headers = self._cors_headers(scope)
        if cors_headers:
            scope[EXTRA_HEADERS_KEY] = cors_headers
        try:
            self._check(scope)
            if scope["method"] == "OPTIONS" and cors_headers:
                await send_body(scope, send, 204, b"", _PREFLIGHT)
            else:
                await self._inner(scope, receive, send)
        except ClientGone:
            return
        except (Exception, asyncio.CancelledError) as problem:
            if _is_gone(problem):
                return
            error = _as_error(problem, scope)
            if error is None:
                raise
            if not has_started(scope):
                await self._refuse(scope, send, error)

    async def _refuse(self, scope: HttpScope, send: Send, error: ZibaldoneError) -> None:
        """In turn: who is refused asks again at once."""
        try:
            await self._pace.turn(scope.get(KEY_ID_KEY, STRANGERS))
        except asyncio.CancelledError as problem:
            if _is_gone(problem):
                return
            if problem.args != (STOPPING,):
                raise
        await send_error(scope, send, error)

    def _cors_headers(self, scope: HttpScope) -> tuple[Header, ...]:
        """Headers for web pages of the allowed origins."""
        if not self._rules.allowed_origins:
            return ()
        origin = header(scope, b"origin")
        if origin is None or origin not in self._rules.allowed_origins:
            return ()
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", b"mcp-session-id, www-authenticate, x-request-id"),
            (b"vary", b"origin"),
        )

    def _check(self, scope: HttpScope) -> None:
        if len(scope["headers"]) > HEADERS_MAX:
            message = f"The request has more than {HEADERS_MAX} headers."
            raise HeadersTooLarge(message, headers_max=HEADERS_MAX)
        if len(scope["query_string"]) + len(scope.get("raw_path") or b"") > URL_BYTES_MAX:
            raise UrlTooLong(f"The URL is over {URL_BYTES_MAX} bytes.", bytes_max=URL_BYTES_MAX)
        headers = headers_of(scope)
        length = headers.get(b"content-length")
        if length is not None and length.isdigit():
            if len(length) > _LENGTH_DIGITS_MAX:  # zeros, which a parser of HTTP lets through
                raise BadRequest("The Content-Length has too many digits.", field="content-length")
            if int(length) > self._rules.body_bytes_max:
                raise payload_too_large(self._rules.body_bytes_max)
        if has_twice(scope, b"host"):
            raise BadRequest("The request has two Host headers.", field="host")
        # DNS rebinding: a web page can make a browser call loopback under the page's own host
        # name, which then is in the Host header.
        host = headers.get(b"host")
        if host is not None and host != self._last_host:
            if not self._is_ours(host.decode("latin-1").strip()):
                raise MisdirectedRequest(
                    "This server does not answer to that Host. To allow it, add it to the setting "
                    "allowed_hosts."
                )
            self._last_host = host
        if b"origin" in headers and not self._may_call(
            headers[b"origin"].decode("latin-1").strip()
        ):
            raise Forbidden(
                "Pages of that origin may not call this server. To allow it, add it to the setting "
                "allowed_origins."
            )

    def _is_ours(self, host: str) -> bool:
        name = host.lower()
        bare = without_port(name)
        return is_loopback(bare) or bare in self._hosts or name in self._hosts

    def _may_call(self, origin: str) -> bool:
        if origin in self._rules.allowed_origins:
            return True
        scheme, mark, rest = origin.lower().partition("://")
        return bool(mark) and scheme in ("http", "https") and is_loopback(without_port(rest))


def _is_gone(problem: BaseException) -> bool:
    """Whether the request was cancelled because its client has left."""
    return isinstance(problem, asyncio.CancelledError) and problem.args == (GONE,)


def _as_error(problem: BaseException, scope: HttpScope) -> ZibaldoneError | None:
    """What the caller is told; None where the request was cancelled by whoever serves it."""
    if isinstance(problem, ZibaldoneError):
        return problem
    if isinstance(problem, asyncio.CancelledError):
        is_stopping = problem.args == (STOPPING,)
        return ShuttingDown("The server is shutting down. Try again.") if is_stopping else None
    _log.error("request %s failed", request_id(scope), exc_info=problem)
    return Internal("The request failed. The server's log has the reason under this request id.")


async def _follow_lifespan(receive: Receive, send: Send, background: Supervisor) -> None:
    """Run the background work from the server's start to its end."""
    await receive()
    async with background.running():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
