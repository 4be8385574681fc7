"""How a tool is declared, and what its handler is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from zibaldone.access.decide import require_document
from zibaldone.access.principal import Effect, Principal
from zibaldone.access.turns import TaskTurns, Turns
from zibaldone.consult.turn import Consulting
from zibaldone.embed.watched import Watched
from zibaldone.find.query_vector import QueryVectors
from zibaldone.find.rerank import Reranking
from zibaldone.index.worker import IndexWorker
from zibaldone.ingest.convert import Converter
from zibaldone.ingest.fetch import Fetcher
from zibaldone.jobs.runner import JobRunner
from zibaldone.keep.commit import Actor
from zibaldone.keep.pulled import PulledDocuments
from zibaldone.keep.writing import C, Edit, Preparation, write_edit
from zibaldone.limits import (
    LONG_ANSWER_BYTES,
    LONG_ANSWERS,
    LONG_ANSWERS_EXTRA,
    LONG_ANSWERS_PER_KEY,
    PACKS,
    PACKS_EXTRA,
    REFETCHES,
    REFETCHES_EXTRA,
    REFETCHES_PER_KEY,
    SOURCES,
    SOURCES_EXTRA,
    SOURCES_PER_KEY,
    TOOL_REQUEST_BYTES_MAX,
    Limits,
)
from zibaldone.model.assistant import Assistant
from zibaldone.model.document import Document
from zibaldone.model.job import NewJob, Schedule
from zibaldone.pack.counts import Counts
from zibaldone.pull.live import LiveSources
from zibaldone.store.port import Reader, Store
from zibaldone.store.qdrant.feed import VectorFeed


def long_answer_turns() -> TaskTurns:
    return TaskTurns(Turns(LONG_ANSWERS, per_share=LONG_ANSWERS_PER_KEY, extra=LONG_ANSWERS_EXTRA))


def source_turns() -> TaskTurns:
    return TaskTurns(Turns(SOURCES, per_share=SOURCES_PER_KEY, extra=SOURCES_EXTRA))


def refetch_turns() -> TaskTurns:
    return TaskTurns(Turns(REFETCHES, per_share=REFETCHES_PER_KEY, extra=REFETCHES_EXTRA))


def pack_turns() -> TaskTurns:
    return TaskTurns(Turns(PACKS, extra=PACKS_EXTRA))


Answer = dict[str, Any]
"""An answer whose tool is known only at run time."""


class Arguments(BaseModel):
    """Base of every tool's input: unknown names and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


A = TypeVar("A", bound=Arguments)
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts that handlers work with; put together in `wiring`."""

    store: Store
    limits: Limits
    fetcher: Fetcher
    converter: Converter
    query_vectors: QueryVectors
    preparation: Preparation
    embedder: Watched | None = None
    """None where there is no embedding model: keyword search only."""
    reranking: Reranking | None = None
    """Decides the order of the best hits; None where there is no reranker."""
    index: IndexWorker | None = None
    """Keeps vectors in step; None where there is no embedding model."""
    vector_feed: VectorFeed | None = None
    """Keeps an index of vectors beside the store in step; None where there is none."""
    jobs: JobRunner | None = None
    """Runs jobs of other kinds than vectors."""
    schedules: Sequence[Schedule] = ()
    """Those that come with the product; the store has more."""
    pulled: PulledDocuments | None = None
    """Where rows of sources go."""
    live: LiveSources | None = None
    """Follows sources that change."""
    consulting: Consulting | None = None
    """Takes turns with assistants; None where there are none."""
    long_answers: TaskTurns = field(default_factory=long_answer_turns)
    """Held by a call that reads whole documents, until its answer is sent."""
    sources: TaskTurns = field(default_factory=source_turns)
    """Held by a call that reads a file or a page, until its text is stored."""
    refetches: TaskTurns = field(default_factory=refetch_turns)
    """Held while rows are read from a source."""
    assistants: Mapping[str, Assistant] = field(default_factory=dict)
    """Other models that can be asked, by name."""
    extracts: bool = False
    """An assistant reads what is written to memory."""
    counts: Counts = field(default_factory=Counts)
    """Tokens of files."""
    packs: TaskTurns = field(default_factory=pack_turns)
    """Held while files are read and counted."""
    store_mark: str = ""
    """By which `doctor` sees whether a server uses the store that it looks at."""

    def wake(self) -> None:
        """Something changed, maybe for the background work too: let it look at once."""
        if self.index is not None:
            self.index.wake()
        if self.jobs is not None:
            self.jobs.wake()

    def close(self) -> None:
        self.converter.close()
        self.preparation.close()
        self.store.close()
        if self.embedder is not None:
            self.embedder.close()


Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification (method, params) to the client while its call is running."""


