"""What a converter process and its parent send each other: a JSON head, then bytes."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

HEAD_BYTES_MAX = 64 * 1024

_SIZES = struct.Struct("!IQ")


class FrameError(Exception):
    """The other side sent something that is not a frame, or ended."""


def write_frame(file: IO[bytes], head: dict[str, Any], body: bytes) -> None:
    encoded = json.dumps(head).encode()
    file.write(_SIZES.pack(len(encoded), len(body)))
    file.write(encoded)
    file.write(body)
    file.flush()


def read_frame(file: IO[bytes], body_bytes_max: int) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None where the other side has ended between two frames."""
    sizes = file.read(_SIZES.size)
    if not sizes:
        return None
    if len(sizes) < _SIZES.size:
        raise FrameError("cut short")
    head_bytes, body_bytes = _SIZES.unpack(sizes)
    if head_bytes > HEAD_BYTES_MAX or body_bytes > body_bytes_max:
        raise FrameError("too large")
    encoded, body = file.read(head_bytes), file.read(body_bytes)
    if len(encoded) < head_bytes or len(body) < body_bytes:
        raise FrameError("cut short")
    try:
        head = json.loads(encoded)
    except ValueError:
        raise FrameError("not JSON") from None
    if not isinstance(head, dict):
        raise FrameError("not an object")
    return head, body
