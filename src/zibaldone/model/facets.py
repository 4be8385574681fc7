"""What searches can be restricted by, apart from the path and the source of a document."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facets:
    tags: frozenset[str]
    """Folded (`text.facets.fold_tag`), so that an engine compares them byte by byte."""
    created_us: int
    """When the content was created; rows of a database bring their own date."""
    score: float | None
    post_type: int | None
    """None, like a score of None: passes only where a filter does not ask for it."""
