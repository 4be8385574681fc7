"""The measurement of freshness measures: each write is found, and each becomes ready."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.freshness import measure, report

from tests.drivers.engines import backend_of
from tests.drivers.index_state import assert_in_step
from tests.drivers.server import Server
from zibaldone.embed.hashed import Hashed

P95_SECONDS, P99_SECONDS = 5.0, 15.0
"""What the seed allows at ten writes a second."""
TIMES = 4
"""On a machine that does other things too. Its own figures are those of `benchmarks.freshness`."""


@pytest.mark.requirement("C6", "X-14", "000/CC.02")
def test_writes_in_quick_succession_are_all_found_and_all_become_ready(data: Path) -> None:
    """The seed's five minutes at ten a second are the benchmark's to tell."""
    with Server(data, environment={"ZIBALDONE_EMBEDDER": "hashed"}) as server:
        found = measure(server.url, rate=25, seconds=2)
    assert found.written == 50
    assert found.not_found == 0
    assert len(found.ready_seconds) == found.written
    assert found.p(95) < TIMES * P95_SECONDS
    assert found.p(99) < TIMES * P99_SECONDS
    assert "50 writes" in report(found, 25)
    assert_in_step(backend_of(data), Hashed())