@dataclass(slots=True)  # made for every call: frozen costs three times as much
class Call:
    """One call: by whom, in which request, on which parts."""

    runtime: Runtime
    principal: Principal
    request_id: str = ""
    notify: Notify | None = None
    progress_token: str | int | None = None
    is_operator: bool = False
    """Made by the operator in this process (the command line), not over a transport."""
    request_bytes: int = 0
    """Size of the request that it came in; 0 where that is bounded otherwise."""
    deadline_s: float | None = None
    """On the monotonic clock: when the batch that it is part of has to be done."""

    def with_notify(self, notify: Notify, progress_token: object) -> Call:
        token = progress_token if isinstance(progress_token, str | int) else None
        return replace(self, notify=notify, progress_token=token)

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """Report progress to a client that asked for it. `total` is None where it is not known."""
        if self.notify is not None and self.progress_token is not None:
            params: dict[str, Any] = {"progressToken": self.progress_token, "progress": done}
            if total is not None:
                params["total"] = total
            await self.notify("notifications/progress", {**params, "message": message})

    async def begin_long_answer(self) -> None:
        """Wait for the turn to make an answer of megabytes. It ends when the answer is sent."""
        await self.runtime.long_answers.hold()

    async def read_texts(
        self,
        work: Callable[[Reader], T],
        chars_of: Callable[[T], int],
        seconds_left: Callable[[], float] | None = None,
        chars_read: Callable[[Reader], int] | None = None,
    ) -> T:
        """Read what is seldom long. If it is, it is dropped and read again when it has its turn.

        `chars_read`: how much `work` would read, where that can be told before.
        """

        def if_short(reader: Reader) -> T | None:
            if chars_read is not None and chars_read(reader) > LONG_ANSWER_BYTES:
                return None
            found = work(reader)
            return found if chars_of(found) <= LONG_ANSWER_BYTES else None

        async def read(what: Callable[[Reader], S]) -> S:
            seconds_max = None if seconds_left is None else seconds_left()
            tenant = self.principal.tenant
            return await self.runtime.store.read(tenant, what, seconds_max=seconds_max)

        found = await read(if_short)
        if found is None:
            await self.begin_long_answer()
            found = await read(work)
        return found

    async def write(self, edit: Edit[C]) -> tuple[Document, C]:
        """Make the change, in the caller's name; the stored document and what was changed."""
        runtime, tenant = self.runtime, self.principal.tenant
        return await write_edit(runtime.store, runtime.preparation, tenant, edit, self.actor)

    def require_document(self, document_id: str) -> None:
        """For a handler that learns only while it runs which document it writes."""
        require_document(self.principal, document_id)

    @property
    def actor(self) -> Actor:
        return Actor(self.principal.key_id, self.request_id, self.runtime.extracts)


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec(Generic[A, R]):
    name: str
    title: str
    description: str
    """Words for a model: what it does, when to use it, what comes back."""
    arguments: type[A]
    result: type[R]
    """A TypedDict: the shape of the answer. It is a promise, not checked at run time."""
    effect: Effect
    handler: Callable[[Call, A], Coroutine[Any, Any, R]]
    document: Callable[[A], str | None] | None = None
    """The path of the document that a call writes; a caller bound to a folder is refused outside
    it. None: the tool writes no document, or learns its path later (`Call.require_document`)."""
    idempotent: bool = False
    request_bytes_max: int | None = TOOL_REQUEST_BYTES_MAX
    """None: the limit of all requests, for tools that take the text of a document."""
    seconds_max: float | Callable[[Limits], float] | None = None
    """None: the limit of all tools."""
    reports_progress: bool = False
    is_long: bool = False
    """Its answer may hold whole documents; its handler holds one of `Runtime.long_answers`."""
    is_local: bool = False
    """For the operator's own process only: no profile lists it and no route leads to it."""
    job: Callable[[Call, A], NewJob] | None = None
    """Makes the job that does the same work and whose result is the answer. A client that knows MCP
    tasks is given the job as a task, in place of the handler's answer."""
    is_missing_an_answer: bool = False
    """Over MCP, a document that is not found is an answer with `error`, not a failed call."""


AnyTool = ToolSpec[Any, Any]
