"""Keeping answers within their bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import orjson

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
    while text and (size := len(orjson.dumps(text))) > bytes_max:
        # By its average first, then in small steps: what is left may be denser.
        text = text[: min(len(text) * bytes_max // size, len(text) - 1)]
    return text


def size_bytes(item: Mapping[str, Any]) -> int:
    """What an item takes in a list, with its comma."""
    return len(orjson.dumps(item)) + 1
