"""A deployment in this process: the configured store with the background work of a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from prometheus_client import generate_latest

from zibaldone.access.principal import Principal, Tenant
from zibaldone.canary.counters import parse_counters
from zibaldone.canary.deployment import Answer
from zibaldone.errors import Conflict, NotConfigured
from zibaldone.jobs.supervisor import Supervisor
from zibaldone.tools.call import call_tool
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import Call, Runtime

NAMESPACE = "zibaldone-canary"
"""What the canary writes here is in no namespace that anybody uses."""

_CANARY = Principal(key_id="canary", tenant=Tenant(NAMESPACE))


@dataclass(frozen=True, slots=True)
class Parts:
    runtime: Runtime
    catalogue: Catalogue
    background: Supervisor
    sever: Callable[[], int]
    """Ends the connections to the database; see `Disturbances`."""


class LocalDeployment:
    """Use it as an async context manager, in one task."""

    def __init__(self, open_parts: Callable[[], Parts]) -> None:
        self._open_parts = open_parts
        self._parts = open_parts()
        self._background = AsyncExitStack()

    @property
    def description(self) -> str:
        return f"{self._parts.runtime.store.description}, served by this process"

    @property
    def disturbances(self) -> LocalDeployment:
        return self

    async def __aenter__(self) -> LocalDeployment:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._background.aclose()
        self._parts.runtime.close()

    async def require_ready(self) -> None:
        """And begin with the background work: not before it is known to be harmless."""
        if self._parts.runtime.index is None:
            raise NotConfigured(
                "There is no embedding model, and the canary checks vectors. Install one, or set "
                "embedder."
            )
        status = await self.call("index_status", {})
        if status["indexed_by"] not in (None, status["model"]):
            raise Conflict(
                f"A running process indexes this store with {status['indexed_by']}, not with "
                f"{status['model']}. Run the canary with the settings of that process."
            )
        if status["missing"]:
            raise Conflict(
                f"{status['missing']} chunks have no vector of {status['model']} yet; the canary "
                "would embed them all. Run 'zibaldone reindex' first, or check the running server "
                "with --url."
            )
        await self._start()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        parts = self._parts
        call = Call(parts.runtime, _CANARY, is_operator=True)
        answer: Answer = await call_tool(parts.catalogue.by_name[tool], call, dict(arguments))
        values: Answer = orjson.loads(orjson.dumps(answer, default=str))
        return values

    async def counters(self) -> Mapping[str, float]:
        return parse_counters(generate_latest().decode())

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        await self._stop()
        try:
            yield
        finally:
            await self._start()

    async def sever(self) -> int:
        return await asyncio.to_thread(self._parts.sever)

    async def restart(self) -> None:
        await self._stop()
        self._parts.runtime.close()
        self._parts = self._open_parts()
        await self._start()

    async def _start(self) -> None:
        await self._background.enter_async_context(self._parts.background.running())

    async def _stop(self) -> None:
        await self._background.aclose()
