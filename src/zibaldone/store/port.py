"""What the product asks of a storage engine: small protocols, the same for every backend.

A transaction is a plain function: `await store.write(tenant, work)` runs `work(writer)` atomically
and returns once its effect is durable; `await store.read(tenant, work)` runs `work(reader)` on one
snapshot. Deciding happens in the function, waiting happens here. Every reader and writer is bound
to one `Tenant`: what lies outside it does not exist for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import orjson

from zibaldone.access.key import ApiKey
from zibaldone.access.principal import Tenant
from zibaldone.model.chunk import ChunkChanges, ChunkView, StoredChunk
from zibaldone.model.document import Document, DocumentHead, DocumentPart, Revision
from zibaldone.model.facets import Facets
from zibaldone.model.job import Job, JobState, NewJob
from zibaldone.model.query import NO_FILTER, Filter, Query
from zibaldone.store.upkeep import SourceDefinitions, Upkeep

if TYPE_CHECKING:  # numpy is loaded by the first search, not by the first import
    from zibaldone.model.vector import Vectors

T = TypeVar("T")


Scored = tuple[int, float]
"""A chunk's key and its score; a higher score is a better match."""


@dataclass(frozen=True, slots=True)
class SourceCounts:
    source_id: int
    name: str
    enabled: bool
    last_sync_at_us: int | None
    documents: int
    chunks: int


class Listing:
    """A page of documents, as values and as the JSON that a client is sent.

    An engine may return a subclass that writes the JSON itself: some databases do that in a third
    of the time we would take. It then makes the heads when they are asked for.
    """

    __slots__ = ("_heads", "has_more")

    def __init__(self, heads: Sequence[DocumentHead], has_more: bool) -> None:
        self._heads = heads
        self.has_more = has_more
        """There are documents after the last of these."""

    @property
    def heads(self) -> Sequence[DocumentHead]:
        return self._heads

    @property
    def count(self) -> int:
        return len(self.heads)

    @property
    def last_id(self) -> str | None:
        """What to ask for the next page after; None: the page is empty."""
        return self.heads[-1].document_id if self.heads else None

    def to_json(self) -> str:
        """An array; an item has document_id, parent_id, title, tags and revision, in this order."""
        return orjson.dumps(list(self.heads)).decode()


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at_us: int
    principal: str
    action: str
    document_id: str
    outcome: str
    revision: int | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What a look at the store found."""

    ok: bool
    engine: str
    problems: tuple[str, ...]
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StorePlace:
    """What can be said of a store without opening it."""

    engine: str
    version: str
    description: str
    is_made: bool
    """False: it is made when it is first opened."""
    problem: str = ""
    """Why it cannot be opened, as far as can be seen from outside."""
    advice: str = ""
    """What to do about it."""
    recovery: str = ""
    """What to do when its content is damaged."""


class DocumentReads(Protocol):
    def get(self, document_id: str) -> Document | None:
        """The document, also when it is deleted."""
        ...

    def peek(self, document_id: str, chars_max: int) -> DocumentPart | None:
        """Like `get`, with only the first `chars_max` characters of the body.

        It reads no more than it gives: what it costs does not depend on how long the body is.
        """
        ...

    def heads(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> list[DocumentHead]:
        """Live documents with that prefix in byte order, from `after` (exclusive) or `offset`."""
        ...

    def listing(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> Listing:
        """The same as a page that knows whether there is more."""
        ...


class DocumentWrites(DocumentReads, Protocol):
    def insert(self, document: Document) -> Document:
        """Store a new id; the result carries its storage key."""
        ...

    def replace(self, before: Document, after: Document) -> Document:
        """Make `after` current and keep `before` as a revision."""
        ...

    def put_facets(self, document: Document, facets: Facets | None) -> None:
        """Make these what the document is filtered by; None: it cannot be found any more."""
        ...


class RevisionReads(Protocol):
    def page(self, document: Document, *, before: int | None, limit: int) -> list[Revision]:
        """Earlier revisions, newest first, without bodies."""
        ...

    def get(self, document: Document, revision: int) -> Revision | None: ...


class LexicalReads(Protocol):
    def search(
        self,
        query: Query,
        *,
        limit: int,
        offset: int = 0,
        wanted: Filter = NO_FILTER,
        enough: int | None = None,
    ) -> list[Scored]:
        """The best chunks of live documents that pass the filter, best first.

        A large index may be searched in steps, rarer words first; `enough` says at how many
        chunks no further step is worth its time, if that is before `limit`.
        """
        ...

    def matching(self, query: Query, chunk_keys: Iterable[int]) -> set[int]:
        """Those of these chunks that the query would find."""
        ...


class ChunkReads(Protocol):
    def views(self, chunk_keys: Iterable[int]) -> dict[int, ChunkView]:
        """What can be shown of these chunks; those that are gone are left out."""
        ...

    def views_at(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], ChunkView]:
        """The same by document id and number of the chunk in it."""
        ...

    def documents_of(self, chunk_keys: Iterable[int]) -> dict[int, str]:
        """The document of each of these chunks; those that are gone are left out."""
        ...

    def source_names(self, document_ids: Iterable[str]) -> dict[str, str]:
        """The name of the source of each of these documents."""
        ...


class ChunkWrites(ChunkReads, Protocol):
    def stored(self, document: Document) -> list[StoredChunk]:
        """What is stored of a document's chunks, in their order."""
        ...

    def apply(self, document: Document, changes: ChunkChanges) -> None:
        """Store what `text.chunk_changes` found out, set-wise.

        A removed chunk takes its terms and its vectors along. The key of an added one was never
        used before, so that a vector that comes late cannot land on another chunk.
        """
        ...


