"""A check, what it is given, and what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from zibaldone.canary.deployment import Deployment
from zibaldone.canary.folder import Folder
from zibaldone.limits import CANARY_WAIT_SECONDS_MAX

Result = Literal["passed", "failed", "skipped"]


class Failed(Exception):
    """The deployment does not do what the check wants."""


class NotPossible(Exception):
    """The check cannot be made here; the message says why."""


@contextmanager
def first_failure() -> Iterator[None]:
    """Around a TaskGroup: of the failures of its tasks, raise one, as it is."""
    try:
        yield
    except ExceptionGroup as failures:
        problem: Exception = failures
        while isinstance(problem, ExceptionGroup):
            problem = problem.exceptions[0]
        raise problem from failures


@dataclass(frozen=True, slots=True)
class Bench:
    """What a check works with."""

    deployment: Deployment
    folder: Folder
    write_seconds: int
    """How long C6 writes."""
    slack: float = 1.0
    """Every time limit is multiplied by this."""

    async def ready_after(self, *paths: str, seconds_max: float = CANARY_WAIT_SECONDS_MAX) -> float:
        try:
            return await self.folder.ready_after(paths, seconds_max * self.slack)
        except TimeoutError as late:
            raise Failed(f"not ready {late}") from None


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    what: str
    """What it checks, in a line."""
    run: Callable[[Bench], Awaitable[str]]
    """Raises Failed or NotPossible; or says what was measured."""


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    what: str
    result: Result
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    deployment: str
    outcomes: list[Outcome]
    left_behind: list[str]
    """Documents that could not be deleted."""

    @property
    def ok(self) -> bool:
        has_failed = any(outcome.result == "failed" for outcome in self.outcomes)
        return not has_failed and not self.left_behind
