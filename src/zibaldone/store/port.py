"""What the product asks of a storage engine. A new engine implements these protocols.

`tests/store/contract` is this text as tests: an engine joins by one line in
`tests/store/backends.py` and by a branch in `store/open.py`. `store/upkeep.py` is the other half of
the contract: what background work asks for. The values that are stored are in `model/`.

**Opening.** An engine's `open` makes a store that does not exist, in one step that leaves nothing
half made, and brings an older one up to date; several processes may do so at once. A store that is
newer than the program, or of another program, is left alone and raises ConfigurationError. A new
store holds one source: id `KB_SOURCE_ID`, name `kb`, kind `builtin`, in every namespace (`*`),
enabled, cut by the default `Chunking`. Others are added and removed by `SourceUpkeep`. A store that
is still being filled from another one (`TransferUpkeep`) is refused, too, unless it is opened to go
on with that.

**Transactions.** A transaction is a plain function. `await store.read(tenant, work)` runs
`work(reader)`, `await store.write(tenant, work)` runs `work(writer)`, and the result of `work` is
the result of the call. Decisions are made in `work`, waiting is done by the store. An exception in
`work` undoes the transaction and reaches the caller unchanged.

**Isolation.** All reads of a read transaction see one snapshot. It has every write that was
acknowledged before the transaction began, in this process or another; also where reads go to a
replica, unless the primary cannot be reached: then an engine may answer with what the replica has,
which may lack the last moments, rather than not at all. A writer sees at least as
much, and its own writes, by id, in lists and in searches. What a writer reads by id
(`documents.get`, `sources.chunking`, `chunks.stored`; in upkeep also `sources.texts` and
`sources.chunking_version`) is locked until it commits: nobody else changes it in between, so a
writer may decide by what it read. That holds for an id that does not exist, too: nobody else
inserts it meanwhile. Lists, searches and counts of a writer lock nothing, and two of them may see
what others committed in between. Two writers of one document run one after the other, and neither
sees a Conflict for it: the second reads what the first wrote. Whether an engine locks rows, runs
all writers one by one, or repeats `work` is its own business. Readers never wait for writers, nor
writers for readers.

**Atomic and durable.** Everything `work` writes is stored, or nothing is. `write` returns when the
commit would survive a power failure. A write that is cancelled before its turn never happens. Once
it has begun, `write` returns or raises what became of it in spite of a cancellation: who gives up
at a deadline learns the truth, and who goes on asks `end_if_cancelled`. Where that is not known
after WRITE_OUTCOME_SECONDS_MAX (a disk hangs), it raises a DeadlineExceeded that says so
(`store/outcome.py`). (`call_tool` then ends a task that was cancelled for another reason.) So
nothing that takes long is computed in `work` (`keep/writing.py`), and this takes little longer than
a commit. `upkeep` does not wait: what it began ends on its own. An engine may put several writes
into one commit; if one of them fails, the others are unaffected. A write has no deadline; it waits
for other writers up to the limit `write_wait_seconds_max`, then raises StorageUnavailable.

**Retries.** `work` may run more than once: an engine repeats it after a serialization failure or a
deadlock, and a commit may fail after `work` returned. So `work` has no side effects. It returns
outcomes; the caller logs, counts and notifies after the await.

**Threads.** `Store` methods are called on the event loop, by any number of tasks. `work` runs in a
thread of the engine's choice, must not await, and must not keep its reader or writer. Only a read
with `is_small` may run on the event loop itself. `close` may be called from any thread, and twice.

**Fairness.** Work is queued for a share: `access.share.current_share()` in the task that calls
`read`, `write` or `upkeep`, an opaque text (the caller's key id, or BACKGROUND). What one share has
queued does not delay another: shares take turns by the time they have used, one share never holds
all readers, and its long writes leave the writer free most of the time (`access.turns`). A read
that is cancelled leaves the queue at once, or is interrupted.

**Tenants.** Every reader and writer is bound to a `Tenant`: a namespace and a prefix of document
ids. What is outside does not exist for it: reads leave it out, `insert` and `replace` raise
Forbidden. The engine enforces this in its statements; nobody above does. API keys and the upkeep
of `store/upkeep.py` belong to the operator and have no tenant. Methods that take a `Document` are
given one that this transaction read or stored, so its `storage_key` is set and inside the tenant;
`replace` may be given a `before` that an earlier transaction of the tenant read.

**Values.** No text holds a NUL or an unpaired surrogate; ids, titles and tags are NFC. JSON values
(metadata, `pk`, payloads, results) come back with the same keys in the same order and with the same
types of numbers, so a type that sorts keys will not do. Times are microseconds since 1970, UTC. The
callers' clocks set them, and clocks differ: an engine never uses its own.

**Quotas.** `insert` and `replace` raise QuotaExceeded if the namespace would hold more documents,
revisions or bytes (`model.usage`) than the limits of the store allow; where others wrote meanwhile,
so does the end of the transaction. Deleting is never refused.
What a namespace holds is counted in the same transaction, whether there are quotas or not.

**Order.** Document ids are compared by their UTF-8 bytes, never by a locale or by case. A prefix is
literal: `%`, `_` and `\\` in it have no meaning. Where an order is not given, there is none.

**Keys.** A storage key of a document and a chunk key are positive integers that are never used
again, not even after a deletion. Nobody may assume that keys are given in the order of commits.

**Cost.** What goes by id, and a page of a list after an id, must cost the same in a store of ten
and of ten million documents. Calls that take many keys take them all at once: an engine answers
them with a fixed number of statements. `counts`, `check` and upkeep may take long. A read is
interrupted at its deadline, also in the middle of a statement.

**Errors.** An engine raises errors of `zibaldone.errors` and translates everything of its own:

    DeadlineExceeded     the read took too long
    Conflict             the id exists already, or the document was changed meanwhile
    Forbidden            the document is outside the tenant
    QuotaExceeded        the namespace would hold more than it may; nothing was stored
    StorageFull          no room; what was stored is intact
    StorageReadOnly      the user may not write
    StorageUnavailable   closed, locked by others for too long, or unreachable: try again. Where
                         `outcome` is "unknown" the write may have happened
    StorageCorrupt       what was read cannot be what was written
    VectorsUnavailable   vectors cannot be searched now; keywords can
    ConfigurationError   at opening only: the place, its version or its owner is wrong

Conflict carries `document_id`, and `expected` if a revision was; Forbidden carries
`allowed_prefix`. Messages say what happened and what to do, without SQL, passwords or content. A
store that is damaged in one place keeps serving the rest.

**Above the engine.** Engines store values and compare bytes. Cutting, hashing, comparing with what
is stored (`text.chunk_changes`), terms and stems (`text.terms`), what a query looks up
(`text.lookups`) and folding tags (`text.facets`) is done by pure code above, so that every engine
finds the same. Ranking by BM25 is the engine's: title, heading and body have equal weights, k1 is
1.2 and b is 0.75, and word frequencies are counted over all namespaces. `find/` uses the scores as
numbers, not only for their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import orjson

from zibaldone.access.key import ApiKey
from zibaldone.access.principal import Tenant
from zibaldone.errors import ZibaldoneError
from zibaldone.model.chunk import ChunkChanges, ChunkView, StoredChunk
from zibaldone.model.consult import Message, SentFile, Session, SessionKey, Spent
from zibaldone.model.document import (
    Document,
    DocumentFields,
    DocumentHead,
    DocumentPart,
    FolderCount,
    RecentHead,
    Revision,
)
from zibaldone.model.facets import Facets
from zibaldone.model.job import Job, JobState, NewJob
from zibaldone.model.link import Link, LinkedDocument, Links
from zibaldone.model.memory import (
    Entity,
    Episode,
    EpisodeHead,
    Node,
    StoredFact,
    Surroundings,
)
from zibaldone.model.pulled import PulledBlock, PulledRow, PulledRun
from zibaldone.model.query import NO_FILTER, Filter, Query
from zibaldone.store.upkeep import SourceDefinitions, Upkeep
from zibaldone.store.upkeep import SourceRecord as SourceRecord  # noqa: PLC0414 - part of this contract too

if TYPE_CHECKING:  # numpy is loaded by the first search, not by the first import
    from zibaldone.model.vector import Vectors

T = TypeVar("T")


Scored = tuple[int, float]
"""A chunk's key and its score; a higher score is a better match."""


