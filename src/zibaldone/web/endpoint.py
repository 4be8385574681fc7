"""The MCP endpoint over HTTP: authenticate → read → negotiate → admit → dispatch → frame.

Stateless: nothing is kept between requests, so a restart ends no session.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from zibaldone.access.share import SHARE
from zibaldone.errors import DeadlineExceeded, InsufficientScope, MethodNotAllowed
from zibaldone.limits import MESSAGE_BYTES_MAX
from zibaldone.protocol.admission import METHOD_HEADER, VERSION_HEADER, UnsupportedLegacy, admit
from zibaldone.protocol.dispatch import Envelope, dispatch, dispatch_batch
from zibaldone.protocol.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    ProtocolError,
    dumps,
    dumps_pieces,
    error_envelope,
    id_of,
    parse_body,
    parse_message,
)
from zibaldone.protocol.methods import Request
from zibaldone.protocol.negotiate import ACCEPTABLE, Format, parse_accept
from zibaldone.protocol.surface import Surface
from zibaldone.protocol.versions import ASSUMED_LEGACY, NEWEST_MODERN, VERSIONS, Version
from zibaldone.tools.call import require_tool
from zibaldone.tools.spec import AnyTool, Call, Runtime
from zibaldone.web.auth import Authenticator
from zibaldone.web.gate import Admission, Gate
from zibaldone.web.gone import end_when_gone, go_on_when_gone
from zibaldone.web.http import (
    JSON_TYPE,
    Header,
    HttpScope,
    Receive,
    Send,
    header,
    request_id,
    send_body,
    send_error,
    send_json,
    send_pieces,
)
from zibaldone.web.stream import Notify, send_frame, send_stream

_log = logging.getLogger("zibaldone.web")

NotificationStatus = Literal["auto", "202", "204"]


@dataclass(slots=True)  # created per request: frozen=True would cost three times as much
class Exchange:
    """One HTTP request on its way through the endpoint."""

    scope: HttpScope
    receive: Receive
    send: Send
    format: Format
    may_stream: bool
    call: Call

    def header(self, name: bytes) -> str | None:
        return header(self.scope, name)

    async def respond(
        self, envelope: Any, status: int = 200, headers: Iterable[Header] = ()
    ) -> None:
        # With an error status, clients expect JSON even if they prefer SSE.
        if self.format == "sse" and status < 400:
            await send_frame(self.scope, self.send, status, envelope, headers)
        else:
            pieces = dumps_pieces(envelope)
            await send_pieces(self.scope, self.send, status, pieces, (JSON_TYPE, *headers))


class McpEndpoint:
    def __init__(
        self,
        surface: Surface,
        runtime: Runtime,
        authenticator: Authenticator,
        gate: Gate,
        notification_status: NotificationStatus = "auto",
    ) -> None:
        self._surface = surface
        self._runtime = runtime
        self._authenticator = authenticator
        self._gate = gate
        self._notification_status = notification_status

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        end_when_gone(scope)
        principal = await self._authenticator.authenticate(scope, self._surface.profile)
        if scope["method"] != "POST":
            await self._gate.pace.turn(principal.key_id)
        match scope["method"]:
            case "POST":
                admission = await self._gate.admit(principal, scope, receive)
                try:
                    if admission.has_waited:
                        principal = await self._authenticator.authenticate(
                            scope, self._surface.profile
                        )
                    id_ = request_id(scope)
                    size_bytes = len(admission.body)
                    call = Call(self._runtime, principal, id_, request_bytes=size_bytes)
                    work = self._post(scope, receive, send, call, admission)
                    await self._gate.pace.run(principal.key_id, work)
                finally:
                    self._gate.leave(admission)
            case "GET" | "HEAD":
                await self._info(scope, send)
            case "DELETE":
                # Ends a session; there is none to end.
                await send_body(scope, send, 204, b"", ())
            case _:
                error = MethodNotAllowed("Use POST for this URL.")
                await send_error(scope, send, error, [(b"allow", b"POST, GET, DELETE")])

    async def _info(self, scope: HttpScope, send: Send) -> None:
        accept = parse_accept(_accept(scope))
        if accept.wants_sse and not accept.wants_json:
            refusal = ProtocolError(INVALID_REQUEST, "There is no stream at this URL; use POST.")
            body = dumps(error_envelope(None, refusal))
            await send_body(scope, send, 405, body, (JSON_TYPE, (b"allow", b"POST")))
        else:
            await send_json(scope, send, 200, self._surface.info())

    async def _post(
        self, scope: HttpScope, receive: Receive, send: Send, call: Call, admission: Admission
    ) -> None:
        body = admission.body
        accept = parse_accept(_accept(scope))
        is_like_graphiti = self._surface.profile.is_like_graphiti
        format_ = accept.format_of_graphiti if is_like_graphiti else accept.format
        exchange = Exchange(scope, receive, send, format_, accept.wants_sse, call)
        if accept.is_unsupported and not _is_silent(body):
            refusal = error_envelope(None, ProtocolError(PARSE_ERROR, ACCEPTABLE))
            await exchange.respond(refusal, 406)
            return
        value: Any = None
        try:
            value = parse_body(body, admission.count)
            if isinstance(value, list):
                go_on_when_gone(scope)
                await self._batch(exchange, value)
                return
            message = parse_message(value)
        except ProtocolError as error:
            is_refused = isinstance(error, UnsupportedLegacy)
            status = 400 if is_refused or _header_version(exchange).era == "modern" else 200
            await exchange.respond(error_envelope(id_of(value), error), status)
            return
        await self._message(exchange, message)

    async def _message(self, exchange: Exchange, message: Message) -> None:
        if not message.is_request:
            await self._accept_notification(exchange)
            return
        try:
            version = admit(message, exchange.header)
        except ProtocolError as error:
            await exchange.respond(error_envelope(message.id, error), 400)
            return
        tool = self._surface.tool_of(message)
        if tool is not None and tool.effect != "read":
            go_on_when_gone(exchange.scope)
        self._require_scope(exchange.call, tool)
        if exchange.may_stream and self._surface.streams(message):
            await self._stream(exchange, message, version)
            return
        envelope, status = await dispatch(Request(message, version, self._surface, exchange.call))
        headers: tuple[Header, ...] = ()
        if message.method == "initialize" and "result" in envelope:
            headers = ((b"mcp-session-id", secrets.token_hex(16).encode()),)
        await exchange.respond(envelope, status, headers)

    def _require_scope(self, call: Call, tool: AnyTool | None) -> None:
        """Refuse a token with an HTTP status, which clients react to, before a stream begins."""
        if tool is not None and call.principal.by_token:
            try:
                require_tool(call, tool)
            except InsufficientScope as error:
                _log.info("refused %s: %s", call.principal.key_id, error.message)
                raise self._authenticator.challenged(error, self._surface.profile) from None

    async def _stream(self, exchange: Exchange, message: Message, version: Version) -> None:
        async def work(notify: Notify) -> Envelope:
            call = exchange.call.with_notify(notify, message.meta.get("progressToken"))
            envelope, _ = await dispatch(Request(message, version, self._surface, call))
            return envelope

        await send_stream(exchange.scope, exchange.receive, exchange.send, work)

    async def _batch(self, exchange: Exchange, values: list[Any]) -> None:
        version = _header_version(exchange)
        stated = exchange.header(VERSION_HEADER)
        if version.era == "legacy" and stated is not None and stated not in VERSIONS:
            raise UnsupportedLegacy(stated)
        principal, limits = exchange.call.principal, self._runtime.limits
        self._gate.count_more(principal, max(0, len(values) - 1))
        run = partial(self._gate.pace.run, principal.key_id)
        async with AsyncExitStack() as held:
            shared = SHARE.set(principal.key_id)
            try:
                async with asyncio.timeout(limits.tool_seconds_max):
                    await held.enter_async_context(self._gate.batches)
            except TimeoutError:
                raise _too_many_batches(limits.tool_seconds_max) from None
            finally:
                SHARE.reset(shared)
            envelopes = await dispatch_batch(values, version, self._surface, exchange.call, run)
            if envelopes:
                await exchange.respond(envelopes)
            else:
                await self._accept_notification(exchange)

    async def _accept_notification(self, exchange: Exchange) -> None:
        """Answer a notification: 204 for older clients, 202 for newer ones."""
        status = self._notification_status
        if status == "auto":
            status = "204" if exchange.header(VERSION_HEADER) is None else "202"
        await send_body(exchange.scope, exchange.send, int(status), b"", ())


def _too_many_batches(seconds_max: float) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"Other batches of this key took longer than {seconds_max:g} s; none of this one was run."
    )


def _accept(scope: HttpScope) -> str | None:
    """The Accept header, joined if it was sent in several lines."""
    lines = [value for name, value in scope["headers"] if name == b"accept"]
    return b",".join(lines).decode("latin-1") if lines else None


def _is_silent(body: bytes) -> bool:
    """Whether it is a notification, or several: their answer has no body that could be unwanted."""
    if len(body) > MESSAGE_BYTES_MAX:
        return False
    try:
        value = parse_body(body)
        values = value if isinstance(value, list) else [value]
        return bool(values) and not any(parse_message(one).is_request for one in values)
    except ProtocolError:
        return False


def _header_version(exchange: Exchange) -> Version:
    """The version by the headers alone, for answering a body that cannot be parsed."""
    stated = VERSIONS.get(exchange.header(VERSION_HEADER) or "")
    if stated is None and exchange.header(METHOD_HEADER) is not None:
        return NEWEST_MODERN
    return stated or ASSUMED_LEGACY
