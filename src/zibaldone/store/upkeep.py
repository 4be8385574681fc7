"""What background work asks of a storage engine, by subject: outbox, models, vectors, consistency,
sources, chunks.

It goes by storage key and across namespaces, so no tool is given any of it. It runs as
`await store.upkeep(work)`, in one transaction. Calls are set-wise: the number of statements of a
batch does not grow with the documents in it. All of them accept an empty set and then do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zibaldone.model.chunk import ChunkChanges, StoredChunk
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import VectorStatus

if TYPE_CHECKING:  # numpy is loaded by the first search, not by the first import
    from zibaldone.model.vector import Vectors


class SourceDefinitions(Protocol):
    def chunking(self, source_id: int) -> Chunking:
        """How the source's documents are cut. StorageCorrupt if its definition is unusable.

        A writer that asks keeps the source locked until it commits: nobody changes its chunking
        before the document that was cut by it is stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A source as the operator sees it, with what it holds in all namespaces."""

    source_id: int
    namespace: str
    """`*`: every namespace has it."""
    name: str
    kind: str
    enabled: bool
    documents: int
    chunks: int
    chunking: Chunking | None
    """None where the definition cannot be used; `problem` says why."""
    problem: str
    is_cut: bool
    """False while documents are left that an earlier chunking cut."""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What chunks are made of."""

    document_key: int
    title: str
    mime: str
    body: str


class SourceUpkeep(SourceDefinitions, Protocol):
    """The sources and the texts of their documents, across namespaces."""

    def all(self) -> list[Source]: ...

    def set_chunking(self, source_id: int, chunking: Chunking) -> int:
        """Cut so from the next write on; the version of the source's chunking, a new one.

        Each document has the version by which it was cut: `DocumentWrites` stores that of the
        source in the transaction of the write. All documents that are there now become stale.
        Because a writer holds the source locked, no document that was cut by an earlier version is
        committed after this: those that are stale become only fewer.
        """
        ...

    def chunking_version(self, source_id: int) -> int: ...

    def stale(self, source_id: int, *, after: int, limit: int) -> list[tuple[int, int]]:
        """Its live documents that an earlier version cut, by key, with their number of characters.

        The order is only for paging: a document with a lower key may be committed later.
        """
        ...

    def set_cut(self, source_id: int, document_keys: Iterable[int]) -> None:
        """These documents are cut by the version of now."""
        ...

    def texts(self, source_id: int, document_keys: Iterable[int]) -> list[DocumentText]:
        """Those of these documents that are live and of this source."""
        ...


class ChunkUpkeep(Protocol):
    """The chunks of any document, by its storage key. Like `ChunkWrites` otherwise."""

    def stored(self, document_key: int) -> list[StoredChunk]: ...
    def apply(self, document_key: int, changes: ChunkChanges) -> None: ...


