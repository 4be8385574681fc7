"""What the product asks of a storage engine: small protocols, the same for every backend.

A transaction is a plain function: `await store.write(scope, work)` runs `work(writer)` atomically
and returns once its effect is durable; `await store.read(scope, work)` runs `work(reader)` on one
snapshot. Deciding happens in the function, waiting happens here. Every reader and writer is bound
to one `Scope`: what lies outside it does not exist for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from commonplace.access.key import ApiKey
from commonplace.access.principal import Scope
from commonplace.model.document import Document, DocumentHead, Revision
from commonplace.text.chunk import Chunk
from commonplace.text.tokens import Query

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A passage that matches a keyword query; a higher score is a better match."""

    chunk_key: int
    document_id: str
    chunk_index: int
    title: str
    heading: str
    text: str
    start: int
    score: float


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of documents, already JSON: databases write it in a third of the time we would take.

    An item has document_id, parent_id, title, tags and revision.
    """

    items_json: str
    count: int
    last_id: str | None
    has_more: bool


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


class DocumentReads(Protocol):
    def get(self, document_id: str) -> Document | None:
        """The document, also when it is deleted."""
        ...

    def heads(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> list[DocumentHead]:
        """Live documents with that prefix in byte order, from `after` (exclusive) or `offset`."""
        ...

    def listing(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> Listing:
        """The same, as it is shown."""
        ...


class DocumentWrites(DocumentReads, Protocol):
    def insert(self, document: Document) -> Document:
        """Store a new id; the result carries its storage key."""
        ...

    def replace(self, before: Document, after: Document) -> Document:
        """Make `after` current and keep `before` as a revision."""
        ...


class RevisionReads(Protocol):
    def page(self, document: Document, *, before: int | None, limit: int) -> list[Revision]:
        """Earlier revisions, newest first, without bodies."""
        ...

    def get(self, document: Document, revision: int) -> Revision | None: ...


class LexicalReads(Protocol):
    def search(self, query: Query, *, limit: int, prefix: str = "") -> list[LexicalHit]:
        """The best passages of live documents, best first."""
        ...


class LexicalWrites(LexicalReads, Protocol):
    def replace(self, document: Document, chunks: Sequence[Chunk]) -> None:
        """Make these the document's passages; those that did not change keep their identity."""
        ...


class OutboxWrites(Protocol):
    def add(self, document: Document, kind: Literal["index", "remove"]) -> None:
        """Tell the index pipeline, in the same transaction, that the document changed."""
        ...


class AuditReads(Protocol):
    def page(self, document_id: str | None, *, limit: int) -> list[AuditEntry]: ...


class AuditWrites(AuditReads, Protocol):
    def add(self, entry: AuditEntry) -> None: ...


class ApiKeyReads(Protocol):
    def all(self) -> list[ApiKey]:
        """Every key, ended ones too. Keys are the operator's: no scope applies."""
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
    def lexical(self) -> LexicalReads: ...
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
    def lexical(self) -> LexicalWrites: ...
    @property
    def outbox(self) -> OutboxWrites: ...
    @property
    def audit(self) -> AuditWrites: ...
    @property
    def api_keys(self) -> ApiKeyWrites: ...


class Store(Protocol):
    async def read(
        self, scope: Scope, work: Callable[[Reader], T], *, seconds_max: float | None = None
    ) -> T:
        """Run on one snapshot, off the event loop, interrupted when the time is over."""
        ...

    def read_now(self, scope: Scope, work: Callable[[Reader], T]) -> T:
        """For reads of a known small cost (one id, one page): no hand-over where none is needed."""
        ...

    async def write(self, scope: Scope, work: Callable[[Writer], T]) -> T:
        """Run atomically; returns after the commit is on disk."""
        ...

    async def check(self, *, thorough: bool = False) -> StoreCheck: ...

    def close(self) -> None: ...