@dataclass(frozen=True, slots=True)
class TermFrequencies:
    """How common terms are in the whole index, as BM25 counts them."""

    chunks: int
    """All there are."""
    chunks_with: Mapping[str, float]
    """Those that have the term; of every term that was asked for."""


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """A source with the number of live documents, and of their chunks, that the caller sees."""

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
    """Who changed which document, when, in which request."""

    at_us: int
    principal: str
    action: str
    document_id: str
    outcome: str
    revision: int | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What `Store.check` found."""

    ok: bool
    engine: str
    """Name and version."""
    problems: tuple[str, ...]
    """Sentences for an operator; the first twenty or so."""
    facts: dict[str, Any]
    """Name and size of the store and the version of its schema. `doctor` shows each as a pair."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """What can be said of a store without opening it; `doctor` shows it."""

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
        """The document, also when it is deleted. A writer locks it until it commits.

        It equals what was stored, `storage_key` apart: metadata keep their order and their types,
        the body every character.
        """
        ...

    def peek(self, document_id: str, chars_max: int) -> DocumentPart | None:
        """Like `get`, with only the first `chars_max` characters of the body.

        It reads no more than it returns: the cost does not depend on how long the body is. A body
        that is not longer is returned whole (`is_whole`).
        """
        ...

    def heads(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> list[DocumentHead]:
        """Live documents whose id starts with the prefix, in byte order, at most `limit`.

        `after` starts behind an id, whether that exists or not; `offset` skips so many documents of
        the prefix. Given both, the later start counts. Behind the end the page is empty. A page at
        an offset may walk the index of ids up to there, but reads no rows before it.
        """
        ...

    def listing(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> Listing:
        """The same as a page that knows whether there is more, in one snapshot with the page."""
        ...

    def folders(self, prefix: str, *, limit: int) -> list[FolderCount]:
        """What live ids have between the prefix and their next slash, in byte order, counted.

        It walks the index of ids once and reads no rows.
        """
        ...

    def heads_here(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> list[DocumentHead]:
        """Like `heads`, of the documents that have no slash after the prefix."""
        ...

    def recent(
        self,
        prefix: str,
        *,
        since_us: int | None = None,
        until_us: int | None = None,
        before: tuple[int, str] | None = None,
        offset: int = 0,
        limit: int,
    ) -> list[RecentHead]:
        """Live documents under a prefix by the time they were written last, the newest first.

        `since_us` and later, earlier than `until_us`. Those of the same time are in falling order
        of their ids. `before`: only what comes after this time and id in that order; then `offset`
        skips so many. It walks an index of times, which costs no more than the page where the
        newest documents are under the prefix.
        """
        ...

    def deleted(
        self, prefix: str, *, before: tuple[int, str] | None = None, limit: int
    ) -> list[RecentHead]:
        """Deleted documents under a prefix with the time of that, the newest first.

        `before` as in `recent`. It reads the rows of all documents under the prefix: this is for
        people who look for something, not for every request.
        """
        ...


class DocumentWrites(DocumentReads, Protocol):
    def insert(self, document: Document) -> Document:
        """Store a new id; the result is the document with its storage key.

        A storage key that `document` carries is ignored. Conflict: the id exists already in the
        namespace, perhaps deleted. Forbidden: it is outside the tenant's prefix. The version of
        its source's chunking is stored with it (`SourceUpkeep.set_chunking`) and so locks the
        source, as `sources.chunking` does; the same goes for `replace`.
        """
        ...

    def replace(self, before: Document, after: Document) -> Document:
        """Make `after` current and keep `before` as a revision, body included.

        The storage key is that of `before`, and the result carries it. Where `after` has another
        id, the document has that from now on, with its history; Conflict: the id is taken, perhaps
        by a deleted document.
        Conflict: the stored revision is not `before.revision` any more, or the namespace has no
        such document. Forbidden: it is outside the tenant's prefix. Deleting is a replacement by a
        document with `deleted_at_us`; its body and revisions stay. The vector status of `after` is
        stored as it is. Earlier revisions may be large beside the bodies: compress them.
        """
        ...

    def put_facets(self, document: Document, facets: Facets | None) -> None:
        """Make these what searches filter the document by; None removes them (it was deleted).

        They replace what was put before. A live document always has facets. Only documents with
        facets are found by searches.
        """
        ...


class RevisionReads(Protocol):
    def page(self, document: DocumentFields, *, before: int | None, limit: int) -> list[Revision]:
        """Revisions before the current one, newest first, with `body` empty.

        `before`: only those with a lower number. The numbers have no gap and end just below the
        current one; an imported document may begin with a number above 1.
        """
        ...

    def get(self, document: DocumentFields, revision: int) -> Revision | None:
        """An earlier revision with its body; None: there is none. The current one is not here."""
        ...


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
        """The best chunks of live documents in enabled sources that pass the filter, best first.

        What passes is said by `Filter`. Sources are those of the tenant's namespace and of `*`.

        A chunk is found if it holds every phrase, every title term in its title, none of what is
        excluded, and, where there are no phrases or title terms, at least one of the words,
        prefixes or wishes. Words and wishes beside required parts only add to the score; a wish is
        held where its words stand side by side, and counts like one more word. What a word is
        looked up as is said by `text.lookups`; an empty query finds nothing. The score is BM25
        over the whole index and positive; higher is better. Where scores are equal, the order is
        the engine's, but the same query and filter give the same one each time, so that pages by
        `offset` fit.

        A large index may be searched in steps, rarer words first. `enough`: once so many chunks are
        there, no further step is wanted, even if they are fewer than `limit`. An engine that
        searches in one step ignores it.
        """
        ...

    def chunk_counts(self, words: Sequence[str], *, count_max: int) -> list[int]:
        """In how many chunks of the whole index each of these words is, to tell which are rare.

        A word of several parts counts as the rarest of them does. Counts beyond `count_max` need
        not be exact. No counts are shown to callers: other tenants' chunks are among them.
        """
        ...

    def matching(self, query: Query, chunk_keys: Iterable[int]) -> set[int]:
        """Those of these chunks, within the tenant, that the query would find without a filter.

        Chunks of disabled sources are among them.
        """
        ...

    def frequencies(self, terms: Iterable[str]) -> TermFrequencies:
        """How common these terms of the index are, in all namespaces together.

        A term in more than TERM_CHUNKS_COUNTED_MAX chunks may be estimated. Callers are shown
        nothing that says more than the scores of a search do.
        """
        ...


class ChunkReads(Protocol):
    def views(self, chunk_keys: Iterable[int]) -> dict[int, ChunkView]:
        """What can be shown of these chunks; those that are gone or invisible are left out.

        Invisible is what is outside the tenant. Chunks of disabled sources are shown: only searches
        leave them out.
        """
        ...

    def views_at(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], ChunkView]:
        """The same by document id and number of the chunk in it."""
        ...

    def documents_of(self, chunk_keys: Iterable[int]) -> dict[int, str]:
        """The document of each of these chunks, without reading the chunks' texts."""
        ...

    def source_names(self, document_ids: Iterable[str]) -> dict[str, str]:
        """The name of the source of each of these documents; only of live ones."""
        ...

    def stored(self, document: Document) -> list[StoredChunk]:
        """What is stored of a document's chunks, in the order of their index. A writer locks
        them."""
        ...


