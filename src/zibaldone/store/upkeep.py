"""What background work asks of a storage engine, by subject: queue, schedules, models, vectors,
consistency, sources, chunks. It is the other half of `store/port.py`, whose rules hold here too.

It goes by storage key and across namespaces, so no tool is given any of it. It runs as
`await store.upkeep(work)`, in one transaction. Calls are set-wise: the number of statements of a
batch does not grow with the documents in it. All of them accept an empty set and then do nothing.

Pages (`stale`, `lacking_page`, `unqueued_page`) go by storage key: those above `after`, in order,
at most `limit`; an empty page is the end. A document with a lower key may be committed after its
page was read; callers allow for that.

A document *should have vectors* if it is live and its vector status is not `skipped`. It *lacks*
one if one of its chunks has no vector of the model.

Times are given by the callers (`now_us`, `at_us`), whose clocks may be wrong. So a lease, a
back-off or a worker's registration that ends impossibly late counts as over; each says when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from zibaldone.model.chunk import ChunkChanges, ChunkTerms, StoredChunk
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import VectorStatus
from zibaldone.model.job import JobState, LeasedJob, NewJob, Progress, Schedule, Setback
from zibaldone.model.usage import NamespaceUsage
from zibaldone.store.tables import Key, Row, Table

if TYPE_CHECKING:  # numpy is loaded by the first search, not by the first import
    from zibaldone.model.vector import Vectors


class SourceDefinitions(Protocol):
    def chunking(self, source_id: int) -> Chunking:
        """How the source's documents are cut. StorageCorrupt if its definition is unusable.

        A writer that asks keeps the source locked until it commits: nobody changes its chunking
        before the document that was cut by it is stored. Many writers may hold this lock at a time;
        only `set_chunking` has to wait for them.
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
    definition: Mapping[str, Any] = field(default_factory=dict)
    """As `SourceUpkeep.add` was given it; `SourceDefinition.from_stored` reads it."""
    last_sync_at_us: int | None = None


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source as a caller of its namespace may use it."""

    source_id: int
    namespace: str
    name: str
    kind: str
    enabled: bool
    definition: Mapping[str, Any]
    """As `SourceUpkeep.add` was given it. It holds no passwords."""
    last_sync_at_us: int | None


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What chunks are made of."""

    document_key: int
    title: str
    mime: str
    body: str


class SourceUpkeep(SourceDefinitions, Protocol):
    """The sources and the texts of their documents, across namespaces."""

    def all(self) -> list[Source]:
        """Every source of every namespace, by id."""
        ...

    def records(self) -> list[SourceRecord]:
        """The same without counting what they hold: cheap enough to ask every few seconds."""
        ...

    def add(
        self,
        namespace: str,
        name: str,
        kind: str,
        definition: Mapping[str, Any],
        *,
        at_us: int,
        enabled: bool = True,
    ) -> int:
        """Add a source; its id. Conflict: the namespace, or every namespace (`*`), has that name.

        `definition` is a JSON object; its `chunking` says how documents are cut.
        """
        ...

    def redefine(self, source_id: int, definition: Mapping[str, Any]) -> bool:
        """Give a source another definition. Whether its chunking differs from the one before: then
        it is a new version, as with `set_chunking`.

        NotFound: there is no such source; so in the next three. Forbidden, as in the next two: it
        is the built-in one.
        """
        ...

    def enable(self, source_id: int, enabled: bool) -> None:
        """Show the source's documents in searches, or leave them out."""
        ...

    def release(self, source_id: int, limit: int) -> int:
        """Hand up to `limit` of its deleted documents over to the built-in source; how many.

        So they can still be restored when the source is gone. 0: there are none left.
        """
        ...

    def remove(self, source_id: int) -> None:
        """Remove a source and what was remembered of its rows; its name is free again.

        Conflict: documents of it are left. Delete them, then `release` them.
        """
        ...

    def set_synced(self, source_id: int, at_us: int) -> None:
        """A sync that began at this time has ended well."""
        ...

    def set_chunking(self, source_id: int, chunking: Chunking) -> int:
        """Cut documents so from the next write on; returns the new version of the chunking.

        Every call makes a new version, also with the same chunking. Each document carries the
        version by which it was cut: `insert` and `replace` store that of the source. So all
        documents of the source become stale. Because writers hold the source locked, no document
        that was cut by an earlier version is committed after this: there will only be fewer.
        """
        ...

    def chunking_version(self, source_id: int) -> int:
        """The version of the last `set_chunking`; 0 before the first."""
        ...

    def stale(self, source_id: int, *, after: int, limit: int) -> list[tuple[int, int]]:
        """A page of its live documents that an earlier version cut: key, characters of the body."""
        ...

    def set_cut(self, source_id: int, document_keys: Iterable[int]) -> None:
        """Those of these documents that belong to the source are cut by its current version."""
        ...

    def texts(self, source_id: int, document_keys: Iterable[int]) -> list[DocumentText]:
        """Those of these documents that are live and of this source."""
        ...


