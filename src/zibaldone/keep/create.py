"""Create a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zibaldone.errors import Conflict
from zibaldone.keep.commit import Actor, Change, commit, next_instant_us, vector_status
from zibaldone.keep.metadata import check_given, merged
from zibaldone.keep.update import Changes, changed
from zibaldone.keep.writing import Edit, Seen
from zibaldone.limits import Limits
from zibaldone.model.document import MIME_DEFAULT, Document, Operation, parent_of
from zibaldone.store.port import Writer
from zibaldone.text import normalize
from zibaldone.text.title import title_of


@dataclass(frozen=True, slots=True)
class NewDocument:
    document_id: str
    body: str
    title: str = ""
    tags: tuple[str, ...] = ()
    mime: str | None = None
    parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def create(
    writer: Writer,
    new: NewDocument,
    actor: Actor,
    limits: Limits,
    *,
    upsert: bool = False,
    operation: Operation = "create",
) -> tuple[Document, bool]:
    """The stored document, and whether it is new. A deleted id comes back with its history."""
    before = writer.documents.get(new.document_id)
    change = _change(before, new, actor, limits, upsert, operation)
    return commit(writer, before, change.after, actor), change.is_new


def creation(
    new: NewDocument, actor: Actor, limits: Limits, *, upsert: bool = False
) -> Edit[Change]:
    """The same as an edit. Raises at once what can be said without the store."""
    normalize.title(new.title)
    normalize.tags(new.tags)
    normalize.body(new.body, limits.document_body_bytes_max)
    check_given(new.metadata, limits)
    return Edit(
        new.document_id,
        look=lambda reader: Seen(reader.documents.get(new.document_id)),
        decide=lambda seen, _: _change(seen.document, new, actor, limits, upsert, "create"),
        text_chars=len(new.body),
    )


def _change(
    before: Document | None,
    new: NewDocument,
    actor: Actor,
    limits: Limits,
    upsert: bool,
    operation: Operation,
) -> Change:
    if before is not None and before.is_live:
        if not upsert:
            raise Conflict(
                f"A document {new.document_id!r} exists already (revision {before.revision}). "
                "Update or patch it, or choose another path.",
                document_id=new.document_id,
                revision=before.revision,
            )
        changes = Changes(
            body=new.body,
            title=new.title or None,
            tags=new.tags or None,
            mime=new.mime,
            parent_id=new.parent_id,
            metadata=new.metadata,
        )
        return Change(before, changed(before, changes, actor, limits, operation))
    at_us = next_instant_us(before)
    body = normalize.body(new.body, limits.document_body_bytes_max)
    after = Document(
        document_id=new.document_id,
        body=body,
        title=normalize.title(new.title) or title_of(body, new.mime or MIME_DEFAULT),
        tags=normalize.tags(new.tags),
        parent_id=new.parent_id if new.parent_id is not None else parent_of(new.document_id),
        mime=new.mime or MIME_DEFAULT,
        metadata=merged({}, new.metadata, limits),
        revision=1 if before is None else before.revision + 1,
        created_at_us=at_us,
        updated_at_us=at_us,
        updated_by=actor.key_id,
        operation=operation,
        vector_status=vector_status(new.document_id, body),
    )
    return Change(before, after)