class ChunkWrites(ChunkReads, Protocol):
    def apply(self, document: Document, changes: ChunkChanges) -> None:
        """Remove, move and add chunks, each with a fixed number of statements.

        A removed chunk takes its terms and its vectors of every model along. A moved one keeps its
        key, terms and vectors; while chunks move, two may have the same index for a moment. An
        added one gets a new key and is found by its terms in the same transaction already: terms of
        one run stand side by side for phrases, and no phrase spans two runs. Terms are compared
        byte by byte; they hold no white space. No changes: nothing happens.
        """
        ...


class SourceReads(SourceDefinitions, Protocol):
    def counts(self) -> list[SourceCounts]:
        """The sources that the caller can see, with what they hold for it, by id."""
        ...

    def all(self) -> list[SourceRecord]:
        """The sources that the caller can see, by id."""
        ...

    def get(self, source_id: int) -> SourceRecord | None:
        """None: there is none that the caller can see; so with `named`."""
        ...

    def named(self, name: str) -> SourceRecord | None: ...


class SourceWrites(SourceReads, Protocol):
    """What a writer reads of sources. Only `SourceUpkeep` changes them."""


class PulledReads(Protocol):
    """What is remembered of the rows of a source. For tenants without a prefix."""

    def last_run(self, source_id: int) -> PulledRun | None:
        """None: nothing was ever pulled from the source."""
        ...

    def blocks(self, source_id: int) -> list[PulledBlock]:
        """All of them, by number: one for about a thousand rows."""
        ...

    def rows(self, source_id: int, document_ids: Iterable[str]) -> dict[str, PulledRow]:
        """Those of these documents that a row was pulled for."""
        ...

    def count(self, source_id: int) -> int:
        """How many rows are remembered."""
        ...

    def count_lost(self, source_id: int, blocks: Iterable[int]) -> int:
        """Rows whose block is one of these, or is not stored."""
        ...

    def lost(self, source_id: int, limit: int) -> list[str]:
        """Documents, up to `limit`, of rows whose block is not stored."""
        ...


