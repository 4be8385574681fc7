from __future__ import annotations

import pytest

from zibaldone.access import presence
from zibaldone.access.presence import Presence


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(presence, "time", clock)
    return clock


def test_who_is_alone_has_no_others(clock: Clock) -> None:
    callers = Presence()
    assert not callers.has_others("a")
    callers.note("a")
    clock.now_s += 1
    callers.note("a")
    assert not callers.has_others("a")
    assert callers.has_others("b")


def test_others_are_about_for_two_seconds_after_their_last_request(clock: Clock) -> None:
    callers = Presence()
    callers.note("b")
    clock.now_s += 1.5
    callers.note("a")
    assert callers.has_others("a")
    assert callers.has_others("b")
    clock.now_s += 1
    callers.note("a")
    assert not callers.has_others("a")
    assert callers.has_others("b")


def test_who_began_long_ago_has_those_beside_them_who_begin_again_and_again(clock: Clock) -> None:
    callers = Presence()
    callers.note("a")
    for _ in range(5):
        clock.now_s += 1
        callers.note("b")
    assert callers.has_others("a")
    assert not callers.has_others("b")
