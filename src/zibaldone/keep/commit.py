"""Where every change becomes durable: document, revision, chunks, job and audit line together."""

from __future__ import annotations

from dataclasses import dataclass

from zibaldone.errors import NotFound
from zibaldone.model.document import Document, VectorStatus
from zibaldone.model.facets import Facets
from zibaldone.model.instant import now_us
from zibaldone.model.job import EXTRACT, VECTORS, NewJob
from zibaldone.model.memory import place_of
from zibaldone.store.port import AuditEntry, Reader, Writer
from zibaldone.text.chunk import cut
from zibaldone.text.chunk_changes import WantedChunks
from zibaldone.text.facets import facets_of
from zibaldone.text.links import links_of
from zibaldone.text.memory import episode_of

VECTOR_SKIP_PREFIXES = ("operations/tasks/comments/", "registries/")
"""Records that change often: they are found by path and keyword, not by meaning."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change, in which request: what the audit trail says of it."""

    key_id: str
    request_id: str = ""
    extracts: bool = False
    """A model reads what is written to memory, later and as a job."""


@dataclass(frozen=True, slots=True)
class Change:
    """A document's next state, and the one that it replaces (None: the id is new)."""

    before: Document | None
    after: Document

    @property
    def is_new(self) -> bool:
        """Was there no live document?"""
        return self.before is None or not self.before.is_live


class Outdated(Exception):
    """Chunks were prepared for another state of the document than the stored one."""


def commit(
    writer: Writer,
    before: Document | None,
    after: Document,
    actor: Actor,
    *,
    prepared: WantedChunks | None = None,
) -> Document:
    """Store `after` in place of `before` (None: a new id). All of it happens, or none.

    `prepared`: its chunks with their terms. Outdated: terms are missing, since the stored chunks
    are no longer those that they were prepared for.
    """
    if before is None:
        stored = writer.documents.insert(after)
    else:
        stored = writer.documents.replace(before, after)
    writer.documents.put_facets(stored, _facets(stored))
    if place_of(stored.document_id) is not None:
        writer.memory.put(stored, episode_of(stored, stored.body))
        if actor.extracts and stored.is_live and stored.body.strip():
            writer.queue.add([_extract_job(stored, actor)])
    elif before is not None and place_of(before.document_id) is not None:
        writer.memory.put(stored, None)  # it was renamed, and is no episode any more
    _put_links(writer, before, stored)
    chunks = writer.chunks.stored(stored)
    if prepared is not None and prepared.lacks_terms(chunks):
        raise Outdated
    wanted = prepared or _wanted_chunks(writer, stored)
    writer.chunks.apply(stored, wanted.changes(chunks))
    writer.queue.add([_vectors_job(stored)])
    writer.audit.add(
        AuditEntry(
            at_us=stored.updated_at_us,
            principal=actor.key_id,
            action=stored.operation,
            document_id=stored.document_id,
            revision=stored.revision,
            outcome="ok",
            request_id=actor.request_id,
        )
    )
    return stored


def _put_links(writer: Writer, before: Document | None, document: Document) -> None:
    """Links of text that may have them. Rows of sources link to other rows by their keys."""
    if not document.is_live:
        writer.links.put(document, None)
        return
    links = links_of(document.document_id, document.title, document.body)
    if before is not None and before.is_live:
        known = links_of(before.document_id, before.title, before.body)
        if known == links:
            return
    writer.links.put(document, links)


def _vectors_job(document: Document) -> NewJob:
    return NewJob(
        VECTORS,
        subject=str(document.storage_key),
        payload={"revision": document.revision},
        created_at_us=document.updated_at_us,
    )


def _extract_job(document: Document, actor: Actor) -> NewJob:
    """It belongs to the namespace, so that it is not counted among the open jobs of the key: only
    its cost is the key's."""
    return NewJob(
        EXTRACT,
        subject=str(document.storage_key),
        payload={"revision": document.revision, "key_id": actor.key_id},
        created_at_us=document.updated_at_us,
    )


def _facets(document: Document) -> Facets | None:
    if not document.is_live:
        return None
    return facets_of(document.tags, document.metadata, document.created_at_us)


def _wanted_chunks(writer: Writer, document: Document) -> WantedChunks:
    """Cut as the source is defined now; a new definition applies from the next write."""
    if not document.is_live:
        return WantedChunks(document.title, ())
    chunking = writer.sources.chunking(document.source_id)
    return WantedChunks.of(document.title, cut(document.body, document.mime, chunking))


def next_instant_us(before: Document | None) -> int:
    """Now, but never before the state it replaces: clocks step back, histories must not."""
    return now_us() if before is None else max(now_us(), before.updated_at_us + 1)


def vector_status(document_id: str, body: str) -> VectorStatus:
    """`skipped` where nothing is to be embedded: an empty body, or a path that is skipped."""
    if not body.strip() or document_id.startswith(VECTOR_SKIP_PREFIXES):
        return "skipped"
    return "pending"


def live_document(reader: Reader | Writer, document_id: str) -> Document:
    return require_live(reader.documents.get(document_id), document_id)


def require_live(document: Document | None, document_id: str) -> Document:
    if document is None or not document.is_live:
        raise NotFound(f"There is no document {document_id!r}.", document_id=document_id)
    return document
