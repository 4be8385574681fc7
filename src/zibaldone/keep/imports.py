"""Bring in documents from elsewhere, with the revisions and times they had there.

A new id starts with the number and the history it comes with; one that is here already goes on
with its own, so a history never has a gap.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.errors import InvalidArgument, RequestError
from zibaldone.keep.commit import Actor, commit, vector_status
from zibaldone.keep.metadata import merged
from zibaldone.limits import PREPARE_INLINE_CHARS_MAX, REVISION_MAX, Limits
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import Document
from zibaldone.model.incoming import Existing, Imported, Incoming, Outcome
from zibaldone.model.instant import now_us
from zibaldone.model.job import NewJob
from zibaldone.store.port import (
    AuditEntry,
    AuditWrites,
    QueueWrites,
    Reader,
    Store,
    Writer,
)
from zibaldone.text import normalize
from zibaldone.text.chunk import cut
from zibaldone.text.chunk_changes import WantedChunks, never_ends
from zibaldone.text.labels import Labels, labels_of

_MIME = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,63}")


@dataclass(frozen=True, slots=True)
class _Plan:
    result: Imported
    before: Document | None = None
    past: tuple[Document, ...] = ()
    after: Document | None = None
    """None: nothing is to be written."""


_Text = tuple[str, str, str, Chunking]
"""Title, body and type of a document, and how it is cut: what its chunks depend on."""

Prepared = Mapping[_Text, WantedChunks]


async def write_batch(
    store: Store,
    tenant: Tenant,
    batch: Sequence[Incoming],
    actor: Actor,
    limits: Limits,
    existing: Existing,
) -> list[Imported]:
    """Store the batch in one transaction.

    The chunks of long documents are made before: that takes seconds, in which nobody could write.
    """
    prepared: Prepared = {}
    long = [one for one in batch if len(one.document.body) > PREPARE_INLINE_CHARS_MAX]
    if long:
        texts = await store.read(
            tenant, lambda reader: _texts(reader, long, actor, limits, existing), seconds_max=60.0
        )
        prepared = await asyncio.to_thread(_prepared, texts)
    return await store.write(
        tenant, lambda writer: import_documents(writer, batch, actor, limits, existing, prepared)
    )


def _texts(
    reader: Reader, batch: Sequence[Incoming], actor: Actor, limits: Limits, existing: Existing
) -> list[_Text]:
    plans = (_plan(reader, incoming, actor, limits, existing) for incoming in batch)
    after = [plan.after for plan in plans if plan.after is not None and plan.after.is_live]
    return [_text_of(reader, document) for document in after]


def _text_of(reader: Reader | Writer, document: Document) -> _Text:
    chunking = reader.sources.chunking(document.source_id)
    return document.title, document.body, document.mime, chunking


def _prepared(texts: Iterable[_Text]) -> Prepared:
    prepared = {}
    for title, body, mime, chunking in texts:
        chunks = WantedChunks.of(title, cut(body, mime, chunking))
        chunks.make_terms((), never_ends)
        prepared[title, body, mime, chunking] = chunks
    return prepared


def import_documents(
    writer: Writer,
    batch: Sequence[Incoming],
    actor: Actor,
    limits: Limits,
    existing: Existing,
    prepared: Prepared | None = None,
) -> list[Imported]:
    """Store the batch in one transaction; a document that cannot be stored does not stop it."""
    arriving = cast("Writer", _Arriving(writer, now_us()))
    results = []
    for incoming in batch:
        plan = _plan(writer, incoming, actor, limits, existing)
        if plan.after is not None:
            before = plan.before
            for state in plan.past:
                before = (
                    writer.documents.insert(state)
                    if before is None
                    else writer.documents.replace(before, state)
                )
            chunks = None
            if prepared and plan.after.is_live:  # a deleted one has none, whatever its text
                chunks = prepared.get(_text_of(writer, plan.after))
            commit(arriving, before, plan.after, actor, prepared=chunks)
        results.append(plan.result)
    return results


def preview_import(
    reader: Reader, batch: Sequence[Incoming], actor: Actor, limits: Limits, existing: Existing
) -> list[Imported]:
    """What `import_documents` would do."""
    return [_plan(reader, incoming, actor, limits, existing).result for incoming in batch]


def _plan(
    reader: Reader | Writer, incoming: Incoming, actor: Actor, limits: Limits, existing: Existing
) -> _Plan:
    document_id = incoming.document.document_id
    try:
        document = _checked(incoming.document, actor, limits)
        past = _past(incoming, document, limits)
        before = reader.documents.get(document.document_id)
    except RequestError as error:
        return _Plan(Imported(document_id, "failed", error.message))
    if before is None:
        created = Imported(document_id, "created", revision=document.revision)
        return _Plan(created, None, past, document)
    if not incoming.has_labels:
        document = _with_labels(before, document, limits)
    after = _successor(before, document)
    if after is None:
        revision = before.revision if before.operation == "import" else None
        return _Plan(Imported(document_id, "unchanged", revision=revision))
    refusal = _refusal(before, incoming, existing)
    if refusal:
        return _Plan(Imported(document_id, "skipped", refusal))
    outcome: Outcome = "updated" if before.is_live or not after.is_live else "created"
    return _Plan(Imported(document_id, outcome, revision=after.revision), before, (), after)


def _refusal(before: Document, incoming: Incoming, existing: Existing) -> str:
    if existing == "skip":
        return "it exists already"
    base = incoming.base
    is_untouched = (
        before.operation == "import"
        or before.revision == incoming.known_revision
        or (base is not None and (base.revision, base.body) == (before.revision, before.body))
    )
    if existing == "keep_edited" and not is_untouched:
        return "it was changed here" if before.is_live else "it was deleted here"
    return ""


def _checked(document: Document, actor: Actor, limits: Limits) -> Document:
    """The document in the form in which documents are kept, or what is wrong with it."""
    if not 0 <= document.revision <= REVISION_MAX:
        raise InvalidArgument(f"The revision {document.revision} is out of range.")
    if not _MIME.fullmatch(document.mime):
        raise InvalidArgument(f"{document.mime!r} is not a media type.", field="mime")
    document_id = normalize.document_id(document.document_id)
    body = normalize.body(document.body, limits.document_body_bytes_max)
    is_indexed = document.is_live
    return replace(
        document,
        document_id=document_id,
        body=body,
        title=normalize.title(document.title),
        tags=normalize.tags(document.tags),
        metadata=merged({}, document.metadata, limits),
        updated_by=document.updated_by or actor.key_id,
        # A clock that ran ahead elsewhere must not put a document into our future.
        updated_at_us=min(document.updated_at_us, now_us()),
        vector_status=vector_status(document_id, body) if is_indexed else "skipped",
        vector_error=None,
    )


def _past(incoming: Incoming, document: Document, limits: Limits) -> tuple[Document, ...]:
    """The document as it was at each of its earlier revisions."""
    first = document.revision - len(incoming.earlier)
    numbers = [revision.revision for revision in incoming.earlier]
    if first < 0 or numbers != list(range(first, document.revision)):
        raise InvalidArgument("The earlier revisions have a gap or are not in order.")
    return tuple(
        replace(
            document,
            body=normalize.body(revision.body, limits.document_body_bytes_max),
            title=normalize.title(revision.title),
            tags=normalize.tags(revision.tags),
            mime=revision.mime,
            metadata=merged({}, revision.metadata, limits),
            revision=revision.revision,
            updated_at_us=revision.written_at_us,
            updated_by=revision.written_by,
            operation=revision.operation,
        )
        for revision in incoming.earlier
    )


def _with_labels(before: Document, document: Document, limits: Limits) -> Document:
    """A plain file with the labels of the document it updates.

    Tags and metadata that came from the front matter follow it; what was added here stays. So does
    a title somebody wrote here, while one that came from the file follows the file.
    """
    is_same = before.is_live and before.body == document.body
    if is_same and before.operation != "import":
        return before
    known = labels_of(before.body, before.mime, limits.metadata_bytes_max)
    given = Labels(tags=document.tags, metadata=document.metadata)
    keeps_title = is_same or (before.title and before.operation != "import")
    return replace(
        document,
        title=before.title if keeps_title else document.title,
        tags=given.update_tags(before.tags, known),
        mime=before.mime if is_same else document.mime,
        metadata=given.update_metadata(before.metadata, known),
        parent_id=before.parent_id,
    )


def _successor(before: Document, document: Document) -> Document | None:
    """The revision that follows `before`; None where nothing would change."""
    if _content_of(before) == _content_of(document):
        return None
    return replace(
        document,
        revision=before.revision + 1,
        created_at_us=before.created_at_us,
        updated_at_us=max(document.updated_at_us, before.updated_at_us + 1),
        source_id=before.source_id,
        pk=before.pk,
    )


def _content_of(document: Document) -> tuple[object, ...]:
    return (
        document.body,
        document.title,
        document.tags,
        document.mime,
        document.parent_id,
        # As JSON: for Python 1, 1.0 and True are equal.
        orjson.dumps(document.metadata, option=orjson.OPT_SORT_KEYS),
        document.is_live,
    )


class _Arriving:
    """A writer that tells the queue and the audit trail when a document came in.

    Its own times and operation are those of the place where it was written.
    """

    def __init__(self, writer: Writer, at_us: int) -> None:
        self._writer = writer
        self.queue = _ArrivingQueue(writer.queue, at_us)
        self.audit = _ArrivingAudit(writer.audit, at_us)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


@dataclass(frozen=True, slots=True)
class _ArrivingQueue:
    queue: QueueWrites
    at_us: int

    def add(self, jobs: Iterable[NewJob]) -> list[str]:
        return self.queue.add(replace(job, created_at_us=self.at_us) for job in jobs)


@dataclass(frozen=True, slots=True)
class _ArrivingAudit:
    audit: AuditWrites
    at_us: int

    def add(self, entry: AuditEntry) -> None:
        self.audit.add(replace(entry, at_us=self.at_us, action="import"))

    def page(self, document_id: str | None, *, limit: int) -> list[AuditEntry]:
        return self.audit.page(document_id, limit=limit)
