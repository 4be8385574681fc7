"""What the canary needs of a deployment: its tools, its counters, and ways to disturb it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

Answer = dict[str, Any]


class Unreachable(Exception):
    """There is no answer, or none that a server of this product gives."""


class Disturbances(Protocol):
    """What may be done to a deployment of the canary's own."""

    def cut_off(self) -> AbstractAsyncContextManager[None]:
        """Within the block, this process makes no vectors and learns of no writes."""
        ...

    async def sever(self) -> int:
        """End all connections of this process to the database, as a restart of that would.

        How many there were; 0: the store is no server.
        """
        ...

    async def restart(self) -> None:
        """Close the store and all that uses it, and open them again."""
        ...


class Deployment(Protocol):
    @property
    def description(self) -> str:
        """Names it in a report."""
        ...

    @property
    def disturbances(self) -> Disturbances | None:
        """None: it serves others, so it is left alone."""
        ...

    async def require_ready(self) -> None:
        """Raise a ZibaldoneError if there is no point in checking it."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """The answer of a tool. Raises the tool's ZibaldoneError, or Unreachable."""
        ...

    async def counters(self) -> Mapping[str, float] | None:
        """The samples of /metrics by name, labels summed up; None: the caller may not see them."""
        ...
