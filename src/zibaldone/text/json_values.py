"""JSON from outside, within a number of values.

A parser makes an object of some fifty bytes or more of each value, and nothing can interrupt it:
32 MB of `[],` are ten million lists, two gigabytes and several seconds. So values are counted first
on the bytes, which takes a few milliseconds.
"""

from __future__ import annotations

from typing import Any

import orjson

from zibaldone.errors import LimitExceeded
from zibaldone.limits import JSON_VALUES_MAX


def load_json(data: bytes, values_max: int = JSON_VALUES_MAX) -> Any:
    """Raise LimitExceeded if there are too many values, ValueError if it is not JSON."""
    # Most requests are shorter than any with so many values.
    if len(data) > values_max and _is_over(data, values_max):
        raise LimitExceeded(
            f"The JSON has more than {values_max} values.", field="body", values_max=values_max
        )
    return orjson.loads(data)


def _is_over(data: bytes, values_max: int) -> bool:
    """Are there more strings, commas and brackets than that? Those in strings do not count."""
    if _count(data) + data.count(b'"') // 2 <= values_max:
        return False
    if b"\\" in data:
        # Pairs first: of the quotes that are left, each begins or ends a string.
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = data.count(b'"') // 2
    if strings > values_max:
        return True
    outside = b"".join(data.split(b'"')[::2])
    return strings + _count(outside) > values_max


def _count(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
