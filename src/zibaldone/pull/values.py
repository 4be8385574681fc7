"""Values of drivers as JSON has them: numbers stay numbers, times become ISO instants."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson

Row = tuple[Any, ...]

_INT_MAX = 2**63
_EXACT_MAX = 2**53


class _LeftOut:
    """A value that no document can hold."""


LEFT_OUT = _LeftOut()
"""Bytes."""


def is_zero_date(value: object) -> bool:
    """`0000-00-00 00:00:00` is how MySQL writes that there is none. Drivers give it as text."""
    return isinstance(value, str) and value.startswith("0000-00-00")


def plain(value: Any) -> Any:
    """A value for metadata or an answer; None where there is none, LEFT_OUT for bytes."""
    match value:
        case None | bool():
            return value
        case int():
            return value if -_INT_MAX <= value < _INT_MAX else str(value)
        case str():
            return None if is_zero_date(value) else value
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return _instant(value)
        case date():
            return value.isoformat()
        case Decimal():
            return _number(value)
        case bytes() | bytearray() | memoryview():
            return LEFT_OUT
    return _nested(value)


def _nested(value: Any) -> Any:
    match value:
        case list() | tuple() | set() | frozenset():
            return [None if (item := plain(part)) is LEFT_OUT else item for part in value]
        case dict():
            items = ((str(key), plain(part)) for key, part in value.items())
            return {key: part for key, part in items if part is not LEFT_OUT}
    return str(value)


def text(value: Any) -> str:
    """A value as a part of a title or body."""
    if isinstance(value, str):
        return "" if is_zero_date(value) else value
    shown = plain(value)
    if shown is None or shown is LEFT_OUT:
        return ""
    if isinstance(shown, dict | list):
        return orjson.dumps(shown).decode()
    if isinstance(shown, bool):
        return "true" if shown else "false"
    return str(shown)


def instant_us(value: Any) -> int | None:
    """The moment that a column says, in microseconds; None where it says none."""
    seconds = instant_seconds(value)
    return None if seconds is None else int(seconds * 1_000_000)


def instant_seconds(value: Any) -> float | None:
    moment: datetime | None = None
    if isinstance(value, str):
        if is_zero_date(value):
            return None
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    elif isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None


def encoded(values: Any) -> bytes:
    """Bytes that are the same for the same values, and others for others."""
    try:
        return orjson.dumps(values, default=_tagged, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError):  # whole numbers of more than 64 bits, unpaired surrogates
        return repr(values).encode("utf-8", "surrogatepass")


def _tagged(value: Any) -> Any:
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return [type(value).__name__, repr(value)]


def _instant(moment: datetime) -> str:
    """Without a zone it is taken as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat() + "Z"


def _number(value: Decimal) -> int | float | str:
    """A number where JSON's numbers hold it exactly, otherwise its digits as text."""
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        whole = int(value)
        return whole if abs(whole) <= _EXACT_MAX else str(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)
