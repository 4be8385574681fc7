"""What an acknowledgement costs: writes per second with and without waiting for the disk.

    python -m benchmarks.durability [--quick]

Three ways to commit, in turns on files of their own: as the product does (synchronous FULL: synced
at every commit), NORMAL (synced at checkpoints: a power cut takes the last writes) and OFF (never).
And, as the product does but without sharing: one commit for each write.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from benchmarks.report import Finding, microseconds, paired_ratio, table
from zibaldone.access.principal import Tenant
from zibaldone.keep.commit import Actor
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME
from zibaldone.store.port import Writer
from zibaldone.store.sqlite import write_queue
from zibaldone.store.sqlite.store import SqliteStore

WRITERS = (1, 8, 64)
BODY = ("Of the making of many books there is no end. " * 50)[:2_000]
_LIMITS = Limits()
_ACTOR = Actor("benchmark")


@dataclass(slots=True)
class Way:
    name: str
    synchronous: str
    jobs_per_commit_max: int
    store: SqliteStore
    numbers: Iterator[int] = field(default_factory=count)
    per_second: list[float] = field(default_factory=list)


def measure(*, quick: bool) -> list[Finding]:
    rounds, seconds = (3, 0.3) if quick else (7, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        findings = [_one_sync(Path(folder))]
        shared = write_queue._WRITES_PER_COMMIT_MAX  # noqa: SLF001 - not offered as settings, on purpose
        with (
            _way(Path(folder), "FULL", "FULL", shared) as ours,
            _way(Path(folder), "NORMAL", "NORMAL", shared) as normal,
            _way(Path(folder), "OFF", "OFF", shared) as off,
            _way(Path(folder), "FULL, not shared", "FULL", 1) as alone,
        ):
            for writers in WRITERS:
                for _ in range(rounds):
                    for way in (ours, normal, off, alone):
                        way.per_second.append(_stretch(way, writers, seconds))
                findings += [_compared(writers, ours, other) for other in (normal, off, alone)]
                for way in (ours, normal, off, alone):
                    way.per_second.clear()
    return findings


@contextmanager
def _way(folder: Path, name: str, synchronous: str, jobs_per_commit_max: int) -> Iterator[Way]:
    store = SqliteStore(folder / name / DATABASE_NAME, _LIMITS)
    raw = store._writer._connection.raw  # noqa: SLF001
    raw.execute(f"PRAGMA synchronous = {synchronous}").fetchall()
    try:
        yield Way(name, synchronous, jobs_per_commit_max, store)
    finally:
        store.close()


def _stretch(way: Way, writers: int, seconds: float) -> float:
    """Documents acknowledged in a second, by writers that each wait for one before the next."""
    write_queue._WRITES_PER_COMMIT_MAX = way.jobs_per_commit_max  # noqa: SLF001
    started_s = time.perf_counter()
    done = 0

    def work(one: Writer) -> None:
        create(one, NewDocument(f"notes/{next(way.numbers)}", BODY), _ACTOR, _LIMITS)

    async def write() -> None:
        nonlocal done
        while time.perf_counter() - started_s < seconds:
            await way.store.write(Tenant(), work)
            done += 1

    async def all_of_them() -> None:
        await asyncio.gather(*(write() for _ in range(writers)))

    asyncio.run(all_of_them())
    return done / (time.perf_counter() - started_s)


def _compared(writers: int, ours: Way, other: Way) -> Finding:
    return Finding(
        f"{writers} writer{'s' if writers > 1 else ''}: documents per second",
        f"{statistics.median(ours.per_second):.0f}",
        f"{statistics.median(other.per_second):.0f} ({other.name})",
        paired_ratio(ours.per_second, other.per_second),
    )


def _one_sync(folder: Path) -> Finding:
    """What this disk takes to say that 4 KB are safe; some say so before they are."""
    times_us = []
    descriptor = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(200):
            os.write(descriptor, bytes(4096))
            started_s = time.perf_counter()
            os.fsync(descriptor)
            times_us.append((time.perf_counter() - started_s) * 1e6)
    finally:
        os.close(descriptor)
    return Finding("one fsync of 4 KB, p50", microseconds(statistics.median(times_us)), "")


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