class SourceReads(Protocol):
    def counts(self) -> list[SourceCounts]:
        """The sources that the caller can see, with what they hold for it, by id."""
        ...


class SourceWrites(SourceReads, SourceDefinitions, Protocol):
    """What a writer reads of sources; only background work changes them."""


@dataclass(frozen=True, slots=True)
class VectorCoverage:
    pending: int
    """Documents of the caller that still wait for vectors, or could not be embedded."""
    has_model: bool
    """Is there any vector of the model?"""


class VectorReads(Protocol):
    def search(
        self, identity: str, vector: Vectors, k: int, wanted: Filter = NO_FILTER
    ) -> list[Scored]:
        """The chunks nearest to a vector, by cosine, among those that pass the filter."""
        ...

    def scores(self, identity: str, vector: Vectors, chunk_keys: Iterable[int]) -> dict[int, float]:
        """The cosine of each of these chunks that has a vector of the model."""
        ...

    def coverage(self, identity: str) -> VectorCoverage:
        """How far the caller's documents have vectors of the model."""
        ...


class OutboxWrites(Protocol):
    def add(self, document: Document, kind: Literal["index", "remove"]) -> None:
        """Tell the index pipeline, in the same transaction, that the document changed."""
        ...


class JobReads(Protocol):
    """A tenant sees the jobs of its namespace. One that is limited to a folder sees the jobs about
    documents in it, and those that were added by callers limited to it, or to a part of it."""

    def get(self, job_id: str) -> Job | None: ...

    def page(
        self,
        *,
        kind: str | None = None,
        state: JobState | None = None,
        limit: int,
        after: str | None = None,
    ) -> list[Job]:
        """Newest first, from the id `after` (exclusive), which need not exist any more."""
        ...