class PulledWrites(PulledReads, Protocol):
    """Written in the transaction of the documents that it is about."""

    def begin(self, source_id: int, run: int) -> None:
        """A run begins; its number is above that of every run before."""
        ...

    def require_run(self, source_id: int, run: int) -> None:
        """Conflict: another run has begun since, or the source was removed. Locks the run."""
        ...

    def finish(self, source_id: int, run: int) -> None:
        """The run is complete."""
        ...

    def put_rows(self, source_id: int, rows: Iterable[PulledRow]) -> None:
        """In place of what was there for these documents."""
        ...

    def move_rows(self, source_id: int, document_ids: Iterable[str], block: int) -> None:
        """Those of these rows that are remembered belong to this block from now on."""
        ...

    def remove_rows(self, source_id: int, document_ids: Iterable[str]) -> None: ...

    def put_block(self, source_id: int, block: PulledBlock) -> None: ...

    def drop_blocks(self, source_id: int, blocks: Iterable[int]) -> None:
        """Their rows stay and are lost, until they belong to another block."""
        ...


class MemoryReads(Protocol):
    """Episodes (`model.memory`): live documents under `memory/<group>/`, and what they say.

    `until_us`: as if nothing that is later were known.
    """

    def find(self, episode_id: str, *, limit: int) -> list[EpisodeHead]:
        """Episodes with this id, at most `limit`; there can be one in each group."""
        ...

    def latest(
        self, group_ids: Iterable[str], *, limit: int, until_us: int | None = None
    ) -> list[EpisodeHead]:
        """The last episodes of these groups by their own time, last first."""
        ...

    def groups(self, *, limit: int | None = None) -> dict[str, int]:
        """The number of episodes in each group that has any, by name; so many of the largest."""
        ...

    def totals(self) -> tuple[int, int]:
        """How many groups have episodes, and how many episodes they have together."""
        ...

    def around(self, document_ids: Iterable[str]) -> dict[str, Surroundings]:
        """What stands next to each of these episodes, up to two each way.

        In the order of their time, and of their storage keys where that is the same.
        """
        ...

    def entities_of(self, document_ids: Iterable[str]) -> dict[str, list[Entity]]:
        """What these episodes mention; those that mention nothing are left out."""
        ...

    def nodes(
        self, group_id: str, entity_keys: Iterable[str], *, until_us: int | None = None
    ) -> list[Node]:
        """Those of these entities that the group mentions, in the order given."""
        ...

    def facts_of(
        self, document_ids: Iterable[str], *, until_us: int | None = None
    ) -> list[StoredFact]:
        """What these episodes state, in the order given, each with what ended it.

        A fact is ended by the next one, by time, of the same group, subject and slot whose object
        is another.
        """
        ...

    def stating(
        self, group_id: str, entity_key: str, *, limit: int, until_us: int | None = None
    ) -> list[str]:
        """The last documents with facts whose subject is this entity, last first."""
        ...


