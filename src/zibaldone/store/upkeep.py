"""What work in the background asks of a storage engine: the queue, the models, the sources.

By storage key and across namespaces, so no tool is given any of it. It runs as
`await store.maintain(work)`, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zibaldone.model.chunk import ChunkChanges, StoredChunk
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import VectorStatus

if TYPE_CHECKING:  # numpy is loaded by the first search, not by the first import
    from zibaldone.model.vector import Vectors


class SourceDefinitions(Protocol):
    def chunking(self, source_id: int) -> Chunking:
        """How the source's documents are cut. StorageCorrupt where its definition is unusable."""
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
    """False while documents from before the last change of its chunking may be cut otherwise."""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What passages are made of."""

    document_key: int
    title: str
    mime: str
    body: str


class SourceUpkeep(SourceDefinitions, Protocol):
    """The sources and the texts of their documents, across namespaces."""

    def all(self) -> list[Source]: ...

    def set_chunking(self, source_id: int, chunking: Chunking) -> None:
        """For all that is written from now on; what is there already is `is_cut` no longer."""
        ...

    def set_cut(self, source_id: int) -> None:
        """All of its documents are cut as the definition says."""
        ...

    def last_document(self) -> int:
        """The newest document key of all."""
        ...

    def documents(
        self, source_id: int, *, after: int, through: int, limit: int
    ) -> list[tuple[int, int]]:
        """Its live documents in key order: key and length in characters."""
        ...

    def text(self, source_id: int, document_key: int) -> DocumentText | None:
        """None: it is deleted, or of another source by now."""
        ...


class ChunkUpkeep(Protocol):
    """The chunks of any document, by its storage key. Like `ChunkWrites` otherwise."""

    def stored(self, document_key: int) -> list[StoredChunk]: ...
    def apply(self, document_key: int, changes: ChunkChanges) -> None: ...


@dataclass(frozen=True, slots=True)
class LeasedChange:
    outbox_key: int
    document_key: int
    attempts: int


@dataclass(frozen=True, slots=True)
class DocumentState:
    document_key: int
    document_id: str
    title: str
    revision: int
    vector_status: VectorStatus
    is_live: bool


@dataclass(frozen=True, slots=True)
class Passage:
    chunk_key: int
    heading: str
    body: str


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
    """The model of other workers that live; None: the queue is the claimant's."""
    is_new: bool
    """It was not all the time since the claimant's last claim, or there was none."""


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
    """Passages that should have a vector and have none."""
    queued: int
    parked: int


@dataclass(frozen=True, slots=True)
class PendingLag:
    pending: int
    failed: int
    oldest_us: int | None
    youngest_us: int | None


class Maintenance(Protocol):
    """The index pipeline's view: by storage key, across namespaces; no tool is given it."""

    @property
    def sources(self) -> SourceUpkeep: ...
    @property
    def chunks(self) -> ChunkUpkeep: ...

    def claim(self, worker_key: int, model_id: int, now_us: int) -> Claim:
        """The worker lives and wants to work on the queue; only one model's may at a time."""
        ...

    def resign(self, worker_key: int) -> None: ...

    def model_in_use(self, now_us: int) -> ModelInUse | None:
        """That of the workers that live; None where there are none."""
        ...

    def lease(self, *, limit: int, now_us: int, leased_until_us: int) -> list[LeasedChange]:
        """Take the oldest due documents that no other worker has."""
        ...

    def has_due(self, now_us: int) -> bool: ...
    def renew(self, change: LeasedChange, leased_until_us: int) -> None: ...
    def release(self, change: LeasedChange) -> None: ...
    def finish(self, change: LeasedChange) -> None: ...
    def retry(self, change: LeasedChange, *, not_before_us: int, error: str) -> None: ...

    def wait(self, change: LeasedChange, *, not_before_us: int, error: str) -> None:
        """Like `retry`, but it was no attempt at the document: the model could not be had."""
        ...

    def park(self, change: LeasedChange, error: str) -> None: ...
    def enqueue(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int: ...

    def enqueue_cut(self, document_key: int, at_us: int) -> None:
        """The document has new passages without being edited; not if it is kept out of vectors."""
        ...

    def last_change(self) -> int:
        """The newest outbox key; `queued` says how many up to one are still to be dealt with."""
        ...

    def queued(self, through: int) -> int: ...
    def document_state(self, document_key: int) -> DocumentState | None: ...
    def chunks_without_vector(
        self, document_key: int, model_id: int, limit: int
    ) -> list[Passage]: ...
    def lacks_vectors(self, document_key: int, model_id: int) -> bool: ...
    def put_vectors(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None: ...
    def set_ready(self, document_key: int, revision: int) -> None: ...
    def set_error(self, document_key: int, revision: int, error: str) -> None: ...
    def trim_changes(self, kept: int) -> None: ...
    def model_id(self, identity: str, dimensions: int, now_us: int) -> int: ...
    def models(self) -> list[ModelVectors]: ...
    def drop_vectors(self, model_id: int, limit: int) -> int: ...

    def unqueued_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        """Documents that nothing is queued for, and whether something should be."""
        ...

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        """Documents that should have vectors, and whether they lack one of the model."""
        ...

    def orphan_vectors(self, limit: int) -> list[tuple[int, int]]: ...
    def delete_vectors(self, vectors: Iterable[tuple[int, int]]) -> None: ...
    def ghost_documents(self, model_id: int, limit: int) -> list[tuple[str, str]]: ...
    def failed_documents(self, limit: int) -> list[tuple[str, str]]: ...
    def counts(self, model_id: int) -> IndexCounts: ...
    def pending_lag(self) -> PendingLag: ...
