"""Counting what one write causes, on a server that others use too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from zibaldone.canary import counting
from zibaldone.canary.check import Bench, Failed, NotPossible
from zibaldone.canary.folder import Folder


@dataclass
class Counted:
    """A deployment that is nothing but a counter."""

    value: float = 0.0
    on_look: Callable[[Counted], None] = lambda counted: None
    description: str = "a counter"
    disturbances: None = None
    is_visible: bool = True
    calls: list[str] = field(default_factory=list)

    async def require_ready(self) -> None:
        pass

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def counters(self) -> Mapping[str, float] | None:
        self.on_look(self)
        return {"n": self.value} if self.is_visible else None


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "CANARY_QUIET_SECONDS", 0)


def count(deployment: Counted, adds: Callable[[int], float], expected: int = 1) -> int:
    """How often the action was done."""
    done = 0

    async def action(attempt: int) -> None:
        nonlocal done
        done += 1
        deployment.value += adds(attempt)

    bench = Bench(deployment, Folder(deployment), write_seconds=1)
    asyncio.run(counting.require_count(bench, "n", expected, action))
    return done


def test_one_is_one() -> None:
    assert count(Counted(), lambda attempt: 1) == 1


def test_what_others_do_in_between_does_not_fail_it() -> None:
    assert count(Counted(), lambda attempt: 4 if attempt < 2 else 1) == 3


def test_two_each_time_fail() -> None:
    with pytest.raises(Failed, match="2 instead of 1, in 5 attempts"):
        count(Counted(), lambda attempt: 2)


def test_zero_can_be_wanted() -> None:
    assert count(Counted(), lambda attempt: 0, expected=0) == 1
    with pytest.raises(Failed, match="1 instead of 0"):
        count(Counted(), lambda attempt: 1, expected=0)


def test_where_it_never_stands_still_nothing_is_counted() -> None:
    def grow(counted: Counted) -> None:
        counted.value += 1

    with pytest.raises(NotPossible, match="others are writing"):
        count(Counted(on_look=grow), lambda attempt: 1)


def test_a_counter_elsewhere() -> None:
    with pytest.raises(NotPossible, match="another process"):
        count(Counted(), lambda attempt: 0)
    with pytest.raises(NotPossible, match="effect admin"):
        count(Counted(is_visible=False), lambda attempt: 1)