class LinkReads(Protocol):
    """Links between documents, and the names by which documents are linked to."""

    def out(self, document: DocumentFields) -> list[Link]:
        """The links of a document, in the order of its text."""
        ...

    def with_names(self, names: Iterable[str], *, each: int) -> dict[str, list[LinkedDocument]]:
        """The live documents that have these names, by name: of each the first by id, at most
        `each`."""
        ...

    def pointing(self, links: Iterable[Link], *, limit: int) -> list[LinkedDocument]:
        """The live documents that have one of these links, by id, at most `limit`."""
        ...


class LinkWrites(LinkReads, Protocol):
    def put(self, document: Document, links: Links | None) -> None:
        """Keep these in place of what was kept of the document. None: it was deleted."""
        ...


class MemoryWrites(MemoryReads, Protocol):
    def put(self, document: Document, episode: Episode | None) -> None:
        """Store what a document says as an episode, in place of what was stored of it before.

        None: it was deleted.
        """
        ...


@dataclass(frozen=True, slots=True)
class VectorCoverage:
    pending: int
    """Documents of the caller that still wait for vectors, or could not be embedded."""
    has_model: bool
    """Is there any vector of the model, in any namespace?"""
    note: str = ""
    """What a caller should know about how vectors are searched at present; mostly nothing."""


