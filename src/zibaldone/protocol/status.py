"""JSON-RPC error → HTTP status. One table for each era."""

from __future__ import annotations

from zibaldone.protocol.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND
from zibaldone.protocol.versions import Era


def http_status(era: Era, code: int) -> int:
    """Legacy clients break on any other status than 200; modern ones expect a real one."""
    if era == "legacy":
        return 200
    if code == METHOD_NOT_FOUND:
        return 404
    return 500 if code == INTERNAL_ERROR else 400
