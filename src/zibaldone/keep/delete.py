"""Delete a document softly: gone from lists and searches, still there to be restored."""

from __future__ import annotations

from dataclasses import replace

from zibaldone.keep.commit import Actor, commit, live_document, next_instant_us
from zibaldone.keep.update import require_revision
from zibaldone.model.document import Document
from zibaldone.store.port import Writer


def delete(
    writer: Writer, document_id: str, actor: Actor, *, last_known_revision: int | None = None
) -> Document:
    before = live_document(writer, document_id)
    require_revision(before, last_known_revision)
    return delete_live(writer, before, actor)


def delete_live(writer: Writer, before: Document, actor: Actor) -> Document:
    at_us = next_instant_us(before)
    after = replace(
        before,
        revision=before.revision + 1,
        updated_at_us=at_us,
        deleted_at_us=at_us,
        updated_by=actor.key_id,
        operation="delete",
        vector_status="skipped",
        vector_error=None,
    )
    return commit(writer, before, after, actor)