class VectorReads(Protocol):
    def search(
        self, identity: str, vector: Vectors, k: int, wanted: Filter = NO_FILTER
    ) -> list[Scored]:
        """The k chunks of live documents nearest to a vector, by cosine, nearest first.

        `vector` is one row of unit length with the model's number of dimensions. The filter,
        sources that are disabled and the tenant are applied before the cut to k: where k chunks
        pass, k are returned. A model without vectors gives none. VectorsUnavailable: not now, for
        instance while they are read into memory. An engine may use an approximate index, and may
        store vectors rounded: the contract tests want 98 of 100 of the true nearest, cosines that
        are right to 0.01, and none above 1.
        """
        ...

    def scores(self, identity: str, vector: Vectors, chunk_keys: Iterable[int]) -> dict[int, float]:
        """The cosine, as `search` gives it, of each of these chunks that has such a vector.

        Chunks outside the tenant are left out; those of disabled sources are not.
        """
        ...

    def coverage(self, identity: str) -> VectorCoverage:
        """How far the caller's documents have vectors of the model."""
        ...

    def passing(self, chunk_keys: Iterable[int], wanted: Filter = NO_FILTER) -> set[int]:
        """Those of these chunks that `search` may return under the filter, by the same rules."""
        ...

    def unmirrored(self, name: str, limit: int) -> list[str] | None:
        """The caller's documents that a mirror has yet to take over (`MirrorUpkeep`).

        None: in all namespaces together they are more than `limit`, or there is no such mirror.
        """
        ...


class JobReads(Protocol):
    """A tenant sees the jobs of its namespace. One with a prefix sees the jobs about documents
    under it, and of all other jobs those added by a tenant whose prefix begins with its own.

    Jobs about documents are those of `DOCUMENT_KINDS`: their stored subject is the document's
    storage key as text. `Job.subject` is the document's id then, also of a deleted document.
    """

    def get(self, job_id: str) -> Job | None:
        """The job; None: there is none that the tenant sees."""
        ...

    def head(self, job_id: str) -> Job | None:
        """The same without payload and result, at the same small cost however long these are."""
        ...

    def page(
        self,
        *,
        kind: str | None = None,
        state: JobState | None = None,
        limit: int,
        after: str | None = None,
    ) -> list[Job]:
        """Jobs by falling id, which is newest first; only ids below `after`, if it is given. They
        come without payload and result.

        Ids are compared as text. The job `after` need not exist any more.
        """
        ...

    def open_of(self, key_id: str, limit: int) -> int:
        """How many jobs of a caller are queued or running in the namespace; at most `limit`."""
        ...


class QueueWrites(Protocol):
    def add(self, jobs: Iterable[NewJob]) -> list[str]:
        """Queue jobs in this transaction; their ids, in the order of the jobs.

        They belong to the tenant: its namespace and its prefix are stored with them. Where a queued
        or running job of the namespace and kind has the same unique key, nothing is added and the
        id is that job's; also where it was added earlier in the same call, or by another process
        at the same time.
        """
        ...

    def cancel(self, job_id: str, now_us: int) -> Job | None:
        """Cancel a job that is queued or parked; request it of one that runs; others stay.

        A cancelled job has `finished_at_us`; a running one gets `cancel_requested`, and its worker
        does the rest. Returns the job as it is then. None: there is none that the tenant sees.
        """
        ...

    def retry(self, job_id: str) -> Job | None:
        """Queue a parked, cancelled or waiting job again, due at once and with nothing counted.

        Attempts, crashes, error, progress and the request to cancel are cleared. A job that runs or
        is done, or whose unique key another queued or running job has by now, stays as it is.
        Returns the job as it is then. None: there is none that the tenant sees.
        """
        ...