@dataclass(frozen=True, slots=True)
class LeasedChange:
    """A document to index; it stands for all changes of the document up to this one."""

    outbox_key: int
    document_key: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A leased change that could not be dealt with now."""

    change: LeasedChange
    error: str
    not_before_us: int = 0


class OutboxUpkeep(Protocol):
    """The changes that wait for vectors."""

    def lease(self, *, limit: int, now_us: int, leased_until_us: int) -> list[LeasedChange]:
        """Take the oldest due documents that no other worker has."""
        ...

    def has_due(self, now_us: int) -> bool: ...

    def renew(self, changes: Iterable[LeasedChange], leased_until_us: int) -> None: ...

    def release(self, changes: Iterable[LeasedChange]) -> None:
        """Give changes back at once, with all their attempts."""
        ...

    def finish(self, changes: Iterable[LeasedChange]) -> None: ...

    def retry(self, failures: Iterable[Failure]) -> None:
        """Try again, not before the time given."""
        ...

    def wait(self, failures: Iterable[Failure]) -> None:
        """Like `retry`, without counting the attempt: the model was unavailable."""
        ...

    def park(self, failures: Iterable[Failure]) -> None:
        """Set aside for good; another change of the document, or an operator, revives it."""
        ...

    def enqueue(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        """Queue those of these documents that need it and are not queued; how many these were."""
        ...

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        """Queue documents with new chunks; not those that are kept out of vectors."""
        ...

    def pending(self, created_through_us: int) -> int:
        """How many changes made up to a time are still to be dealt with."""
        ...


@dataclass(frozen=True, slots=True)
class ModelVectors:
    model_id: int
    identity: str
    dimensions: int
    vectors: int


@dataclass(frozen=True, slots=True)
class ModelInUse:
    model_id: int
    identity: str


@dataclass(frozen=True, slots=True)
class Claim:
    rival: str | None
    """The model that live workers use, where it is another one; None: the claim is granted."""
    is_new: bool
    """The worker was not registered, or its registration had expired."""


class ModelUpkeep(Protocol):
    """The models that made vectors here, and the one that live workers use."""

    def id(self, identity: str, dimensions: int, now_us: int) -> int:
        """The number of a model; a model that is new here gets one."""
        ...

    def all(self) -> list[ModelVectors]:
        """Newest first."""
        ...

    def in_use(self, now_us: int) -> ModelInUse | None:
        """The model of the workers that are alive; None if there are none."""
        ...

    def claim(self, worker_key: int, model_id: int, now_us: int) -> Claim:
        """Register a live worker; refused while other live workers use another model."""
        ...

    def resign(self, worker_key: int) -> None: ...


@dataclass(frozen=True, slots=True)
class DocumentState:
    document_key: int
    document_id: str
    title: str
    revision: int
    vector_status: VectorStatus
    is_live: bool


@dataclass(frozen=True, slots=True)
class ChunkText:
    chunk_key: int
    heading: str
    body: str


class VectorUpkeep(Protocol):
    """The vectors of documents, and what documents say of them."""

    def states(self, document_keys: Iterable[int]) -> dict[int, DocumentState]:
        """By document key; documents that do not exist are left out."""
        ...

    def chunks_without_vector(
        self, document_keys: Iterable[int], model_id: int, limit: int
    ) -> Mapping[int, Sequence[ChunkText]]:
        """Up to `limit` chunks of these documents that lack a vector of the model, by document.

        The limit is shared fairly: a document gets another chunk only when all have had as many.
        """
        ...

    def lacking(self, document_keys: Iterable[int], model_id: int) -> set[int]:
        """Those of these documents that have a chunk without a vector of the model."""
        ...

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        """Documents that should have vectors, by key, and whether they lack one of the model."""
        ...

    def put(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None:
        """Store vectors; those of chunks that are gone are left out."""
        ...

    def delete(self, vectors: Iterable[tuple[int, int]]) -> None:
        """Remove vectors by model and chunk."""
        ...

    def drop(self, model_id: int, limit: int) -> int:
        """Remove some of a model's vectors; how many these were."""
        ...

    def set_ready(self, revisions: Iterable[tuple[int, int]]) -> None:
        """These documents (key, revision) have all their vectors; not if they changed since."""
        ...

    def set_error(self, errors: Iterable[tuple[int, int, str]]) -> None:
        """These documents (key, revision) cannot be embedded, and why; not if they changed."""
        ...


@dataclass(frozen=True, slots=True)
class IndexCounts:
    documents: int
    ready: int
    pending: int
    skipped: int
    failed: int
    chunks: int
    vectors: int
    """Of the model that was asked for, like the next."""
    missing: int
    """Chunks that should have a vector and have none."""
    queued: int
    parked: int


@dataclass(frozen=True, slots=True)
class PendingLag:
    pending: int
    failed: int
    oldest_us: int | None
    youngest_us: int | None


class ConsistencyUpkeep(Protocol):
    """Documents, queue and vectors compared."""

    def counts(self, model_id: int) -> IndexCounts: ...

    def lag(self) -> PendingLag:
        """How many documents wait or failed, and since when the oldest and the youngest wait."""
        ...

    def failed_documents(self, limit: int) -> list[tuple[str, str]]:
        """Ids of documents that could not be embedded, and why."""
        ...

    def unqueued_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        """Documents that nothing is queued for, by key, and whether something should be."""
        ...

    def orphan_vectors(self, limit: int) -> list[tuple[int, int]]:
        """Model and chunk of vectors whose chunk is gone."""
        ...

    def ghost_documents(self, model_id: int, limit: int) -> list[tuple[str, str]]:
        """Namespace and id of documents that are said to be ready and lack a vector."""
        ...


class Upkeep(Protocol):
    @property
    def outbox(self) -> OutboxUpkeep: ...
    @property
    def models(self) -> ModelUpkeep: ...
    @property
    def vectors(self) -> VectorUpkeep: ...
    @property
    def consistency(self) -> ConsistencyUpkeep: ...
    @property
    def sources(self) -> SourceUpkeep: ...
    @property
    def chunks(self) -> ChunkUpkeep: ...
