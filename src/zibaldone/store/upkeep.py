"""What background work asks of a storage engine, by subject: queue, models, vectors, consistency,
sources, chunks.

It goes by storage key and across namespaces, so no tool is given any of it. It runs as
`await store.upkeep(work)`, in one transaction. Calls are set-wise: the number of statements of a
batch does not grow with the documents in it. All of them accept an empty set and then do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from zibaldone.model.chunk import ChunkChanges, StoredChunk
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import VectorStatus
from zibaldone.model.job import JobState, LeasedJob, NewJob, Progress, Schedule, Setback

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

    def enqueue_missing(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        """Queue those of these documents that need vectors and are not queued; how many.

        Also those that failed: they are pending again, and their parked jobs go.
        """
        ...

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        """Queue documents with new chunks; not those that are kept out of vectors."""
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


class QueueUpkeep(Protocol):
    """The workers' side of the queue.

    A job is leased under a token, `owner`, that is new for each call of `lease`. Every later call
    names the lease, and has no effect where the job is no longer held under that token: a worker
    that slept past its lease cannot touch what another took over. Those calls return the keys of
    the jobs that were still held, so that a caller can tell.
    """

    def add(self, namespace: str, jobs: Iterable[NewJob]) -> list[str]:
        """Like `QueueWrites.add`, for a namespace."""
        ...

    def lease(
        self,
        kind: str,
        *,
        limit: int,
        now_us: int,
        until_us: int,
        owner: str,
        by_subject: bool = False,
        running_max: int | None = None,
    ) -> list[LeasedJob]:
        """Take the oldest due jobs of a kind, at most `limit`, until `until_us`.

        Due is a queued job whose time has come, and a running one whose lease ran out. A lease that
        ends later than one given now for twice as long counts as run out (the clock was ahead when
        it was given); so does a back-off that ends after JOB_BACKOFF_SECONDS_MAX.

        A job whose lease ran out comes alone, with one more in `crashes`: if it is what ended its
        worker, no other job shares the blame. If its cancellation was requested it is cancelled
        instead.

        `by_subject`: a subject is leased with all of its queued jobs, and to one worker at a time.
        The newest job is returned and stands for the others; a job that is added meanwhile is not
        among them. `running_max`: in all processes no more jobs of the kind are leased than this.
        """
        ...

    def has_due(self, kind: str, *, now_us: int, until_us: int) -> bool:
        """Whether there is something to lease, asked without the lock that leasing needs."""
        ...

    def renew(self, leases: Iterable[LeasedJob], until_us: int) -> dict[int, bool]:
        """Hold longer. For the keys still held: whether cancellation is requested."""
        ...

    def held(self, leases: Iterable[LeasedJob]) -> dict[int, bool]:
        """The same without renewing, for a look."""
        ...

    def progress(self, lease: LeasedJob, progress: Progress) -> bool | None:
        """Whether cancellation is requested; None if the job is no longer held."""
        ...

    def release(
        self, leases: Iterable[LeasedJob], *, now_us: int, has_progressed: bool = False
    ) -> set[int]:
        """Queue again at once: the worker stops, or did a part (then no failure counts any more).

        Jobs to be cancelled are cancelled instead, here and in `retry` and `wait`.
        """
        ...

    def finish(
        self,
        leases: Iterable[LeasedJob],
        *,
        now_us: int,
        result: Any = None,
        is_kept: bool = True,
    ) -> set[int]:
        """Done. `is_kept=False` removes the jobs, with no state `done` and no result to look at."""
        ...

    def cancel(self, leases: Iterable[LeasedJob], *, now_us: int) -> set[int]:
        """The worker stopped because cancellation was requested."""
        ...

    def retry(self, setbacks: Iterable[Setback], *, now_us: int) -> set[int]:
        """Queue again for later and count a failed attempt."""
        ...

    def wait(self, setbacks: Iterable[Setback], *, now_us: int) -> set[int]:
        """Queue again for later; it was no attempt, as something else was unavailable."""
        ...

    def park(
        self, setbacks: Iterable[Setback], *, now_us: int, is_attempt: bool = True
    ) -> set[int]:
        """Set aside with the error, until somebody retries or cancels the job."""
        ...

    def forget_ended(self, kind: str, subjects: Iterable[str]) -> None:
        """Remove parked and cancelled jobs of these subjects: what they were about is done."""
        ...

    def pending(self, kind: str, created_through_us: int) -> int:
        """Queued and running jobs that were created up to a time."""
        ...

    def purge(self, kind: str, state: JobState, *, before_us: int, limit: int) -> int:
        """Remove jobs that ended (done, parked or cancelled) before a time; how many."""
        ...


class ScheduleUpkeep(Protocol):
    def all(self) -> list[Schedule]: ...

    def put(self, schedule: Schedule) -> None:
        """Add or change. A schedule whose cron expression stays keeps its next run."""
        ...

    def remove(self, name: str) -> bool: ...

    def advance(
        self, name: str, *, expected_us: int, next_run_at_us: int, ran_at_us: int | None = None
    ) -> bool:
        """Set the next run. False: the next run is not `expected_us`, another process was first."""
        ...


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
    def queue(self) -> QueueUpkeep: ...
    @property
    def schedules(self) -> ScheduleUpkeep: ...
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
