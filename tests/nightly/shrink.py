"""A failing case made shorter, part by part, for as long as it still fails."""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from tests.nightly.cases import Case

_KEPT = {"kind", "method", "path", "url", "form", "seed", "trick"}
"""Without these it would be another case, or none."""

Place = tuple[Any, ...]


async def shrunk(
    case: Case, fails: Callable[[Case], Awaitable[bool]], seconds_max: float = 60
) -> Case:
    until_s = time.monotonic() + seconds_max
    found_shorter = True
    while found_shorter:
        found_shorter = False
        for shorter in _shorter(case):
            if time.monotonic() > until_s:
                return case
            try:
                is_failing = await fails(shorter)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # too much was dropped: it is no case any more
            if is_failing:
                case = shorter
                found_shorter = True
                break
    return case


def _shorter(case: Case) -> Iterator[Case]:
    places = list(_places(case))
    for place in places:
        if place[-1] not in _KEPT:
            yield _with(case, place, None, is_dropped=True)
    for place in places:
        value = _at(case, place)
        if place[-1] in _KEPT:
            continue
        for less in _lesser(value):
            yield _with(case, place, less)


def _places(value: Any, above: Place = ()) -> Iterator[Place]:
    """Outer ones first: what can go as a whole need not be taken apart."""
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = list(value)
    elif isinstance(value, list) and len(value) <= 100:
        parts = list(range(len(value)))
    for part in parts:
        yield (*above, part)
    for part in parts:
        yield from _places(value[part], (*above, part))


def _lesser(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [0, value // 2, value - value // 8] if value > 8 else [0] if value > 0 else []
    if isinstance(value, str):
        return ["", value[: len(value) // 2], value[len(value) // 2 :]] if len(value) > 1 else []
    if isinstance(value, list) and len(value) > 1:
        return [value[: len(value) // 2], value[len(value) // 2 :]]
    return []


def _at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def _with(case: Case, place: Place, value: Any, *, is_dropped: bool = False) -> Case:
    changed = copy.deepcopy(case)
    holder = _at(changed, place[:-1])
    if is_dropped:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return changed
