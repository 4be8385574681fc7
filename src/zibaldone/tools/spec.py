"""How a tool is declared, and what its handler is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from zibaldone.access.principal import Effect, Principal
from zibaldone.embed.watched import Watched
from zibaldone.find.query_vector import QueryVectors
from zibaldone.index.worker import IndexWorker
from zibaldone.ingest.convert import Converter
from zibaldone.ingest.fetch import Fetcher
from zibaldone.keep.commit import Actor
from zibaldone.limits import Limits
from zibaldone.store.port import Store

Answer = dict[str, Any]


class Arguments(BaseModel):
    """Base of every tool's input: unknown names and wrong types are refused, not guessed at."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts that handlers work with; put together in `wiring`."""

    store: Store
    limits: Limits
    fetcher: Fetcher
    converter: Converter
    query_vectors: QueryVectors
    embedder: Watched | None = None
    """None where there is no embedding model: keyword search only."""
    index: IndexWorker | None = None
    """Keeps vectors in step; None where there is no embedding model."""

    def close(self) -> None:
        self.converter.close()
        self.store.close()
        if self.embedder is not None:
            self.embedder.close()


Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification (method, params) to the client while its call is running."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: by whom, in which request, on which parts."""

    runtime: Runtime
    principal: Principal
    request_id: str = ""
    notify: Notify | None = None
    progress_token: str | int | None = None

    def with_notify(self, notify: Notify, progress_token: object) -> Call:
        token = progress_token if isinstance(progress_token, str | int) else None
        return replace(self, notify=notify, progress_token=token)

    async def progress(self, done: float, total: float, message: str) -> None:
        """Tell a client that asked for it how far the work is."""
        if self.notify is not None and self.progress_token is not None:
            params = {"progressToken": self.progress_token, "progress": done, "total": total}
            await self.notify("notifications/progress", {**params, "message": message})

    @property
    def actor(self) -> Actor:
        return Actor(self.principal.key_id, self.request_id)


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec(Generic[A]):
    name: str
    title: str
    description: str
    """Words for a model: what it does, when to use it, what comes back."""
    arguments: type[A]
    effect: Effect
    handler: Callable[[Call, A], Answer | Awaitable[Answer]]
    """A plain function where it never waits: there is nothing to interrupt then, so no deadline."""
    idempotent: bool = False
    seconds_max: float | None = None
    """None: the limit of all tools."""
    reports_progress: bool = False
