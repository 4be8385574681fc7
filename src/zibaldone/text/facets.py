"""What can be filtered by, read from a document's tags and metadata however they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from zibaldone.model.facets import Facets
from zibaldone.model.instant import from_iso
from zibaldone.text.normalize import normal_form

_ANGLED = re.compile(r"<([^<>]+)>")


def facets_of(tags: Iterable[str], metadata: Mapping[str, Any], created_at_us: int) -> Facets:
    """Rows of a database bring their own tags, score and date as metadata; those count."""
    return Facets(
        tags=frozenset(filter(None, map(fold_tag, (*tags, *_tag_list(metadata.get("Tags")))))),
        created_us=_instant_us(
            metadata.get("CreationDate", metadata.get("reference_time")), created_at_us
        ),
        score=_number(metadata.get("Score")),
        post_type=_whole(metadata.get("PostTypeId")),
    )


def fold_tag(tag: str) -> str:
    """A tag as it is compared: however its accents, blanks and capitals were typed."""
    return " ".join(normal_form("NFC", tag).split()).casefold()


def folded_tags(tags: Iterable[str] | None) -> tuple[str, ...] | None:
    """The tags of a filter as they are compared; None stays None."""
    return None if tags is None else tuple(dict.fromkeys(map(fold_tag, tags)))


def _tag_list(value: Any) -> list[str]:
    """`<a><b>`, `a,b` or an array."""
    if isinstance(value, list):
        return [tag for tag in value if isinstance(tag, str)]
    if not isinstance(value, str):
        return []
    angled = _ANGLED.findall(value)
    return angled or [part for part in value.split(",") if part.strip()]


def _instant_us(value: Any, otherwise_us: int) -> int:
    if isinstance(value, str):
        try:
            return from_iso(value)
        except (ValueError, OverflowError):
            return otherwise_us
    return otherwise_us


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e15 else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else None
