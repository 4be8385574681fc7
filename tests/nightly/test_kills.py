"""The short form of `make kills`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.nightly.kills import Tally, storm

KILLS = 12


@pytest.mark.timeout(240)
def test_a_short_storm_loses_nothing(tmp_path: Path) -> None:
    tally = asyncio.run(storm(KILLS, 120, seed=1, folder=tmp_path, tally=Tally()))
    assert tally.problems == []
    assert (tally.lost, tally.partial, tally.doubled, tally.parked) == (0, 0, 0, 0)
    assert tally.lives == KILLS
    assert tally.acknowledged > KILLS
