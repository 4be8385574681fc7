"""What every request must pass before any route sees it: URL, body size, Host, Origin.

It wraps the whole application, so that no route can be added without it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from commonplace.errors import (
    CommonplaceError,
    Forbidden,
    Internal,
    InvalidArgument,
    PayloadTooLarge,
    RequestError,
)
from commonplace.web.http import (
    ClientGone,
    Endpoint,
    HttpScope,
    Receive,
    Send,
    header,
    request_id,
    send_error,
)

_log = logging.getLogger("commonplace.web")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class Misdirected(RequestError):
    code = "MISDIRECTED_REQUEST"
    status = 421


@dataclass(frozen=True, slots=True)
class GuardRules:
    body_bytes_max: int
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


class Guard:
    def __init__(self, inner: Endpoint, rules: GuardRules) -> None:
        self._inner = inner
        self._rules = rules
        self._hosts = _LOOPBACK_NAMES | {host.lower() for host in rules.allowed_hosts}

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = False

        async def watched_send(message: dict[str, object]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self._check(scope)
            await self._inner(scope, receive, watched_send)  # type: ignore[arg-type]
        except ClientGone:
            return
        except CommonplaceError as error:
            if not started:
                await send_error(scope, send, error)
        except Exception:
            _log.exception("request %s failed", request_id(scope))
            if not started:
                message = "The request failed; the server's log has the reason under its id."
                await send_error(scope, send, Internal(message))

    def _check(self, scope: HttpScope) -> None:
        # Nothing served has one in its path, and patterns of routes treat a line end as special.
        if _CONTROL.search(scope["path"]):
            raise InvalidArgument("The URL's path has a control character.", field="path")
        length = header(scope, b"content-length")
        if length is not None and length.isdigit() and int(length) > self._rules.body_bytes_max:
            raise PayloadTooLarge(
                f"The request body is over {self._rules.body_bytes_max} bytes.",
                bytes_max=self._rules.body_bytes_max,
            )
        # A page of another site can make a browser call loopback under a name of its own
        # (DNS rebinding); the Host header gives it away.
        host = header(scope, b"host")
        if host is not None and not self._is_ours(host):
            raise Misdirected(
                "This server does not answer to that Host; the setting allowed_hosts names those "
                "it does."
            )
        origin = header(scope, b"origin")
        if origin is not None and not self._may_call(origin):
            raise Forbidden(
                "Pages of that origin may not call this server; see the setting allowed_origins."
            )

    def _is_ours(self, host: str) -> bool:
        name = host.lower()
        return name in self._hosts or _without_port(name) in self._hosts

    def _may_call(self, origin: str) -> bool:
        if origin in self._rules.allowed_origins:
            return True
        scheme, mark, rest = origin.lower().partition("://")
        return bool(mark) and scheme in ("http", "https") and _without_port(rest) in _LOOPBACK_NAMES


def _without_port(authority: str) -> str:
    name, colon, port = authority.rpartition(":")
    return name if colon and port.isdigit() else authority
