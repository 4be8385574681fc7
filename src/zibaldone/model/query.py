"""What a search may be restricted to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions hold together; None (or an empty prefix) does not restrict."""

    prefix: str = ""
    source_ids: tuple[int, ...] | None = None
    source_names: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    without_ids: tuple[str, ...] | None = None
    """Documents that are not wanted."""
    min_score: float | None = None
    """The least metadata `Score` (votes of a post), not a relevance."""
    post_type_ids: tuple[int, ...] | None = None
    tags_any: tuple[str, ...] | None = None
    tags_all: tuple[str, ...] | None = None
    created_after_us: int | None = None
    created_before_us: int | None = None


NO_FILTER = Filter()
