"""Bytes to requests: uvicorn's HTTP protocols, with bounds on what a peer may send and how.

Four things differ from uvicorn:

- The head and the body of an answer leave by one system call, at the end of the event loop's step,
  as do the answers to requests that came in together. uvicorn uses one call each, and the head
  wakes a client that then has to wait on. A small answer costs a third less
  (docs/benchmarks.md, "HTTP").
- Heads, trailers and pipelined requests are bounded, and each connection can tell in which phase
  it is, so that `Connections` can end those that take too long.
- A request to upgrade to a protocol that is not spoken here is an ordinary request with a body.
- A connection that ends with an answer is not closed while the peer still sends: the system would
  destroy the answer before it is read.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
import orjson
from uvicorn.protocols.http.flow_control import CLOSE_HEADER, HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from zibaldone.errors import BadRequest, HeadersTooLarge, ShuttingDown, UrlTooLong, ZibaldoneError
from zibaldone.limits import HEAD_BYTES_MAX, KIB, PIPELINED_MAX, URL_BYTES_MAX
from zibaldone.web.connections import Connections, Phase
from zibaldone.web.gone import client_is_gone
from zibaldone.web.http import KEY_ID_KEY

try:
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:  # Windows
    httptools = None  # type: ignore[assignment]
    HttpToolsProtocol = H11Protocol  # type: ignore[assignment, misc]

_INVALID = "The request is not valid HTTP."
_STATUS_TOO_LARGE = 431
_MUCH_BYTES = 64 * KIB
"""Read at once; a client that sends so much will send more."""


class JoiningTransport:
    """A transport that writes at once what is written to it in one step of the event loop."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        lingers: Callable[[], bool] = lambda: False,
    ) -> None:
        """`lingers`: whether the connection outlives a `close`; it is asked at each."""
        self._transport = transport
        self._call_soon = loop.call_soon
        self._lingers = lingers
        self._waiting: list[bytes] = []
        self._is_ended = False
        self.is_resting = False
        """It is not read from, whoever asks, until it has its turn."""
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._is_ended:
            return  # the peer was told that nothing follows
        if not self._waiting:
            self._call_soon(self._flush)
        self._waiting.append(data)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        # Empty after `close` has flushed; a closing transport refuses writes with a traceback.
        if waiting and not self._transport.is_closing():
            self._transport.writelines(waiting)

    def close(self) -> None:
        self._flush()
        if not self._lingers():
            self._transport.close()

    def write_eof(self) -> None:
        self._flush()
        self._is_ended = True
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def resume_reading(self) -> None:
        if not self.is_resting:
            self._transport.resume_reading()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(asyncio.Protocol):
    """What both protocols add to uvicorn's; mixed in before it."""

    registry: Connections
    loop: asyncio.AbstractEventLoop
    transport: Any
    flow: Any
    cycle: Any
    client: tuple[str, int] | None
    server_state: ServerState

    address = ""
    is_refused = False
    """An error was sent, or the connection is closed: whatever else arrives is thrown away."""
    is_last = False
    """No request is read after those that are running."""
    is_known = False
    """A request of it was admitted."""
    requests_served = 0
    body_bytes = 0
    """What has arrived of the body of the current request."""
    seen: tuple[Phase, int] = (Phase.IDLE, 0)
    since_s = 0.0
    """When the phase that was last seen was first seen."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        joining = JoiningTransport(cast("asyncio.Transport", transport), self.loop, self._lingers)
        super().connection_made(cast("asyncio.Transport", joining))
        self.address = self.client[0] if self.client else ""
        self.registry.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.registry.leave(self)
        if (active := self.active_cycle()) is not None:
            client_is_gone(active.scope)
        super().connection_lost(exc)

    def rest_after(self, data: bytes) -> None:
        """Read no more from this connection, if it brings much, until it has its turn.

        The loop reads up to eight megabytes from one before it turns to others, and in small chunks
        they take half a second to parse.
        """
        transport = self.transport
        if len(data) >= _MUCH_BYTES and not transport.is_resting and not transport.is_closing():
            transport.is_resting = True
            transport.pause_reading()
            self.registry.rest(self)

    def read_on(self) -> None:
        """The turn has come."""
        self.transport.is_resting = False
        if not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self.registry.stalled(self)

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self.registry.flowing(self)

    def phase(self) -> Phase:
        raise NotImplementedError

    @property
    def is_held_back(self) -> bool:
        """We do not read, because the application does not take what is there."""
        return bool(self.flow.read_paused)

    @property
    def key_id(self) -> str:
        """Whose request is answered, or was last; empty before the caller is known."""
        cycle = self.last_cycle()
        return "" if cycle is None else str(cycle.scope.get(KEY_ID_KEY, ""))

    @property
    def is_needed(self) -> bool:
        """A request that was admitted is being answered."""
        active = self.active_cycle()
        return active is not None and KEY_ID_KEY in active.scope

    def last_cycle(self) -> Any:
        """The request that is being answered, or the one that was; requests sent ahead are none."""
        return self.cycle

    def active_cycle(self) -> Any:
        """The request that is being answered, or None."""
        cycle = self.last_cycle()
        return None if cycle is None or cycle.response_complete else cycle

    def on_response_complete(self) -> None:
        self.requests_served += 1
        self.is_known = self.is_known or bool(self.key_id)

    def refuse(self, error: ZibaldoneError) -> None:
        """Answer with the error if no answer has begun; in any case take no more requests."""
        if self.is_refused:
            return
        self.is_refused = True
        active = self.active_cycle()
        if active is not None:
            active.disconnected = True
            active.message_event.set()
            if active.response_started:
                self.transport.close()
                return
        self.transport.write(_answer(error))
        self._discard_rest()

    def _discard_rest(self) -> None:
        """The last answer is written. Read on: a peer that cannot send does not come to read it."""
        self.is_refused = True
        self.transport.write_eof()
        self.flow.resume_reading()

    def _lingers(self) -> bool:
        """Whether to discard for a while, instead of closing, because the peer still sends."""
        if self.is_refused or not self.is_body_open():
            return False
        self._discard_rest()
        return True

    def is_body_open(self) -> bool:
        raise NotImplementedError

    def announce_end(self) -> None:
        """Let an answer that does not wait for a body of unknown length be the last one.

        Nobody wants the rest of the body, and to parse it, chunk by chunk, could take long. The
        answer says so: a client that knows sends its next request on another connection.
        """
        if self.cycle is not None and _is_chunked(self.cycle.scope["headers"]):
            headers = self.server_state.default_headers
            self.cycle.default_headers = (
                [*headers, CLOSE_HEADER] if self.is_body_open() else headers
            )

    def abort(self) -> None:
        """Close without waiting for the peer."""
        self.is_refused = True
        self.transport.abort()

    def end_request(self) -> None:
        """At the end of the process: a started answer is cut off where it is."""
        active = self.active_cycle()
        if active is not None and active.response_started:
            active.disconnected = True
            self.transport.close()

    def shutdown(self) -> None:
        """The server stops: whoever waits for an answer gets it, nobody else does."""
        self.is_last = True
        self.drop_pipelined()
        match self.phase():
            case Phase.RUNNING:
                self.cycle.keep_alive = False
            case Phase.HEAD | Phase.BODY:
                self.refuse(ShuttingDown("The server is shutting down; try again later."))
            case _:
                self.is_refused = True  # answered before: the end does not wait for the rest
                self.transport.close()

    def drop_pipelined(self) -> None:
        """Forget requests that were sent ahead; HTTP lets a server leave them unanswered."""

    def start_next(self) -> None:
        """Begin to answer a request that was sent ahead."""

    def _unsupported_upgrade_warning(self) -> None:
        """Anybody can ask for an upgrade; that is nothing to warn the operator of."""


class HttpToolsConnection(Connection, HttpToolsProtocol):
    head_is_open = False
    body_is_open = False
    _unparsed_bytes = 0
    """Read since the head, or the part of the body that came last, and not part of either yet."""
    _part_bytes = 0
    _body_has_moved = False
    _active: Any = None
    _has_turn = False
    """The next request is to be started."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._body_parts: list[bytes] = []
        """Of the body that is being parsed, which is joined once: it may come byte by byte."""

    def phase(self) -> Phase:
        active = self._active
        if self.is_refused:
            return Phase.DISCARDING
        if active is not None and not active.response_complete:
            return Phase.BODY if self.body_is_open and active is self.cycle else Phase.RUNNING
        if self.pipeline:
            return Phase.RUNNING  # the next one starts when the last answer has been read
        if self.body_is_open:
            return Phase.DISCARDING
        return Phase.HEAD if self.head_is_open else Phase.IDLE

    def is_body_open(self) -> bool:
        return self.body_is_open

    def last_cycle(self) -> Any:
        return self._active

    def drop_pipelined(self) -> None:
        if self.pipeline:
            self.pipeline.clear()
            self.cycle = self._active

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop_pipelined()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.rest_after(data)
        if self.is_refused or self.is_last:
            return
        self._part_bytes = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as problem:
            self._refuse_unparsable(problem)
        self._hand_over_body()
        if self.head_is_open or self.body_is_open:
            self._bound_unparsed()

    def _refuse_unparsable(self, problem: httptools.HttpParserError) -> None:
        if self.phase() is Phase.RUNNING:
            self.is_last = True  # what came before is answered all the same
            return
        cause = problem.__context__
        self.refuse(cause if isinstance(cause, ZibaldoneError) else BadRequest(_INVALID))

    def _bound_unparsed(self) -> None:
        """The parser keeps what it has of a field until it has all of it, however long that is."""
        if self._body_has_moved:
            self._body_has_moved = False
            self._unparsed_bytes = 0
            return
        self._unparsed_bytes += self._part_bytes
        if self._unparsed_bytes <= HEAD_BYTES_MAX or self.is_refused:
            return
        if self.head_is_open and len(self.url) > URL_BYTES_MAX:
            self.refuse(_url_too_long())
        else:
            self.refuse(_head_too_large())

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Parse the request as if it had not asked: the parser drops the body of one that did."""
        while True:
            method = self.parser.get_method()
            if method == b"CONNECT":
                self.refuse(BadRequest("This server is no proxy."))
                return
            version = self.parser.get_http_version().encode()
            lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
            lines += [b"%s: %s" % field for field in _without_upgrade(self.headers)]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            try:
                self.parser.feed_data(b"\r\n".join((*lines, b"", rest)))
            except httptools.HttpParserUpgrade as upgrade:  # of the next request
                head_bytes = sum(map(len, lines)) + 2 * len(lines) + 2
                rest = rest[upgrade.args[0] - head_bytes :]
                continue
            except httptools.HttpParserError as problem:
                self._refuse_unparsable(problem)
            return

    # Called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_is_open = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.head_is_open:
            return  # a trailer: nothing here is asked for in one
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._unparsed_bytes + self._part_bytes > HEAD_BYTES_MAX:
            self._bound_head()
        if self.parser.should_upgrade():
            return  # comes again, without
        if len(self.pipeline) >= PIPELINED_MAX:
            raise BadRequest(f"More than {PIPELINED_MAX} requests were sent ahead.")
        self.head_is_open = False
        self.body_is_open = True
        self._unparsed_bytes = self.body_bytes = 0
        super().on_headers_complete()
        self.announce_end()
        if not self.pipeline:
            self._active = self.cycle

    def _bound_head(self) -> None:
        fields_bytes = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.url) > HEAD_BYTES_MAX:
            raise _url_too_long()
        if len(self.url) + fields_bytes > HEAD_BYTES_MAX:
            raise _head_too_large()

    # The next two as uvicorn has them, without its questions about upgrades.

    def on_body(self, body: bytes) -> None:
        self._body_parts.append(body)

    def _hand_over_body(self) -> None:
        if not self._body_parts:
            return
        body = b"".join(self._body_parts)
        self._body_parts.clear()
        self._body_has_moved = True
        self.body_bytes += len(body)
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # comes again, without
        self._hand_over_body()
        self.body_is_open = False
        self.announce_end()
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    # Called when an answer is complete, or can be written on

    def on_response_complete(self) -> None:
        Connection.on_response_complete(self)
        self.server_state.total_requests += 1
        if self.transport.is_closing() or self.is_refused:
            return
        if self.is_last and not self.pipeline:
            self.transport.close()
        elif self.flow.write_paused:
            self.flow.pause_reading()
        else:
            self._go_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.active_cycle() is None:
            self.flow.pause_reading()  # an answer that is not read earns no other

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.active_cycle() is None and not self.transport.is_closing():
            self._go_on()

    def _go_on(self) -> None:
        """Take up the next request; one that was sent ahead has to wait for its turn."""
        self.flow.resume_reading()
        if self.pipeline and not self._has_turn:
            self._has_turn = True
            self.registry.follow(self)

    def start_next(self) -> None:
        self._has_turn = False
        if not self.pipeline or self.transport.is_closing() or self.flow.write_paused:
            return  # where writing is paused, what ends that goes on
        cycle, app = self.pipeline.pop()
        self._active = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)


class H11Connection(Connection, H11Protocol):
    """For platforms without httptools. h11 bounds heads and trailers itself."""

    def phase(self) -> Phase:
        if self.is_refused:
            return Phase.DISCARDING
        if self.active_cycle() is not None:
            return Phase.BODY if self.is_body_open() else Phase.RUNNING
        if self.is_body_open():
            return Phase.DISCARDING
        is_head_open = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        return Phase.HEAD if is_head_open else Phase.IDLE

    def is_body_open(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY

    def data_received(self, data: bytes) -> None:
        self.rest_after(data)
        if self.is_refused:
            return
        if self.is_body_open():
            self.body_bytes += len(data)
        else:
            self.body_bytes = 0
            if len(data) > HEAD_BYTES_MAX and b"\r\n\r\n" not in data[:HEAD_BYTES_MAX]:
                self.refuse(_head_too_large())  # h11 bounds only what comes in several pieces
                return
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self.announce_end()

    def on_response_complete(self) -> None:
        Connection.on_response_complete(self)
        if self.is_refused:
            return
        H11Protocol.on_response_complete(self)
        if self.is_last and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        del msg
        problem = sys.exception()
        hint = getattr(problem, "error_status_hint", 400)
        self.refuse(_head_too_large() if hint == _STATUS_TOO_LARGE else BadRequest(_INVALID))


def connection_class() -> type[Connection]:
    return H11Connection if httptools is None else HttpToolsConnection


def _url_too_long() -> UrlTooLong:
    return UrlTooLong(f"The URL is over {URL_BYTES_MAX} bytes.", bytes_max=URL_BYTES_MAX)


def _head_too_large() -> HeadersTooLarge:
    message = f"The headers or trailers are over {HEAD_BYTES_MAX} bytes."
    return HeadersTooLarge(message, bytes_max=HEAD_BYTES_MAX)


def _is_chunked(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" for name, _ in headers)


def _without_upgrade(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    fields = []
    for name, value in headers:
        if name == b"upgrade":
            continue
        if name == b"connection":
            tokens = [token for token in value.split(b",") if token.strip().lower() != b"upgrade"]
            fields.append((name, b",".join(tokens)))
        else:
            fields.append((name, value))
    return fields


def _answer(error: ZibaldoneError) -> bytes:
    """An error as a whole answer, for a connection without a request to answer."""
    request_id = f"{random.getrandbits(64):016x}"
    value = {
        "code": error.code,
        "message": error.message,
        "details": error.details,
        "request_id": request_id,
    }
    body = orjson.dumps(value)
    lines = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "content-type: application/json; charset=utf-8",
        f"content-length: {len(body)}",
        f"x-request-id: {request_id}",
        *(["retry-after: 1"] if error.status >= 500 else []),
        "connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + body
