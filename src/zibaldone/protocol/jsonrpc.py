"""JSON-RPC 2.0: what a body is, and the envelopes we answer with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from zibaldone.errors import LimitExceeded
from zibaldone.limits import MESSAGE_ID_CHARS_MAX
from zibaldone.protocol.constants import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from zibaldone.text.json_values import ValueCount, load_json

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "LongJson",
    "Message",
    "ProtocolError",
    "dumps",
    "dumps_line",
    "dumps_pieces",
    "error_envelope",
    "escape_line_ends",
    "is_long_id",
    "parse_body",
    "parse_message",
    "result_envelope",
]

RequestId = str | int | None


class ProtocolError(Exception):
    """A failure of the message itself, as opposed to one inside a tool."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Message:
    """A request, a notification (no id), or an answer to something we never asked."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    id: RequestId = None
    is_request: bool = False
    is_response: bool = False

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def parse_body(body: bytes, count: ValueCount | None = None) -> Any:
    """`count`: of the values in it, where they were counted already."""
    try:
        return load_json(body, count=count)
    except LimitExceeded as problem:
        raise ProtocolError(INVALID_REQUEST, problem.message, problem.as_dict()) from None
    except orjson.JSONDecodeError as problem:
        raise ProtocolError(PARSE_ERROR, f"Parse error: {problem}") from None


def parse_message(value: Any) -> Message:
    if not isinstance(value, dict):
        raise ProtocolError(INVALID_REQUEST, "A message is a JSON object.")
    if value.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'The member jsonrpc must be "2.0".')
    method = value.get("method")
    if method is None and ("result" in value or "error" in value):
        return Message("", is_response=True)
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "The member method must be a string.")
    params = value.get("params")
    if params is None:  # left out, or null as some clients write it
        params = {}
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, "The member params must be an object.")
    if "id" not in value:
        return Message(method, params)
    request_id = value["id"]
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise ProtocolError(INVALID_REQUEST, "The member id must be a string or an integer.")
    if is_long_id(request_id):
        raise ProtocolError(
            INVALID_REQUEST, f"The member id has more than {MESSAGE_ID_CHARS_MAX} characters."
        )
    return Message(method, params, request_id, is_request=True)


def id_of(value: Any) -> RequestId:
    """The id to put into an error about a message that may be anything."""
    request_id = value.get("id") if isinstance(value, dict) else None
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        return None
    return None if is_long_id(request_id) else request_id


def is_long_id(value: object) -> bool:
    """Too long to be repeated in an answer?"""
    return isinstance(value, str) and len(value) > MESSAGE_ID_CHARS_MAX


def result_envelope(request_id: RequestId, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_envelope(request_id: RequestId, error: ProtocolError) -> dict[str, Any]:
    described: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        described["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": described}


class LongJson:
    """JSON of megabytes, made beforehand. No character is cut between its pieces."""

    __slots__ = ("pieces", "size_bytes")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self.size_bytes = sum(map(len, pieces))


def dumps(value: Any) -> bytes:
    """UTF-8, unescaped; dates, UUIDs and the like become text rather than an error."""
    return orjson.dumps(value, default=_as_json)


def _as_json(value: object) -> object:
    return orjson.Fragment(b"".join(value.pieces)) if isinstance(value, LongJson) else str(value)


_PLACE = b"\0"
"""Where a long value stands. JSON has no such byte: in a text it is escaped."""


def dumps_pieces(value: Any) -> list[bytes]:
    """The same bytes as `dumps`, without a copy of what was made beforehand."""
    made: list[Sequence[bytes]] = []

    def leave_out(part: object) -> object:
        if not isinstance(part, LongJson):
            return str(part)
        made.append(part.pieces)
        return orjson.Fragment(_PLACE)

    text = orjson.dumps(value, default=leave_out)
    if not made:
        return [text]
    first, *others = text.split(_PLACE)
    pieces = [first]
    for long, following in zip(made, others, strict=True):
        pieces += long
        pieces.append(following)
    return pieces


_LINE_ENDS = tuple((char.encode(), f"\\u{ord(char):04x}".encode()) for char in "\x85\u2028\u2029")


def dumps_line(value: Any) -> bytes:
    """On one line for every reader: many end a line at U+0085, U+2028 and U+2029 too."""
    return escape_line_ends(dumps(value))


def escape_line_ends(line: bytes) -> bytes:
    if line.isascii():
        return line
    for plain, escaped in _LINE_ENDS:
        if plain in line:
            line = line.replace(plain, escaped)
    return line