class ChunkUpkeep(Protocol):
    """The chunks of any document, by its storage key. Like `ChunkWrites` otherwise.

    The document's revision and times stay as they are; nothing is queued.
    """

    def stored(self, document_key: int) -> list[StoredChunk]: ...
    def apply(self, document_key: int, changes: ChunkChanges) -> None: ...


@dataclass(frozen=True, slots=True)
class TermProgress:
    """By which scheme the terms of chunks are made."""

    version: int
    through: int | None
    """Chunks up to this key have them; None: all of them."""
    last: int
    """The last chunk that was there when it began. Later ones had them from the start."""


@dataclass(frozen=True, slots=True)
class TermSource:
    """What the terms of a chunk are made of."""

    chunk_key: int
    title: str
    heading: str
    text: str


class TermUpkeep(Protocol):
    """Making the terms of chunks anew, while the index is in use."""

    def progress(self) -> TermProgress: ...

    def begin(self, version: int) -> None:
        """All chunks that are there are to have the terms of this version, unless it is older."""
        ...

    def page(self, after: int, last: int, limit: int) -> list[TermSource]:
        """Chunks by their keys, in order."""
        ...

    def put(
        self,
        terms: Mapping[int, ChunkTerms],
        *,
        version: int,
        before: int,
        through: int | None,
    ) -> bool:
        """These chunks get other terms, those of them that are still there; an engine may let them
        take their place later. `through` takes the place of `before`.

        False: another process was faster, and nothing happened.
        """
        ...

    def last_unsettled(self) -> int | None:
        """The highest key of the chunks whose terms a long change left for later. None: of none.

        An engine that stores terms with their chunks leaves none.
        """
        ...

    def unsettled(self, last: int, limit: int) -> list[tuple[int, TermSource | None]]:
        """Those of these chunks whose keys go up to `last`, by key in order. None: the chunk is
        gone, but not its terms."""
        ...

    def settle(self, terms: Mapping[int, ChunkTerms | None]) -> None:
        """Store the terms of such chunks, and remove those of chunks that are gone. Chunks that
        somebody else has settled are passed over."""
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
    """Identity of the model that live workers use, where it is another; None: it is granted."""
    is_new: bool
    """The worker was not registered, or its registration had expired. If refused: True."""


