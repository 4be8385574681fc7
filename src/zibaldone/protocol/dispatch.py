"""One dispatcher for every transport: a request in, an envelope and its HTTP status out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import orjson

from zibaldone.errors import ResponseTooLarge
from zibaldone.limits import BATCH_MESSAGES_MAX, BATCH_SMALL_ANSWER_BYTES
from zibaldone.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ProtocolError,
    RequestId,
    dumps,
    error_envelope,
    id_of,
    parse_message,
    result_envelope,
)
from zibaldone.protocol.methods import Request, answer
from zibaldone.protocol.status import http_status
from zibaldone.protocol.surface import Surface
from zibaldone.protocol.versions import Version
from zibaldone.tools.spec import Call

_log = logging.getLogger("zibaldone.protocol")

Envelope = dict[str, Any]
Dispatched = tuple[Envelope, int]
Run = Callable[[Coroutine[Any, Any, Dispatched]], Awaitable[Dispatched]]


async def dispatch(request: Request) -> Dispatched:
    """Always a whole envelope: whatever fails, it fails before the first byte is framed."""
    request_id = request.message.id
    try:
        return result_envelope(request_id, await answer(request)), 200
    except ProtocolError as error:
        status = http_status(request.version.era, error.code)
        return error_envelope(request_id, error), status
    except Exception:
        _log.exception("%s failed, request %s", request.message.method, request.call.request_id)
        failure = ProtocolError(
            INTERNAL_ERROR,
            "Internal error; the server's log has the reason under this request id.",
            {"request_id": request.call.request_id},
        )
        return error_envelope(request_id, failure), http_status(request.version.era, failure.code)


async def dispatch_batch(
    values: list[Any], version: Version, surface: Surface, call: Call, run: Run | None = None
) -> list[orjson.Fragment]:
    """Arrays of messages, in the one revision that has them: an envelope for each request.

    Together they have the time of one call, and one answer's bytes. `run` awaits each of them when
    it may begin.
    """
    if not version.batches:
        raise ProtocolError(INVALID_REQUEST, f"{version.name} has no batches.")
    if not 0 < len(values) <= BATCH_MESSAGES_MAX:
        raise ProtocolError(INVALID_REQUEST, f"A batch has 1 to {BATCH_MESSAGES_MAX} messages.")
    limits = call.runtime.limits
    deadline_s = time.monotonic() + limits.tool_seconds_max
    answers = _Answers(limits.batch_response_bytes_max)
    for value in values:
        try:
            message = parse_message(value)
        except ProtocolError as error:
            answers.add(error_envelope(id_of(value), error), None)
            continue
        if not message.is_request:
            continue
        if answers.is_exhausted:
            answers.refuse(message.id, "was not run")
            continue
        request_bytes = _size_bytes(value, call.request_bytes)
        part = replace(call, deadline_s=deadline_s, request_bytes=request_bytes)
        work = dispatch(Request(message, version, surface, part))
        envelope, _ = await (work if run is None else run(work))
        answers.add(envelope, message.id)
        await asyncio.sleep(0)  # many are answered without waiting: others have their turn between
    return answers.envelopes


def _size_bytes(value: Any, otherwise: int) -> int:
    try:
        return len(orjson.dumps(value))
    except orjson.JSONEncodeError:  # nested deeper than is written: it counts as the whole batch
        return otherwise


class _Answers:
    """The answers to a batch, as JSON, within a number of bytes."""

    def __init__(self, bytes_max: int) -> None:
        self.envelopes: list[orjson.Fragment] = []
        self._bytes_max = bytes_max
        self._left_bytes = bytes_max
        self._made_bytes = 0

    @property
    def is_exhausted(self) -> bool:
        """Also by answers that were made and did not fit: making them costs as much."""
        return self._made_bytes > 2 * self._bytes_max

    def add(self, envelope: Envelope, request_id: RequestId) -> None:
        encoded = dumps(envelope)
        self._made_bytes += len(encoded)
        if len(encoded) <= max(self._left_bytes, BATCH_SMALL_ANSWER_BYTES):
            self._left_bytes -= len(encoded)
            self.envelopes.append(orjson.Fragment(encoded))
        else:
            self.refuse(request_id, "is too large for what is left")

    def refuse(self, request_id: RequestId, why: str) -> None:
        error = ResponseTooLarge(
            f"The answer to a batch may have {self._bytes_max} bytes; this one {why}. "
            "Ask for it on its own.",
            bytes_max=self._bytes_max,
        )
        failure = ProtocolError(INVALID_REQUEST, error.message, error.as_dict())
        self.envelopes.append(orjson.Fragment(dumps(error_envelope(request_id, failure))))
