"""What changed lately."""

from __future__ import annotations

from dataclasses import dataclass

from zibaldone.limits import RECENT_LOOKED_AT
from zibaldone.store.port import AuditEntry, Reader


@dataclass(frozen=True, slots=True)
class RecentChange:
    """The last change of a document."""

    entry: AuditEntry
    title: str | None
    """None: the document is not there any more."""


def recent_changes(reader: Reader, *, prefix: str, limit: int) -> tuple[list[RecentChange], bool]:
    """The documents that changed last, the newest first; and are there more?

    Of the last changes only so many are looked at, however many there are.
    """
    latest: dict[str, AuditEntry] = {}
    entries = reader.audit.page(None, limit=RECENT_LOOKED_AT)
    for entry in entries:
        if entry.document_id.startswith(prefix) and entry.outcome == "ok":
            latest.setdefault(entry.document_id, entry)
    shown = list(latest.values())[:limit]
    changes = []
    for entry in shown:
        part = reader.documents.peek(entry.document_id, 0)
        title = part.title if part is not None and part.is_live else None
        changes.append(RecentChange(entry, title))
    return changes, len(latest) > limit or len(entries) == RECENT_LOOKED_AT
