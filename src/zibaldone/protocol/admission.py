"""Which era a message belongs to, and whether its headers fit: a ladder without I/O.

The first rung that fails raises; the last returns the version the message is answered in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from zibaldone.protocol.constants import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from zibaldone.protocol.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSUPPORTED_PROTOCOL_VERSION,
    Message,
    ProtocolError,
)
from zibaldone.protocol.versions import ASSUMED_LEGACY, VERSIONS, Version

HeaderReader = Callable[[bytes], str | None]

VERSION_HEADER = b"mcp-protocol-version"
METHOD_HEADER = b"mcp-method"
NAME_HEADER = b"mcp-name"

_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def admit(message: Message, header: HeaderReader) -> Version:
    """The version to answer an HTTP message in, or a ProtocolError."""
    in_header = header(VERSION_HEADER)
    stated = VERSIONS.get(in_header) if in_header is not None else None
    if PROTOCOL_VERSION_META_KEY in message.meta:
        return _admit_modern(message, in_header, header)
    if stated is not None and stated.era == "modern":
        raise ProtocolError(
            INVALID_PARAMS,
            f"Requests of {stated.name} carry {PROTOCOL_VERSION_META_KEY} in params._meta.",
        )
    if in_header is not None and stated is None:
        raise UnsupportedLegacy(in_header)
    return stated or ASSUMED_LEGACY


class UnsupportedLegacy(ProtocolError):
    """A version header we do not know on a message without modern metadata."""

    def __init__(self, requested: str) -> None:
        super().__init__(
            INVALID_REQUEST,
            f"Unsupported protocol version: {requested[:64]}",
            _versions(requested),
        )


def admit_modern_body(message: Message) -> Version:
    """The rungs that do not concern headers (stdio has none)."""
    requested = message.meta[PROTOCOL_VERSION_META_KEY]
    version = VERSIONS.get(requested) if isinstance(requested, str) else None
    if version is None or version.era != "modern":
        raise ProtocolError(
            UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            _versions(requested),
        )
    if not isinstance(message.meta.get(CLIENT_CAPABILITIES_META_KEY), dict):
        raise ProtocolError(
            INVALID_PARAMS, f"params._meta must hold {CLIENT_CAPABILITIES_META_KEY}."
        )
    return version


def _admit_modern(message: Message, in_header: str | None, header: HeaderReader) -> Version:
    requested = message.meta[PROTOCOL_VERSION_META_KEY]
    _require_same("MCP-Protocol-Version", in_header, requested)
    version = admit_modern_body(message)
    if message.is_request:
        _require_same("Mcp-Method", header(METHOD_HEADER), message.method)
        key = _NAMED_BY.get(message.method)
        if key is not None:
            _require_same("Mcp-Name", header(NAME_HEADER), message.params.get(key))
    return version


def _require_same(name: str, in_header: str | None, in_body: object) -> None:
    if in_header is None:
        raise ProtocolError(HEADER_MISMATCH, f"The header {name} is missing.")
    if not isinstance(in_body, str):
        raise ProtocolError(INVALID_PARAMS, f"The body lacks what {name} names.")
    if _decoded(in_header) != in_body:
        raise ProtocolError(HEADER_MISMATCH, f"The header {name} differs from the body.")


def _decoded(value: str) -> str | None:
    """Values that do not fit a header are sent as `=?base64?…?=`."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:  # not base64, not even ASCII, or not UTF-8 inside
        return None


def _versions(requested: object) -> dict[str, Any]:
    """Only a text is repeated to the caller: anything else may be of any size and depth."""
    shown = requested[:64] if isinstance(requested, str) else None
    return {"supported": list(VERSIONS), "requested": shown}