class QueueWrites(Protocol):
    def add(self, jobs: Iterable[NewJob]) -> list[str]:
        """Queue jobs in this transaction; their ids.

        Where a queued or running job of the kind has the same unique key, nothing is added and the
        id is that job's.
        """
        ...

    def cancel(self, job_id: str, now_us: int) -> Job | None:
        """Cancel a job that is queued or parked; request it of one that runs; others stay.

        Returns the job as it is then. None: there is no such job.
        """
        ...

    def retry(self, job_id: str) -> Job | None:
        """Queue a parked, cancelled or waiting job anew, due at once and with nothing counted.

        Returns the job as it is then: not queued, if it runs or is done, or if another job has its
        unique key by now. None: there is no such job.
        """
        ...


class AuditReads(Protocol):
    def page(self, document_id: str | None, *, limit: int) -> list[AuditEntry]: ...


class AuditWrites(AuditReads, Protocol):
    def add(self, entry: AuditEntry) -> None: ...


class ApiKeyReads(Protocol):
    def all(self) -> list[ApiKey]:
        """Every key, ended ones too. Keys are the operator's: no tenant applies."""
        ...


class ApiKeyWrites(ApiKeyReads, Protocol):
    def add(self, key: ApiKey) -> None: ...

    def revoke(self, key_id: str, at_us: int) -> bool:
        """False: there is no such key, or it has ended already."""
        ...


class Reader(Protocol):
    @property
    def documents(self) -> DocumentReads: ...
    @property
    def revisions(self) -> RevisionReads: ...
    @property
    def chunks(self) -> ChunkReads: ...
    @property
    def lexical(self) -> LexicalReads: ...
    @property
    def vectors(self) -> VectorReads: ...
    @property
    def jobs(self) -> JobReads: ...
    @property
    def sources(self) -> SourceReads: ...
    @property
    def audit(self) -> AuditReads: ...
    @property
    def api_keys(self) -> ApiKeyReads: ...


class Writer(Protocol):
    @property
    def documents(self) -> DocumentWrites: ...
    @property
    def revisions(self) -> RevisionReads: ...
    @property
    def chunks(self) -> ChunkWrites: ...
    @property
    def lexical(self) -> LexicalReads: ...
    @property
    def sources(self) -> SourceWrites: ...
    @property
    def outbox(self) -> OutboxWrites: ...
    @property
    def jobs(self) -> JobReads: ...
    @property
    def queue(self) -> QueueWrites: ...
    @property
    def audit(self) -> AuditWrites: ...
    @property
    def api_keys(self) -> ApiKeyWrites: ...


class Store(Protocol):
    @property
    def description(self) -> str:
        """Names the store in a sentence: "the SQLite file /data/zibaldone.db". No passwords."""
        ...

    async def read(
        self,
        tenant: Tenant,
        work: Callable[[Reader], T],
        *,
        seconds_max: float | None = None,
        is_small: bool = False,
    ) -> T:
        """Run on one snapshot, off the event loop, interrupted at its deadline.

        `is_small` says that the work reads a bounded number of small rows (one id, one page): an
        engine may then run it inline, without handing it to a thread.
        """
        ...

    def read_now(self, tenant: Tenant, work: Callable[[Reader], T]) -> T:
        """For reads of a known small cost (one id, one page): no hand-over where none is needed."""
        ...

    async def write(self, tenant: Tenant, work: Callable[[Writer], T]) -> T:
        """Run atomically; returns once the commit is durable.

        `work` may run more than once: an engine repeats it after a serialization failure or a
        deadlock, and a commit may fail after `work` returned. So it has no side effects; it returns
        outcomes, and the caller logs, counts and notifies after the await. What a writer reads by
        id stays locked until it commits: nobody else changes it in between.
        """
        ...

    async def upkeep(self, work: Callable[[Upkeep], T], *, write: bool = True) -> T:
        """Background work across namespaces, atomic like `write` and under the same rules.

        `write=False` only looks, on a snapshot.
        """
        ...

    async def prepare_model(self, identity: str) -> None:
        """Get ready to search a model's vectors. Searches work without it, maybe slower."""
        ...

    async def check(self, *, thorough: bool = False) -> StoreCheck: ...

    def close(self) -> None: ...
