"""One dispatcher for every transport: a request in, an envelope and its HTTP status out."""

from __future__ import annotations

import logging
from typing import Any

from zibaldone.limits import BATCH_MESSAGES_MAX
from zibaldone.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ProtocolError,
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


async def dispatch(request: Request) -> tuple[Envelope, int]:
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
    values: list[Any], version: Version, surface: Surface, call: Call
) -> list[Envelope]:
    """Arrays of messages, in the one revision that has them: an envelope for each request."""
    if not version.batches:
        raise ProtocolError(INVALID_REQUEST, f"{version.name} has no batches.")
    if not 0 < len(values) <= BATCH_MESSAGES_MAX:
        raise ProtocolError(INVALID_REQUEST, f"A batch has 1 to {BATCH_MESSAGES_MAX} messages.")
    envelopes: list[Envelope] = []
    for value in values:
        try:
            message = parse_message(value)
        except ProtocolError as error:
            envelopes.append(error_envelope(id_of(value), error))
            continue
        if message.is_request:
            envelope, _ = await dispatch(Request(message, version, surface, call))
            envelopes.append(envelope)
    return envelopes
