"""Change a document: the fields given, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zibaldone.errors import Conflict
from zibaldone.keep.commit import (
    Actor,
    Change,
    commit,
    live_document,
    next_instant_us,
    require_live,
    vector_status,
)
from zibaldone.keep.metadata import check_given, merged
from zibaldone.keep.writing import Edit, Seen
from zibaldone.limits import Limits
from zibaldone.model.document import Document, Operation
from zibaldone.store.port import Writer
from zibaldone.text import normalize
from zibaldone.text.chunk_changes import Checkpoint
from zibaldone.text.title import title_of


@dataclass(frozen=True, slots=True)
class Changes:
    """None leaves a field as it is; metadata is merged by key."""

    body: str | None = None
    title: str | None = None
    tags: tuple[str, ...] | None = None
    mime: str | None = None
    parent_id: str | None = None
    metadata: Mapping[str, Any] | None = None


def update(
    writer: Writer,
    document_id: str,
    changes: Changes,
    actor: Actor,
    limits: Limits,
    *,
    last_known_revision: int | None = None,
    operation: Operation = "update",
) -> Document:
    before = live_document(writer, document_id)
    require_revision(before, last_known_revision)
    return commit(writer, before, changed(before, changes, actor, limits, operation), actor)


def updating(
    document_id: str,
    changes: Changes,
    actor: Actor,
    limits: Limits,
    *,
    last_known_revision: int | None = None,
) -> Edit[Change]:
    """The same as an edit. Raises at once what can be said without the store."""
    if changes.title is not None:
        normalize.title(changes.title)
    if changes.tags is not None:
        normalize.tags(changes.tags)
    if changes.body is not None:
        normalize.body(changes.body, limits.document_body_bytes_max)
    check_given(changes.metadata or {}, limits)

    def decide(seen: Seen, _: Checkpoint) -> Change:
        before = require_live(seen.document, document_id)
        require_revision(before, last_known_revision)
        return Change(before, changed(before, changes, actor, limits, "update"))

    return Edit(
        document_id,
        look=lambda reader: Seen(reader.documents.get(document_id)),
        decide=decide,
        text_chars=len(changes.body or ""),
    )


def require_revision(document: Document, last_known_revision: int | None) -> None:
    if last_known_revision is not None and last_known_revision != document.revision:
        raise Conflict(
            f"{document.document_id!r} is at revision {document.revision}, not "
            f"{last_known_revision}: somebody changed it. Read it again, then repeat the change.",
            document_id=document.document_id,
            expected=last_known_revision,
            actual=document.revision,
        )


def changed(
    before: Document, changes: Changes, actor: Actor, limits: Limits, operation: Operation
) -> Document:
    """The next revision of a document; nothing is stored here."""
    body = before.body
    if changes.body is not None:
        body = normalize.body(changes.body, limits.document_body_bytes_max)
    return replace(
        before,
        body=body,
        title=_next_title(before, body, changes),
        tags=before.tags if changes.tags is None else normalize.tags(changes.tags),
        mime=before.mime if changes.mime is None else changes.mime,
        parent_id=before.parent_id if changes.parent_id is None else changes.parent_id,
        metadata=merged(before.metadata, changes.metadata or {}, limits),
        revision=before.revision + 1,
        updated_at_us=next_instant_us(before),
        updated_by=actor.key_id,
        operation=operation,
        deleted_at_us=None,
        vector_status=vector_status(before.document_id, body),
        vector_error=None,
    )


def _next_title(before: Document, body: str, changes: Changes) -> str:
    """The title given. A title that was taken from the text follows the text."""
    if changes.title is not None:
        return normalize.title(changes.title)
    if body is before.body or before.title != title_of(before.body, before.mime):
        return before.title
    return title_of(body, changes.mime or before.mime)