class ModelUpkeep(Protocol):
    """The models that made vectors here, and the one that live workers use.

    A worker is alive until INDEX_WORKER_ALIVE_SECONDS after its last claim. A registration that
    ends later than twice that time from now counts as expired. All live workers use one model.
    """

    def id(self, identity: str, dimensions: int, now_us: int) -> int:
        """The positive number of a model; a model that is new here is added."""
        ...

    def all(self) -> list[ModelVectors]:
        """Every model that was added, the newest first, with how many vectors it has."""
        ...

    def in_use(self, now_us: int) -> ModelInUse | None:
        """The model of the workers that are alive; None if there are none."""
        ...

    def claim(self, worker_key: int, model_id: int, now_us: int) -> Claim:
        """Register a live worker, or keep it registered for longer.

        Refused while live workers use another model. Claims are decided one after the other, in all
        processes: of two with different models, one is refused.
        """
        ...

    def resign(self, worker_key: int) -> None:
        """Remove a worker's registration, if there is one."""
        ...


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
        """Up to `limit` chunks without a vector of the model, by document and in reading order.

        The limit is shared fairly: the first such chunk of every document comes before the second
        of any. Documents that lack none, or got no share, are left out.
        """
        ...

    def hold(self, document_keys: Iterable[int]) -> set[int]:
        """Those of these documents that nobody else is writing, or all; nobody does so until the
        transaction ends. It does not wait: else one writer could hold up everybody's vectors, and
        a writer that needs what this transaction has stored would wait in a circle with it.
        """
        ...

    def lacking(self, document_keys: Iterable[int], model_id: int) -> set[int]:
        """Those of these documents that have a chunk without a vector of the model."""
        ...

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        """A page of the documents that should have vectors, and whether each lacks one."""
        ...

    def put(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None:
        """Store a vector for each of these chunks that still exists, in place of an earlier one.

        The vectors are rows of unit length with the model's number of dimensions.
        """
        ...

    def delete(self, vectors: Iterable[tuple[int, int]]) -> None:
        """Remove vectors by model and chunk; those that do not exist are no error."""
        ...

    def drop(self, model_id: int, limit: int) -> int:
        """Remove up to `limit` vectors of a model; how many. 0: it has none left."""
        ...

    def enqueue_missing(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        """Queue those of these documents that need it and have no queued or running job; how many.

        A document needs it if it should have vectors, and its status is `pending` or `error` or it
        lacks one. It gets a job of the kind VECTORS, as a write of it would add (`keep/commit.py`:
        subject, payload with the revision), in its namespace and with no prefix. Its status becomes
        `pending`, its error is cleared, and its parked and cancelled jobs are removed.
        """
        ...

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        """The same for documents with new chunks, whatever they have queued or lack."""
        ...

    def set_ready(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Make documents (key, revision) `ready`, and clear their error.

        Only where the document is live, at that revision, and `pending` or `error`. It is no
        change of the document: revision, times and history stay.
        """
        ...

    def set_error(self, errors: Iterable[tuple[int, int, str]]) -> None:
        """Make documents (key, revision, reason) `error`.

        Only where the document is at that revision and `pending`.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """Live documents and their chunks, in all namespaces."""

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
    """Jobs of the kind VECTORS that are queued or running."""
    parked: int
    """Such jobs that are parked."""


@dataclass(frozen=True, slots=True)
class PendingLag:
    pending: int
    """Live documents with that vector status, like the next."""
    failed: int
    oldest_us: int | None
    """When the oldest job of the kind VECTORS that is queued or running was added. If there is no
    such job: the last change of the pending document that changed first. None: neither exists."""
    youngest_us: int | None
    """The same for the youngest."""


class QueueUpkeep(Protocol):
    """The workers' side of the queue.

    A job is leased under a token, `owner`, that is new for each call of `lease`. Every later call
    names the lease, and has no effect where the job is no longer held under that token: a worker
    that slept past its lease cannot touch what another took over. A lease that ran out is still
    held until somebody takes the job. Those calls apply to all `LeasedJob.keys` of a lease and
    return the keys of the jobs that were still held, so that a caller can tell.

    | state     | means                               | next state, and by what               |
    |-----------|-------------------------------------|---------------------------------------|
    | queued    | waits for its time and a worker     | running: lease                        |
    | running   | leased                              | done: finish; parked: park;           |
    |           |                                     | queued: release, retry, wait;         |
    |           |                                     | cancelled: cancel                     |
    | parked    | failed for good; the error is kept  | queued: `QueueWrites.retry`           |
    | done      | ended; the result is kept           |                                       |
    | cancelled | somebody ended it                   | queued: `QueueWrites.retry`           |

    `QueueWrites.cancel` ends what is queued or parked. Ended jobs are kept until `purge`.
    A job that ends (done, parked, cancelled) gets `finished_at_us`; one that leaves `running` loses
    its token and its lease.
    """

    def add(self, namespace: str, jobs: Iterable[NewJob]) -> list[str]:
        """Like `QueueWrites.add`, for a namespace and with no prefix."""
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
        per_key: int | None = None,
    ) -> list[LeasedJob]:
        """Take due jobs of a kind, at most `limit`, until `until_us`; oldest first.

        Namespaces take turns, however much one of them has queued: the oldest job of each comes
        before the second of any. Oldest is what was added first. Two calls never take the same
        job, in whatever processes. A job that is taken is `running`, with `started_at_us = now_us`.

        Due is a queued job whose `not_before_us` has come, and a running one whose lease ran out. A
        lease that ends after `now_us + 2 * (until_us - now_us)` ran out, too: it was given by a
        clock that was ahead. For the same reason a job that was set back (it has an error) is due
        if its `not_before_us` is more than JOB_BACKOFF_SECONDS_MAX from now.

        A job whose lease ran out is taken before all others and alone, with one more in `crashes`:
        if it is what ended its worker, no other job shares the blame. If its cancellation was
        requested, it becomes `cancelled` and the next one is looked for.

        `by_subject`: a subject of a namespace is leased to one worker at a time, with all of its
        queued jobs, those that wait for a later time included. Equal subjects of two namespaces
        have nothing to do with each other. The newest job is returned and stands for the
        others (`keys` has them all); its attempts are what counts. A job that is added meanwhile is
        not among them, and waits until the lease is over. Jobs without a subject are taken one by
        one.

        `running_max`: with these, no more jobs of the kind are leased in all processes than this;
        those whose lease ran out do not count.

        `per_key`: with these, no more jobs of the kind and of one caller are leased in all
        processes; what the caller has queued beyond that stays there, and is not waited for.
        """
        ...

    def has_due(self, kind: str, *, now_us: int, until_us: int, per_key: int | None = None) -> bool:
        """Whether `lease` might find something; asked often, and without the lock that it needs.

        It may be wrong on the side of yes: the subject of what is due may be leased.
        """
        ...

    def renew(self, leases: Iterable[LeasedJob], until_us: int) -> dict[int, bool]:
        """Hold until `until_us`. For the keys still held: whether cancellation is requested."""
        ...

    def held(self, leases: Iterable[LeasedJob]) -> dict[int, bool]:
        """The same without renewing, for a look."""
        ...

    def progress(self, lease: LeasedJob, progress: Progress) -> bool | None:
        """Store how far a job is, on the job itself and not on those it stands for.

        Returns whether cancellation is requested; None if the job is no longer held.
        """
        ...

    def release(
        self, leases: Iterable[LeasedJob], *, now_us: int, has_progressed: bool = False
    ) -> set[int]:
        """Queue again, due as before: the worker stops.

        `has_progressed`: it did a part of the work, so attempts, crashes and error are cleared.
        Jobs whose cancellation is requested become `cancelled` instead, here and in `retry` and
        `wait`.
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
        """Make jobs `done` with a result (JSON or None), and clear their error.

        It wins over a request to cancel. `is_kept=False` removes the jobs instead.
        """
        ...

    def cancel(self, leases: Iterable[LeasedJob], *, now_us: int) -> set[int]:
        """Make jobs `cancelled`: the worker stopped because that was requested."""
        ...

    def retry(self, setbacks: Iterable[Setback], *, now_us: int) -> set[int]:
        """Queue again for the setback's `not_before_us`; keep its error and count an attempt.

        `crashes` starts at 0 again, here and in `wait`: the worker lives.
        """
        ...

    def wait(self, setbacks: Iterable[Setback], *, now_us: int) -> set[int]:
        """The same without counting an attempt: something else was unavailable."""
        ...

    def park(
        self, setbacks: Iterable[Setback], *, now_us: int, is_attempt: bool = True
    ) -> set[int]:
        """Set aside with the error, until somebody retries or cancels the job.

        `is_attempt`: count an attempt. A request to cancel makes no difference here.
        """
        ...

    def forget_ended(self, kind: str, subjects: Iterable[tuple[str, str]]) -> None:
        """Remove parked and cancelled jobs of subjects (namespace, subject) that are done."""
        ...

    def pending(self, kind: str, created_through_us: int, *, now_us: int) -> int:
        """How many jobs are queued or running that were created up to a time, inclusive.

        One from after `now_us` counts too: a clock that was ahead wrote it.
        """
        ...

    def purge(self, kind: str, state: JobState, *, before_us: int, limit: int) -> int:
        """Remove jobs of a state (done, parked or cancelled) that ended before a time; how many.

        At most `limit`, those that ended first.
        """
        ...


class ScheduleUpkeep(Protocol):
    """Schedules of all namespaces; a name is unique in the store."""

    def all(self) -> list[Schedule]:
        """By name."""
        ...

    def put(self, schedule: Schedule) -> None:
        """Add or change. It keeps its last run, and its next unless the cron expression differs."""
        ...

    def remove(self, name: str) -> bool:
        """Whether there was one. Jobs that it added stay."""
        ...

    def advance(
        self, name: str, *, expected_us: int, next_run_at_us: int, ran_at_us: int | None = None
    ) -> bool:
        """Set the next run, and the last one if `ran_at_us` is given.

        False: the next run is not `expected_us`, because another process was first, or the schedule
        is gone; nothing changed. A run is added in the same transaction.
        """
        ...


class ConsistencyUpkeep(Protocol):
    """Documents, queue and vectors compared. These may read everything there is."""

    def counts(self, model_id: int) -> IndexCounts:
        """`model_id` 0: no model, so nothing has a vector of it."""
        ...

    def lag(self) -> PendingLag:
        """How many documents wait or failed, and since when the oldest and the youngest wait."""
        ...

    def failed_documents(self, limit: int) -> list[tuple[str, str]]:
        """Ids of live documents whose vector status is `error`, and why; in any order."""
        ...

    def unqueued_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        """A page of documents that should have vectors and have no queued or running job.

        With each: whether it needs one, as in `VectorUpkeep.enqueue_missing`.
        """
        ...

    def orphan_vectors(self, limit: int) -> list[tuple[int, int]]:
        """Model and chunk of vectors whose chunk is gone."""
        ...

    def ghost_documents(self, model_id: int, limit: int) -> list[tuple[str, str]]:
        """Namespace and id of live documents that are `ready` and lack a vector."""
        ...


class UsageUpkeep(Protocol):
    def all(self) -> list[NamespaceUsage]:
        """What each namespace holds, by name; one that never held anything is not there."""
        ...


class TransferUpkeep(Protocol):
    """Whole tables, to move a store to another engine: `store/tables.py` says which.

    A store that is being filled has a table of notes. As long as it is there, the store can only be
    opened to go on with it (`store.open`, `for_transfer`).
    """

    def read(self, table: Table, after: Key | None, *, rows_max: int, bytes_max: int) -> list[Row]:
        """Rows in the order of the key, those above `after`; none: that was the last.

        At most `rows_max`; and no more than `bytes_max`, if that is at least one row. Vectors
        whose chunk is gone are left out.
        """
        ...

    def count(self, table: Table) -> int:
        """How many rows `read` gives."""
        ...

    def titles(self, document_keys: Iterable[int]) -> dict[int, str]:
        """The titles of these documents."""
        ...

    def sequences(self) -> dict[str, int]:
        """By table, the highest key that was ever handed out, or about that; 0: none."""
        ...

    def notes(self) -> dict[str, Any] | None:
        """What `note` stored; None: the store is not being filled. A writer locks them."""
        ...

    def begin(self) -> None:
        """Empty all tables and take notes from now on."""
        ...

    def note(self, name: str, value: Any) -> None:
        """Store a JSON value under a name, in the transaction of what it is about."""
        ...

    def write(
        self, table: Table, rows: Sequence[Row], terms: Mapping[int, ChunkTerms] | None = None
    ) -> None:
        """Add rows with the keys that they have.

        `terms`: for chunks, by chunk key; the engine makes its keyword index of them.
        """
        ...

    def settle(self) -> bool:
        """Do a part of what the engine puts off after writes. True: there is more to do."""
        ...

    def finish(self, sequences: Mapping[str, int]) -> None:
        """Hand out keys above these from now on, and drop the notes: the store is complete."""
        ...


@dataclass(frozen=True, slots=True)
class MirrorState:
    applied_seq: int
    """The highest number of a change that was taken over."""
    pending: int
    """Documents whose last change was not. Those with a number below `applied_seq` are among them:
    numbers are not given in the order of commits."""


@dataclass(frozen=True, slots=True)
class MirrorChange:
    """A document that the mirror has yet to take over, as it was numbered by its last change."""

    document_key: int
    seq: int
    chunks: int


@dataclass(frozen=True, slots=True)
class MirroredChunk:
    """A chunk's vector with what searches filter by; of live documents only."""

    document_key: int
    chunk_key: int
    namespace: str
    document_id: str
    source_id: int
    created_us: int
    score: float | None
    post_type: int | None
    tags: tuple[str, ...]
    vector: Vectors


class MirrorUpkeep(Protocol):
    """Indexes of vectors outside of the store, by name: what each has yet to take over.

    From `begin` on, every transaction that changes a document, its chunks or its vectors also notes
    the document for each mirror. So nothing is missed, whoever writes, and a mirror is as the store
    is but for the documents that are noted.
    """

    def begin(self, name: str, at_us: int) -> bool:
        """Note changes from now on, and all documents there are. False: it was begun before."""
        ...

    def refill(self, name: str) -> None:
        """Note all documents once more, because the mirror was lost."""
        ...

    def end(self, name: str) -> bool:
        """Forget a mirror. False: there is none of that name."""
        ...

    def all(self) -> dict[str, MirrorState]:
        """Every mirror, by name."""
        ...

    def state(self, name: str) -> MirrorState | None:
        """None: it was not begun."""
        ...

    def lease(self, name: str, owner: str, *, now_us: int, until_us: int) -> bool:
        """Take or keep the right to fill it. False: another process has it.

        A lease that ends later than twice as long from now ran out: a clock was ahead.
        """
        ...

    def changes(self, name: str, limit: int) -> list[MirrorChange]:
        """Documents that are noted, those that changed first."""
        ...

    def chunks(self, model_id: int, document_keys: Iterable[int]) -> list[MirroredChunk]:
        """What the mirror is to have of these documents."""
        ...

    def applied(self, name: str, owner: str, changes: Iterable[MirrorChange]) -> bool:
        """These were taken over; documents that changed since then stay noted.

        False: the lease is another's by now, and nothing happened.
        """
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
    def usage(self) -> UsageUpkeep: ...
    @property
    def chunks(self) -> ChunkUpkeep: ...
    @property
    def terms(self) -> TermUpkeep: ...
    @property
    def transfer(self) -> TransferUpkeep: ...
    @property
    def mirrors(self) -> MirrorUpkeep: ...
