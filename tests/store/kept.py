"""A store with the product's own write path on it; every call waits for its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from zibaldone.access.principal import Tenant
from zibaldone.embed.hashed import Hashed
from zibaldone.index.worker import IndexWorker
from zibaldone.keep.commit import Actor, commit
from zibaldone.keep.create import NewDocument, create
from zibaldone.keep.delete import delete
from zibaldone.keep.patch import Replacement, patch
from zibaldone.keep.update import Changes, update
from zibaldone.limits import Limits
from zibaldone.model.chunk import ChunkChanges, ChunkView
from zibaldone.model.document import Document, DocumentHead
from zibaldone.model.job import Job
from zibaldone.model.query import Filter
from zibaldone.store.port import Listing, Reader, Scored, Store, Writer
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.chunk import Chunk
from zibaldone.text.chunk_changes import chunk_changes
from zibaldone.text.query import parse_query

T = TypeVar("T")

ACTOR = Actor("tester", "request-1")
EVERYTHING = Tenant()
HASHED = Hashed()


class Kept:
    def __init__(self, store: Store, limits: Limits) -> None:
        self.store = store
        self.limits = limits

    def write(self, work: Callable[[Writer], T], tenant: Tenant = EVERYTHING) -> T:
        return asyncio.run(self.store.write(tenant, work))

    def read(
        self,
        work: Callable[[Reader], T],
        tenant: Tenant = EVERYTHING,
        seconds_max: float | None = None,
        *,
        is_small: bool = False,
    ) -> T:
        return asyncio.run(
            self.store.read(tenant, work, seconds_max=seconds_max, is_small=is_small)
        )

    def create(
        self, path: str, body: str = "some text", tenant: Tenant = EVERYTHING, **more: Any
    ) -> Document:
        new = NewDocument(path, body, **more)
        return self.write(lambda writer: create(writer, new, ACTOR, self.limits)[0], tenant)

    def update(self, path: str, tenant: Tenant = EVERYTHING, **changes: Any) -> Document:
        return self.write(
            lambda writer: update(writer, path, Changes(**changes), ACTOR, self.limits), tenant
        )

    def patch(self, path: str, old: str, new: str) -> Document:
        return self.write(
            lambda writer: patch(writer, path, [Replacement(old, new)], ACTOR, self.limits)[0]
        )

    def delete(self, path: str, tenant: Tenant = EVERYTHING) -> Document:
        return self.write(lambda writer: delete(writer, path, ACTOR), tenant)

    def jobs(self, tenant: Tenant = EVERYTHING, *, kind: str | None = None) -> list[Job]:
        """All jobs, the newest first, with their payloads and results."""

        def whole(reader: Reader) -> list[Job | None]:
            page = reader.jobs.page(kind=kind, limit=100)
            return [reader.jobs.get(head.job_id) for head in page]

        return [job for job in self.read(whole, tenant) if job is not None]

    def commit(self, before: Document | None, after: Document) -> Document:
        return self.write(lambda writer: commit(writer, before, after, ACTOR))

    def put_chunks(
        self, document: Document, chunks: Sequence[Chunk], tenant: Tenant = EVERYTHING
    ) -> ChunkChanges:
        """Make these the document's chunks."""

        def put(writer: Writer) -> ChunkChanges:
            changes = chunk_changes(writer.chunks.stored(document), document.title, chunks)
            writer.chunks.apply(document, changes)
            return changes

        return self.write(put, tenant)

    def get(self, path: str, tenant: Tenant = EVERYTHING) -> Document | None:
        return self.read(lambda reader: reader.documents.get(path), tenant)

    def known(self, path: str) -> Document:
        document = self.get(path)
        assert document is not None, path
        return document

    def heads(
        self, prefix: str = "", tenant: Tenant = EVERYTHING, **more: Any
    ) -> list[DocumentHead]:
        arguments = {"limit": 1_000, **more}
        return self.read(lambda reader: reader.documents.heads(prefix, **arguments), tenant)

    def listing(self, prefix: str = "", tenant: Tenant = EVERYTHING, **more: Any) -> Listing:
        arguments = {"limit": 1_000, **more}
        return self.read(lambda reader: reader.documents.listing(prefix, **arguments), tenant)

    def ids(self, prefix: str = "", tenant: Tenant = EVERYTHING, **more: Any) -> list[str]:
        return [head.document_id for head in self.heads(prefix, tenant, **more)]

    def scored(self, words: str, tenant: Tenant = EVERYTHING, prefix: str = "") -> list[Scored]:
        query, wanted = parse_query(words), Filter(prefix=prefix)
        return self.read(
            lambda reader: reader.lexical.search(query, limit=50, wanted=wanted), tenant
        )

    def search(self, words: str, tenant: Tenant = EVERYTHING, prefix: str = "") -> list[ChunkView]:
        """What a search shows, best first."""
        keys = [key for key, _ in self.scored(words, tenant, prefix)]
        views = self.read(lambda reader: reader.chunks.views(keys), tenant)
        return [views[key] for key in keys]

    def found(self, words: str, tenant: Tenant = EVERYTHING, prefix: str = "") -> set[str]:
        return {view.document_id for view in self.search(words, tenant, prefix)}

    def upkeep(self, work: Callable[[Upkeep], T], *, write: bool = True) -> T:
        return asyncio.run(self.store.upkeep(work, write=write))

    def index(self) -> None:
        """Deal with all that waits for vectors."""
        asyncio.run(IndexWorker(self.store, HASHED).drain())

    def nearest(self, text: str, k: int = 200) -> list[tuple[str, float]]:
        """The passages nearest to a text, with their cosine."""
        query = HASHED.embed([text])[0]

        def look(reader: Reader) -> list[tuple[str, float]]:
            hits = reader.vectors.search(HASHED.identity, query, k)
            views = reader.chunks.views(key for key, _ in hits)
            return [(views[key].text, round(score, 5)) for key, score in hits]

        return self.read(look)


@dataclass(frozen=True, slots=True)
class Two:
    """Two that opened the same store, as two processes do."""

    here: Kept
    there: Kept
