"""Requests of a key in a minute, on a clock that the tests turn."""

from __future__ import annotations

import pytest

from zibaldone.errors import RateLimited
from zibaldone.web import rate
from zibaldone.web.rate import Rate


class Time:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(rate, "time", made)
    return made


def test_it_fills_again_evenly(clock: Time) -> None:
    bounded = Rate(60)
    for _ in range(60):
        bounded.count("a")
    with pytest.raises(RateLimited) as refusal:
        bounded.count("a")
    assert refusal.value.details == {"retry_after": 1}
    clock.now_s += 1
    bounded.count("a")
    with pytest.raises(RateLimited):
        bounded.count("a")
    clock.now_s += 3_600
    bounded.count("a", 60)
    with pytest.raises(RateLimited) as refusal:
        bounded.count("a", 30)
    assert refusal.value.details == {"retry_after": 30}


def test_what_is_refused_is_not_counted(clock: Time) -> None:
    bounded = Rate(6)
    bounded.count("a", 6)
    for _ in range(100):
        with pytest.raises(RateLimited):
            bounded.count("a")
    clock.now_s += 10
    bounded.count("a")


def test_keys_that_are_quiet_are_forgotten(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "_KEYS_KNOWN_MAX", 10)
    bounded = Rate(60)
    for number in range(10):
        bounded.count(f"quiet {number}")
    clock.now_s += 60
    bounded.count("a", 60)
    assert len(bounded._used) == 1
    with pytest.raises(RateLimited):
        bounded.count("a")


def test_off(clock: Time) -> None:
    Rate(None).count("a", 1_000_000)
    assert clock
