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
    other_than: tuple[str, ...] | None = None
    """None of these documents."""
    min_score: float | None = None
    """The least metadata `Score` (votes of a post), not a relevance."""
    post_type_ids: tuple[int, ...] | None = None
    tags_any: tuple[str, ...] | None = None
    tags_all: tuple[str, ...] | None = None
    created_after_us: int | None = None
    created_before_us: int | None = None

    @property
    def restricts_documents(self) -> bool:
        """Is there a condition beside the source?"""
        return self.prefix != "" or any(
            condition is not None
            for condition in (
                self.document_ids,
                self.other_than,
                self.min_score,
                self.post_type_ids,
                self.tags_any,
                self.tags_all,
                self.created_after_us,
                self.created_before_us,
            )
        )


NO_FILTER = Filter()
