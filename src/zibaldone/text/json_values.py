"""JSON from outside, within a number of values.

A parser makes an object of some fifty bytes or more of each value, and nothing can interrupt it:
32 MB of `[],` are ten million lists, two gigabytes and several seconds. So values are counted first
on the bytes, part by part: to count those of a long body takes longer than to parse it, and who
receives one can serve others between its parts.
"""

from __future__ import annotations

from typing import Any

import orjson

from zibaldone.errors import LimitExceeded
from zibaldone.limits import JSON_VALUES_MAX

_PART_BYTES = 1 << 20


class ValueCount:
    """Counts strings, commas and opening brackets, but not those in strings."""

    __slots__ = ("_in_string", "_is_escaped", "_outside", "_quotes")

    def __init__(self) -> None:
        self._outside = 0
        self._quotes = 0
        self._in_string = False
        self._is_escaped = False
        """The last byte was a backslash that escapes the next."""

    def add(self, part: bytes) -> None:
        """Count the next part. It may begin and end anywhere."""
        if self._is_escaped and part:
            part = part[1:]
            self._is_escaped = False
        if b"\\" in part:
            backslashes = len(part) - len(part.rstrip(b"\\"))
            self._is_escaped = backslashes % 2 == 1
            # Pairs first: of the quotes that are left, each begins or ends a string.
            part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = part.split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self._outside += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        self._quotes += len(pieces) - 1
        self._in_string ^= len(pieces) % 2 == 0

    @property
    def values(self) -> int:
        return self._outside + self._quotes // 2


def load_json(
    data: bytes, values_max: int = JSON_VALUES_MAX, count: ValueCount | None = None
) -> Any:
    """Raise LimitExceeded if there are too many values, ValueError if it is not JSON.

    `count`: of the same bytes, where they were counted already.
    """
    # Most requests are shorter than any with so many values.
    if len(data) > values_max and (count or _count(data, values_max)).values > values_max:
        raise LimitExceeded(
            f"The JSON has more than {values_max} values.", field="body", values_max=values_max
        )
    return orjson.loads(data)


def _count(data: bytes, values_max: int) -> ValueCount:
    """Of all of it, or of as much as has too many."""
    count = ValueCount()
    for start in range(0, len(data), _PART_BYTES):
        count.add(data[start : start + _PART_BYTES])
        if count.values > values_max:
            break
    return count


def is_nested_deeper(value: Any, levels_max: int) -> bool:
    """Whether lists and objects stand in one another in more levels than this."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(levels_max):
        if not level:
            return False
        level = [
            part
            for nested in level
            for part in (nested.values() if isinstance(nested, dict) else nested)
            if isinstance(part, list | dict)
        ]
    return bool(level)
