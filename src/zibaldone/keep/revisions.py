"""The history of a document: what it was, what changed, and the way back."""

from __future__ import annotations

from dataclasses import replace

from zibaldone.errors import NotFound
from zibaldone.keep.commit import Actor, Change, next_instant_us, vector_status
from zibaldone.keep.update import require_revision
from zibaldone.keep.writing import Edit, Seen
from zibaldone.model.document import Document, DocumentFields, DocumentPart, Revision
from zibaldone.store.port import Reader, Writer
from zibaldone.text.chunk_changes import Checkpoint
from zibaldone.text.difference import UnifiedDiff, unified_diff


def history(
    reader: Reader, document_id: str, *, before: int | None, limit: int
) -> tuple[list[Revision], int | None]:
    """Revisions, newest first, and where the next page starts (None: this was the last)."""
    document = _known(reader, document_id)
    page: list[Revision] = []
    if before is None or document.revision < before:
        page.append(_current(document, document.content_chars))
    page += reader.revisions.page(document, before=before, limit=limit + 1 - len(page))
    return page[:limit], page[limit - 1].revision if len(page) > limit else None


def revision(reader: Reader, document_id: str, number: int) -> Revision:
    document = _known(reader, document_id)
    if number == document.revision:
        return _revision_of(reader, _known_document(reader, document_id), number)
    return _earlier(reader, document, number)


def revision_chars(reader: Reader, document_id: str, number: int) -> int:
    """How long the body of a revision is, without reading it."""
    document = _known(reader, document_id)
    if number == document.revision:
        return document.content_chars
    page = reader.revisions.page(document, before=number + 1, limit=1)
    return page[0].content_chars if page else 0


def _revision_of(reader: Reader | Writer, document: Document, number: int) -> Revision:
    if number == document.revision:
        return _current(document, len(document.body), document.body)
    return _earlier(reader, document, number)


def _earlier(reader: Reader | Writer, document: DocumentFields, number: int) -> Revision:
    earlier = reader.revisions.get(document, number)
    if earlier is None:
        raise NotFound(
            f"{document.document_id!r} has no revision {number}; "
            f"its newest is {document.revision}.",
            document_id=document.document_id,
            revision=number,
            newest=document.revision,
        )
    return earlier


def diff(reader: Reader, document_id: str, older: int, newer: int) -> UnifiedDiff:
    before, after = (revision(reader, document_id, number) for number in (older, newer))
    return unified_diff(before.body, after.body, f"{document_id}@{older}", f"{document_id}@{newer}")


def restoring(
    document_id: str, number: int, actor: Actor, *, last_known_revision: int | None = None
) -> Edit[Change]:
    """Make an earlier state the newest revision; also brings back a deleted document."""

    def look(reader: Reader | Writer) -> Seen:
        before = _known_document(reader, document_id)
        require_revision(before, last_known_revision)
        return Seen(before, _revision_of(reader, before, number))

    def decide(seen: Seen, _: Checkpoint) -> Change:
        before, state = seen.document, seen.revision
        if before is None or state is None:
            raise TypeError("`look` raises where there is nothing to restore")
        after = replace(
            before,
            body=state.body,
            title=state.title,
            tags=state.tags,
            mime=state.mime,
            metadata=state.metadata,
            revision=before.revision + 1,
            updated_at_us=next_instant_us(before),
            updated_by=actor.key_id,
            operation="restore",
            deleted_at_us=None,
            vector_status=vector_status(document_id, state.body),
            vector_error=None,
        )
        return Change(before, after)

    return Edit(document_id, look, decide)


def _known_document(reader: Reader | Writer, document_id: str) -> Document:
    """Live or deleted: a history outlives its document."""
    document = reader.documents.get(document_id)
    if document is None:
        raise _unknown(document_id)
    return document


def _known(reader: Reader, document_id: str) -> DocumentPart:
    """The same without its body."""
    document = reader.documents.peek(document_id, 0)
    if document is None:
        raise _unknown(document_id)
    return document


def _unknown(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id!r}.", document_id=document_id)


def _current(document: DocumentFields, content_chars: int, body: str = "") -> Revision:
    return Revision(
        document_id=document.document_id,
        revision=document.revision,
        title=document.title,
        tags=document.tags,
        mime=document.mime,
        metadata=document.metadata,
        written_at_us=document.updated_at_us,
        written_by=document.updated_by,
        operation=document.operation,
        content_chars=content_chars,
        body=body,
    )
