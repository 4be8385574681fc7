"""Server-sent events: one frame for an answer, or several while a tool reports progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from zibaldone.limits import LONG_ANSWER_BYTES
from zibaldone.protocol.jsonrpc import dumps_line, dumps_pieces, escape_line_ends
from zibaldone.protocol.long_answers import escape_long_line
from zibaldone.web.http import Header, HttpScope, Receive, Send, send_pieces, send_start

SSE_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


def frame(envelope: Any) -> bytes:
    return _framed(dumps_line(envelope))


_BEFORE, _AFTER = b"event: message\ndata: ", b"\n\n"


def _framed(line: bytes) -> bytes:
    return _BEFORE + line + _AFTER


async def send_frame(
    scope: HttpScope, send: Send, status: int, envelope: Any, headers: Iterable[Header]
) -> None:
    pieces = dumps_pieces(envelope)
    if sum(map(len, pieces)) > LONG_ANSWER_BYTES:
        pieces = [_BEFORE, *await escape_long_line(pieces), _AFTER]
    else:
        pieces = [_framed(escape_line_ends(b"".join(pieces)))]
    await send_pieces(scope, send, status, pieces, (*SSE_HEADERS, *headers))


Notify = Callable[[str, dict[str, Any]], Awaitable[None]]


async def send_stream(
    scope: HttpScope,
    receive: Receive,
    send: Send,
    work: Callable[[Notify], Awaitable[Any]],
) -> None:
    """Run `work`; send its notifications as they happen, and its envelope last.

    A client that closes the stream cancels the work.
    """
    await send_start(scope, send, 200, SSE_HEADERS)

    async def notify(method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        await send({"type": "http.response.body", "body": frame(message), "more_body": True})

    async def run() -> Any:
        return await work(notify)

    working = asyncio.create_task(run())
    gone = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            body = frame(working.result())
            await send({"type": "http.response.body", "body": body, "more_body": False})
    finally:
        working.cancel()
        gone.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
