"""Answers of megabytes, made piece by piece.

To escape a text of ten megabytes takes a tenth of a second, over MCP twice, and nobody else is
served meanwhile. So it is done in pieces, and after each the event loop turns to others. While
others are about, it also pauses: a caller who asks for one such answer after another would leave
them only what is between the pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from zibaldone.access.presence import Pauses
from zibaldone.errors import ResponseTooLarge
from zibaldone.limits import ANSWER_BYTES_MAX, LONG_ANSWER_BYTES, MIB
from zibaldone.protocol.jsonrpc import LongJson, dumps, dumps_pieces, escape_line_ends

_PIECE_CHARS = LONG_ANSWER_BYTES // 4
"""A character takes up to six bytes."""

_WORK_SECONDS = 0.002 / MIB
_PAUSE_SECONDS = 0.004 / MIB
"""For a byte: what an answer costs until it is sent, and how long none is made after it while
others are about."""


_PAUSES = Pauses()
"""Of all long answers together, in this process."""


async def _pause(size_bytes: int, share: str) -> None:
    """Let others run after a piece of that size."""
    work_s, pause_s = size_bytes * _WORK_SECONDS, size_bytes * _PAUSE_SECONDS
    await asyncio.sleep(_PAUSES.before(share, work_s=work_s, pause_s=pause_s))


async def dumps_long(answer: Mapping[str, Any], share: str) -> list[bytes]:
    """The same bytes as `dumps`; RESPONSE_TOO_LARGE if they are too many to be sent.

    `share`: who is answered.
    """
    if not any(map(_may_be_long, answer.values())):
        return [dumps(answer)]
    pieces = dumps_pieces({name: await _prepared(value, share) for name, value in answer.items()})
    _require_sendable(sum(map(len, pieces)))
    return pieces


def _may_be_long(value: Any) -> bool:
    """False for nearly all values, at little cost."""
    if isinstance(value, str):
        return len(value) > _PIECE_CHARS
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


async def _prepared(value: Any, share: str) -> Any:
    """With JSON in the place of long texts: they stand in an answer, or in an item of a list."""
    if not isinstance(value, list):
        return await quoted(value, share)
    return [
        {name: await quoted(part, share) for name, part in item.items()}
        if isinstance(item, dict)
        else item
        for item in value
    ]


async def quoted(value: Any, share: str) -> Any:
    """A long text as JSON; anything else as it is."""
    if not isinstance(value, str) or len(value) <= _PIECE_CHARS:
        return value
    pieces = [b'"']
    for start in range(0, len(value), _PIECE_CHARS):
        pieces.append(orjson.dumps(value[start : start + _PIECE_CHARS])[1:-1])
        await _pause(len(pieces[-1]), share)
    pieces.append(b'"')
    return LongJson(pieces)


async def quoted_json(text: LongJson, others_bytes: int, share: str) -> LongJson:
    """JSON as a text within JSON; `others_bytes` are sent beside it."""
    pieces = [b'"']
    size_bytes = others_bytes
    for part in _parts(text.pieces):
        pieces.append(orjson.dumps(part.decode())[1:-1])
        size_bytes += len(pieces[-1])
        _require_sendable(size_bytes)
        await _pause(len(pieces[-1]), share)
    pieces.append(b'"')
    return LongJson(pieces)


async def escape_long_line(line: Sequence[bytes]) -> list[bytes]:
    """The same as `escape_line_ends`."""
    parts = []
    for part in _parts(line):
        parts.append(escape_line_ends(part))
        await asyncio.sleep(0)
    return parts


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Stretches of UTF-8; no character is cut."""
    for piece in pieces:
        start = 0
        while start < len(piece):
            end = min(start + LONG_ANSWER_BYTES, len(piece))
            while end < len(piece) and piece[end] & 0xC0 == 0x80:
                end += 1
            yield piece[start:end]
            start = end


def _require_sendable(size_bytes: int) -> None:
    if size_bytes > ANSWER_BYTES_MAX:
        raise ResponseTooLarge(
            f"The answer would have more than {ANSWER_BYTES_MAX} bytes. Read the document in "
            "parts, with get_document and from_char.",
            bytes_max=ANSWER_BYTES_MAX,
        )
