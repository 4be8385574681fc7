"""What is remembered of the rows that were pulled from a source, to see what changed.

Rows are taken in the order of their keys and in blocks. A block stands for its rows: if the hash of
their keys and watermarks is as it was, none of them is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RowDocument:
    """What a row says, before it is checked and stored."""

    document_id: str
    title: str
    body: str
    mime: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    pk: Mapping[str, Any]
    """The row's key: column → value."""
    created_at_us: int | None


@dataclass(frozen=True, slots=True)
class PulledRow:
    document_id: str
    block: int
    mark: int
    """Hash of what shows that a row has changed; 0 where nothing can show that for sure."""
    content: bytes
    """Hash of all that the document is made of; empty if it could not be made."""


@dataclass(frozen=True, slots=True)
class PulledBlock:
    block: int
    rows: int
    digest: bytes
    """Hash over the keys and watermarks of its rows."""
    first_key: str
    """The key of its first row, as JSON: where the block is looked for."""
    is_settled: bool
    """False: one of its rows has the mark 0, or failed. Its rows are looked at each time."""


@dataclass(frozen=True, slots=True)
class PulledRun:
    """The last run of a sync."""

    run: int
    is_complete: bool
    """False: it was cut short, or is going on."""