class SessionReads(Protocol):
    """Conversations with assistants. A session belongs to a key of the namespace (`owner`); its
    prefix plays no part. Whoever asks gives the owner: another's sessions do not exist for them."""

    def get(self, key: SessionKey) -> Session | None:
        """A writer locks it until it commits."""
        ...

    def page(
        self,
        owner: str,
        *,
        assistant: str | None = None,
        limit: int,
        before: tuple[int, int] | None = None,
    ) -> list[Session]:
        """Sessions with at least one turn, the one that was used last first.

        `before`: `updated_at_us` and `storage_key` of the last one of the page before.
        """
        ...

    def messages(self, key: SessionKey, from_position: int = 0) -> list[Message]:
        """In the order in which they were stored."""
        ...

    def message_count(self, key: SessionKey) -> int:
        """How many there are."""
        ...

    def stable(self, key: SessionKey) -> tuple[str, ...] | None:
        """The files that are always in the prompt. None: there is no list; it may be empty."""
        ...

    def sent(self, key: SessionKey) -> dict[str, SentFile]:
        """The files that the assistant has."""
        ...

    def spent(self, owner: str, day: int) -> Spent:
        """On a day, counted from 1970."""
        ...


class SessionWrites(SessionReads, Protocol):
    def put(self, session: Session) -> None:
        """In place of what was there. What follows is put into sessions that are there."""
        ...

    def put_messages(
        self, key: SessionKey, messages: Sequence[Message], from_position: int
    ) -> None:
        """In place of everything from that position on; they are as many as were before it."""
        ...

    def put_stable(self, key: SessionKey, paths: Sequence[str], at_us: int) -> None:
        """The list. One that is there is never changed."""
        ...

    def put_sent(self, key: SessionKey, files: Mapping[str, SentFile]) -> None: ...

    def remove_sent(self, key: SessionKey, paths: Iterable[str]) -> None: ...

    def remove(self, key: SessionKey) -> bool:
        """With everything that belongs to it. False: there is none."""
        ...

    def lease(self, key: SessionKey, holder: str, *, now_us: int, until_us: int) -> bool:
        """The right to take a turn, for a time; the holder renews it so. A session that is not
        there is made, without turns. False: somebody else has the right.

        A holder is `<turn>:<attempt>`. A later attempt of the same turn takes the right from an
        earlier one, which learns of it by `holds`.
        """
        ...

    def holds(self, key: SessionKey, holder: str) -> bool:
        """Whether nobody else has taken the right meanwhile."""
        ...

    def release(self, key: SessionKey, holder: str) -> None: ...

    def spend(self, owner: str, day: int, spent: Spent) -> Spent:
        """Add to what was spent that day; what that makes. Others who add wait for the commit."""
        ...


class AuditReads(Protocol):
    def page(self, document_id: str | None, *, limit: int) -> list[AuditEntry]:
        """The newest entries first, of one document or of all that the tenant sees.

        Newest is what was added last, whatever `at_us` says: clocks step back.
        """
        ...


class AuditWrites(AuditReads, Protocol):
    def add(self, entry: AuditEntry) -> None:
        """Add an entry, under the tenant's namespace, in the transaction of its change."""
        ...


class ApiKeyReads(Protocol):
    def all(self) -> list[ApiKey]:
        """Every key, ended ones too, oldest first. Keys are the operator's: no tenant applies."""
        ...


class ApiKeyWrites(ApiKeyReads, Protocol):
    def add(self, key: ApiKey) -> None:
        """Store a key; of its secret only the hash is there to be stored. Ids are random."""
        ...

    def revoke(self, key_id: str, at_us: int) -> bool:
        """False: there is no such key, or it has ended already."""
        ...

    def delete(self, key_id: str) -> bool:
        """Forget a key, whether it has ended or not. False: there is no such key."""
        ...


class Reader(Protocol):
    """What one transaction reads, as one tenant sees it."""

    def within(self, share: float) -> AbstractContextManager[None]:
        """Give what is read inside that share, up to 1, of the time that the read has left.

        Then it is interrupted by DeadlineExceeded, and the reader goes on from there: the snapshot
        is the same, and what is left of the time.
        """
        ...

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
    def pulled(self) -> PulledReads: ...
    @property
    def memory(self) -> MemoryReads: ...
    @property
    def links(self) -> LinkReads: ...
    @property
    def sessions(self) -> SessionReads: ...
    @property
    def audit(self) -> AuditReads: ...
    @property
    def api_keys(self) -> ApiKeyReads: ...


