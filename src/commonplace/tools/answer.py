"""Keeping answers within their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson


def fit_items(items: Sequence[dict[str, Any]], bytes_max: int) -> list[dict[str, Any]]:
    """As many items, from the first, as fit. The first is always kept: it has bounds of its own."""
    kept: list[dict[str, Any]] = []
    size_bytes = 0
    for item in items:
        size_bytes += len(orjson.dumps(item)) + 1
        if kept and size_bytes > bytes_max:
            break
        kept.append(item)
    return kept
