"""Metadata: merged by key, bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from zibaldone.errors import InvalidArgument
from zibaldone.limits import METADATA_DEPTH_MAX, Limits


def merged(current: Mapping[str, Any], given: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Keys given replace those stored; a null removes; all others stay."""
    result = {**current, **given}
    for key, value in given.items():
        if value is None:
            del result[key]
    encoded = _encoded(result, limits)
    if _depth(result, METADATA_DEPTH_MAX) > METADATA_DEPTH_MAX:
        raise InvalidArgument(
            f"The metadata is nested deeper than {METADATA_DEPTH_MAX} levels.",
            field="metadata",
            depth_max=METADATA_DEPTH_MAX,
        )
    # Only where the bytes hint at it: a backslash written before u0000 looks the same.
    if b"\\u0000" in encoded and _has_nul(result):
        raise InvalidArgument("NUL character in metadata.", field="metadata")
    return result


def check_given(given: Mapping[str, Any], limits: Limits) -> None:
    """Raise if no document could take this metadata, however little it has."""
    _encoded(given, limits)


def _encoded(metadata: Mapping[str, Any], limits: Limits) -> bytes:
    try:
        encoded = orjson.dumps(metadata)
    except TypeError as problem:
        raise InvalidArgument(
            f"The metadata is not plain JSON: {problem}", field="metadata"
        ) from None
    size_bytes = len(encoded)
    if size_bytes > limits.metadata_bytes_max:
        raise InvalidArgument(
            f"The metadata has {size_bytes} bytes; {limits.metadata_bytes_max} are allowed.",
            field="metadata",
            bytes_max=limits.metadata_bytes_max,
        )
    return encoded


def _depth(value: Any, depth_max: int) -> int:
    """How deep a value is nested, or any number above the bound if it is deeper."""
    if depth_max < 0 or not isinstance(value, dict | list):
        return 0 if depth_max >= 0 else 1
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(part, depth_max - 1) for part in parts), default=0)


def _has_nul(value: Any) -> bool:
    """Not every database can keep one in JSON, so none is asked to."""
    match value:
        case str():
            return "\x00" in value
        case list():
            return any(_has_nul(part) for part in value)
        case dict():
            return any("\x00" in key or _has_nul(part) for key, part in value.items())
    return False
