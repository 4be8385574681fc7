"""Documents that come from elsewhere, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zibaldone.model.document import Document, Revision

Existing = Literal["keep_edited", "update", "skip"]
"""What to do where the id is taken by a document that differs.

keep_edited: replace it unless it was changed or deleted here; update: replace it; skip: never.
"""

Outcome = Literal["created", "updated", "unchanged", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Incoming:
    document: Document
    earlier: tuple[Revision, ...] = ()
    """Its earlier revisions, oldest first; stored where the id is new here."""
    base: Document | None = None
    """The revision of ours it was edited from; it may replace that one without loss."""
    known_revision: int | None = None
    """The revision at which an earlier import left it; it may replace that one, too."""
    has_labels: bool = True
    """False for a plain file: its tags and metadata are those of its front matter, and what else is
    stored stays."""


@dataclass(frozen=True, slots=True)
class Imported:
    document_id: str
    outcome: Outcome
    reason: str = ""
    revision: int | None = None
    """At which the import left the document; None if it is not the import's."""
