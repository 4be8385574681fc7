"""Counts what an action makes the server do, although others may be using it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from zibaldone.canary.check import Bench, Failed, NotPossible
from zibaldone.limits import CANARY_COUNT_TRIES, CANARY_QUIET_SECONDS

EMBEDDED = "zibaldone_embedded_chunks_total"
DEALT_WITH = "zibaldone_index_changes_total"


async def require_count(
    bench: Bench, counter: str, expected: int, action: Callable[[int], Awaitable[None]]
) -> None:
    """Do `action` (it is given the number of the attempt) until it counts as `expected`.

    A counter goes up for everybody's writes, so an attempt begins when it stands still, and one
    with another count is repeated: what others did in between is not there each time.
    """
    counts: list[float] = []
    for attempt in range(CANARY_COUNT_TRIES):
        before = await _count(bench, counter)
        await asyncio.sleep(CANARY_QUIET_SECONDS)
        if await _count(bench, counter) != before:
            continue
        await action(attempt)
        counts.append(await _count(bench, counter) - before)
        if counts[-1] == expected:
            return
    if not counts:
        raise NotPossible("others are writing all the time, so nothing can be counted")
    if not any(counts):
        raise NotPossible("another process makes the vectors, and its counters are not seen here")
    raise Failed(f"{min(counts):g} instead of {expected}, in {len(counts)} attempts")


async def _count(bench: Bench, counter: str) -> float:
    counters = await bench.deployment.counters()
    if counters is None:
        raise NotPossible("the key may not read /metrics: it lacks the effect admin")
    return counters.get(counter, 0.0)
