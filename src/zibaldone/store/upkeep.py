"""What work in the background asks of a storage engine: the queue, the models, the sources.

By storage key and across namespaces, so no tool is given any of it. It runs as
`await store.maintain(work)`, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class Maintenance(Protocol):
    """The index pipeline's view: by storage key, across namespaces; no tool is given it."""

    @property
    def sources(self) -> SourceUpkeep: ...
    @property
    def queue(self) -> QueueUpkeep: ...
    @property
    def schedules(self) -> ScheduleUpkeep: ...
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
