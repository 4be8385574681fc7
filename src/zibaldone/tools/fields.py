"""Members that answers of several tools have."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from zibaldone.errors import InvalidArgument
from zibaldone.find.missing import Part
from zibaldone.model.instant import from_iso

LeftOut = Annotated[
    list[Part],
    Field(description="Parts of the search that did not answer, or not in time; see note"),
]


def _instant(text: str) -> str:
    try:
        from_iso(text)
    except (ValueError, OverflowError):
        raise ValueError("an ISO instant, e.g. 2025-01-01T00:00:00Z") from None
    return text


Instant = Annotated[str, AfterValidator(_instant)]
"""ISO 8601, also the SQL form; no zone means UTC, no time the beginning of the day."""


def instant_us(text: str | None, field: str = "") -> int | None:
    """InvalidArgument: it is none; only of a text that was not read as an `Instant`."""
    try:
        return None if text is None else from_iso(text)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{field} must be an ISO instant, e.g. 2025-01-01T00:00:00Z.", field=field
        ) from None
