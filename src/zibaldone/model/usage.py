"""What a namespace holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamespaceUsage:
    namespace: str
    documents: int
    """Live ones."""
    revisions: int
    """All that are kept: the current ones and those of deleted documents too."""
    bytes: int
    """Of all these revisions as they are stored: text, title, tags and metadata. Bodies of earlier
    revisions are compressed. Chunks and indexes come on top, about three times as much."""
