"""Keeping answers within their bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import orjson

_CHARACTER_BYTES_MAX = 6
"""In JSON, for a control character."""

I = TypeVar("I", bound=Mapping[str, Any])  # noqa: E741


def fit_items(items: Sequence[I], bytes_max: int) -> list[I]:
    """As many items, from the first, as fit."""
    left_bytes = bytes_max
    for position, item in enumerate(items):
        left_bytes -= size_bytes(item)
        if left_bytes < 0:
            return list(items[:position])
    return list(items)


def fit_text(text: str, bytes_max: int) -> str:
    """As much of a text, from its start, as fits when it is written as JSON."""
    written = orjson.dumps(text)
    if len(written) <= bytes_max:
        return text
    end = bytes_max - 1  # for the quote
    for cut in range(end, max(end - _CHARACTER_BYTES_MAX, 0), -1):
        try:
            fitting: str = orjson.loads(written[:cut] + b'"')
        except orjson.JSONDecodeError:  # the cut is inside a character
            continue
        return fitting
    return ""


def size_bytes(item: Mapping[str, Any]) -> int:
    """What an item takes in a list, with its comma."""
    return len(orjson.dumps(item)) + 1