class Writer(Protocol):
    """What one transaction reads and writes. It may do all that a reader does, vectors apart.

    Vectors are written by background work only (`VectorUpkeep`), and searched by readers.
    """

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
    def pulled(self) -> PulledWrites: ...
    @property
    def memory(self) -> MemoryWrites: ...
    @property
    def links(self) -> LinkWrites: ...
    @property
    def sessions(self) -> SessionWrites: ...
    @property
    def jobs(self) -> JobReads: ...
    @property
    def queue(self) -> QueueWrites: ...
    @property
    def audit(self) -> AuditWrites: ...
    @property
    def api_keys(self) -> ApiKeyWrites: ...


@dataclass(frozen=True, slots=True)
class ProbeResult(Generic[T]):
    result: T
    """What `work` returned."""
    refused_write: ZibaldoneError | None
    """Why the store takes no writes at present (its disk is full); None if it does. An engine goes
    by the outcome of the last write; if that was refused, it tries one, and undoes it."""


@dataclass(frozen=True, slots=True)
class ReadStoreStatus:
    """How reads get on that go to a replica."""

    status: Literal["ok", "late", "unavailable"]
    """Unless it is ok, reads go to the store itself."""
    message: str = ""


class Store(Protocol):
    """An open store. The module's docstring says what every engine keeps to."""

    @property
    def description(self) -> str:
        """Names the store in a sentence: "the SQLite file /data/zibaldone.db". No passwords."""
        ...

    @property
    def read_store_status(self) -> ReadStoreStatus | None:
        """None: no reads go to a replica."""
        ...

    async def read(
        self,
        tenant: Tenant,
        work: Callable[[Reader], T],
        *,
        seconds_max: float | None = None,
        is_small: bool = False,
    ) -> T:
        """Run `work` on one snapshot, off the event loop, and interrupt it at its deadline.

        `seconds_max` is the time for the whole of `work`, waiting for its turn included; by default
        the limit `query_seconds_max`, from its turn on. `is_small` says that the work reads a
        bounded number of small rows (one id, one page, the beginning of a body): an engine may then
        run it inline, with a shorter deadline, because handing it to a thread would take longer
        than the work itself. `work` may run more than once, so it has no side effects.
        """
        ...

    async def write(self, tenant: Tenant, work: Callable[[Writer], T]) -> T:
        """Run `work` atomically; return its result once the commit is durable.

        `work` may run more than once, so it has no side effects. What it reads by id is locked
        until the commit.
        """
        ...

    async def probe(self, work: Callable[[Upkeep], T]) -> ProbeResult[T]:
        """Find out for the health check whether the store can be read and takes writes.

        `work` only looks, as in `upkeep(work, write=False)`. It runs in a thread and on a
        connection that serve nothing else, so it answers when all readers and the writer are stuck.
        Probes run one after the other; each raises DeadlineExceeded after PROBE_SECONDS_MAX,
        waiting included, also if the disk or the server does not answer at all.
        """
        ...

    async def upkeep(
        self, work: Callable[[Upkeep], T], *, write: bool = True, seconds_max: float | None = None
    ) -> T:
        """Background work across namespaces, atomic like `write` and under the same rules.

        `write=False` only looks, on a snapshot, and locks nothing; it may take a minute, or
        `seconds_max`, then it raises DeadlineExceeded. Calls that change something are not made in
        it.
        """
        ...

    async def prepare_model(self, identity: str) -> None:
        """Get ready to search a model's vectors: read them into memory, or build an index.

        It may take long, and is called once at the start of a server, whether or not the model has
        vectors. Searches work without it, maybe slower, or raise VectorsUnavailable for a while.
        """
        ...

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` on the event loop when another process has queued something; until cancelled.

        It only saves time. A call may be missed, or come for nothing, so workers also look by
        themselves. An engine that does not hear of other processes returns at once.
        """
        ...

    async def check(self, *, thorough: bool = False) -> StoreCheck:
        """Look for damage, beside other work: quickly at the structure, or thoroughly at all.

        Thorough: every document has its body, its hash and a history without gaps; deleted ones
        have no chunks; chunks, terms and vectors agree.
        """
        ...

    def close(self) -> None:
        """Finish what was begun; later calls raise StorageUnavailable ("closed")."""
        ...


def end_if_cancelled() -> None:
    """End a task that was cancelled while it awaited a write, which returned all the same. For
    whoever goes on after it: a deadline comes once."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
