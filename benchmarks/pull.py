"""Syncs against a plain SELECT over the same driver, in the same run and without embedding.

    python -m benchmarks.pull [--rows 100000] [--databases sqlite,mariadb,postgres]
        [--refetches 300] [--memory-rows 1000000] [--posts FILE]

Rows are those of `tests/drivers/posts.py`. `--memory-rows` measures the memory of a first sync and
of one without changes, in a process of its own, from an SQLite file of so many small rows.
`--posts` is an SQLite file with real `posts_…` tables, pulled as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.drivers.posts import Posts
from tests.pull.databases import (
    DATABASES,
    Database,
    MariaDb,
    SqliteFile,
    create_posts,
    insert_posts,
    update_posts,
)

from benchmarks.report import percentile
from zibaldone.keep.pulled import PulledDocuments
from zibaldone.keep.writing import Preparation
from zibaldone.limits import Limits
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.connect import open_source
from zibaldone.pull.propose import proposal
from zibaldone.pull.refetch import refetch
from zibaldone.pull.sync import SyncResult, sync
from zibaldone.store.open import open_store

_DOCUMENT = {"title": ["Title"], "body": ["Body"], "tags": "Tags", "created": "CreationDate"}
_ROUNDS = 5
_FIRST_SOURCE_ID = 2


class Bench:
    def __init__(
        self, folder: Path, definition: SourceDefinition, source_id: int | None = None
    ) -> None:
        self.limits = Limits()
        self.store = open_store(str(folder / "store" / "zibaldone.db"), self.limits)
        self._preparation = Preparation()
        self._destination = PulledDocuments(self.store, self._preparation, self.limits)
        self.definition = definition
        self._loop = asyncio.new_event_loop()
        self.source_id = source_id or self._loop.run_until_complete(
            self.store.upkeep(
                lambda upkeep: upkeep.sources.add(
                    "default", definition.name, "pulled", definition.stored(), at_us=1
                )
            )
        )

    def sync(self, **options: Any) -> SyncResult:
        return self._loop.run_until_complete(
            sync(self.store, self._destination, self.source_id, self.definition, **options)
        )

    def refetch(self, number: int) -> None:
        self._loop.run_until_complete(refetch(self.definition, [{"Id": number}]))

    def close(self) -> None:
        self._preparation.close()
        self.store.close()
        self._loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--databases", default="sqlite,mariadb,postgres")
    parser.add_argument("--refetches", type=int, default=300)
    parser.add_argument("--memory-rows", type=int, default=0)
    parser.add_argument("--posts", type=Path)
    parser.add_argument("--memory-child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory_child:
        _memory_child(*given.memory_child)
        return
    for name in filter(None, given.databases.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            _measure(name, Path(folder), given.rows, given.refetches)
    if given.memory_rows:
        with tempfile.TemporaryDirectory() as folder:
            _measure_memory(Path(folder), given.memory_rows)
    if given.posts:
        _real_posts(given.posts)


def _measure(name: str, folder: Path, rows: int, refetches: int) -> None:
    database = DATABASES[name](folder)
    posts = Posts()
    create_posts(database)
    insert_posts(database, posts.add(rows))
    values = {"url": database.url, "table": "posts", "key": "Id", "watermark": "UpdatedAt"}
    definition = SourceDefinition.from_table("posts", {**values, "document": _DOCUMENT})
    bench = Bench(folder, definition)
    try:
        plain = _plain(definition, "SELECT * FROM posts ORDER BY {Id}", database)
        _say(name, "SELECT *", rows, plain)
        first = _timed(bench.sync)
        _say(name, "first sync", rows, first, plain)
        fulls, lights, plains, floors = [], [], [], []
        for _ in range(_ROUNDS):
            plains.append(_plain(definition, "SELECT * FROM posts ORDER BY {Id}", database))
            fulls.append(_timed(lambda: bench.sync(is_full=True)))
            floors.append(
                _plain(definition, "SELECT {Id}, {UpdatedAt} FROM posts ORDER BY {Id}", database)
            )
            lights.append(_timed(bench.sync))
        _say(name, "full sync, no change", rows, _best(fulls), _best(plains))
        _say(name, "SELECT key, watermark", rows, _best(floors))
        _say(name, "sync, no change", rows, _best(lights), _best(floors))
        update_posts(database, posts.edit(rows // 100))
        _say(name, "sync after edits of 1 %", rows, _timed(bench.sync), _best(floors))
        _refetches(name, bench, database, sorted(posts.rows)[: refetches or 1], refetches)
    finally:
        bench.close()
        database.close()


def _plain(definition: SourceDefinition, sql: str, database: Database) -> Taken:
    """Every row of a statement, by a driver's own server-side cursor."""
    quote = "`" if isinstance(database, MariaDb) else '"'
    statement = sql.replace("{", quote).replace("}", quote)
    with open_source(definition, {}, is_stream=True) as connection:
        import sqlalchemy

        def read() -> None:
            stream = connection.stream(sqlalchemy.text(statement))
            while stream.fetch(1_000):
                pass
            stream.close()

        return _timed(read)


def _refetches(name: str, bench: Bench, database: Database, numbers: list[int], count: int) -> None:
    ours, bare = [], []
    for number in numbers[:count]:
        started_s = time.perf_counter()
        bench.refetch(number)
        ours.append((time.perf_counter() - started_s) * 1_000)
        started_s = time.perf_counter()
        database.execute('SELECT * FROM "posts" WHERE "Id" = %s', [number])
        bare.append((time.perf_counter() - started_s) * 1_000)
    if ours:
        ours.sort()
        bare.sort()
        print(
            f"{name}: refetch p50 {percentile(ours, 50):.2f} ms, p95 {percentile(ours, 95):.2f} ms;"
            f" bare SELECT by key on an open connection p95 {percentile(bare, 95):.2f} ms",
            flush=True,
        )


@dataclass(frozen=True, slots=True)
class Taken:
    seconds: float
    cpu_seconds: float
    """Of this process: a busy machine makes the others longer, not these."""


def _timed(work: Callable[[], object]) -> Taken:
    started_s, cpu_s = time.perf_counter(), time.process_time()
    work()
    return Taken(time.perf_counter() - started_s, time.process_time() - cpu_s)


def _best(taken: list[Taken]) -> Taken:
    return Taken(min(one.seconds for one in taken), min(one.cpu_seconds for one in taken))


def _say(name: str, what: str, rows: int, taken: Taken, against: Taken | None = None) -> None:
    ratio = ""
    if against is not None:
        ratio = (
            f"; {against.seconds / taken.seconds:.2f} x by the clock, "
            f"{against.cpu_seconds / taken.cpu_seconds:.2f} x by our CPU"
        )
    print(
        f"{name}: {what}: {rows / taken.seconds:,.0f} rows/s, {taken.seconds:.2f} s, "
        f"CPU {taken.cpu_seconds:.2f} s{ratio}",
        flush=True,
    )


# Memory


def _measure_memory(folder: Path, rows: int) -> None:
    database = SqliteFile(folder)
    database.execute(
        "CREATE TABLE posts (Id INTEGER PRIMARY KEY, Title TEXT, Body TEXT, UpdatedAt TEXT)"
    )
    database.many(
        "INSERT INTO posts VALUES (%s, %s, %s, %s)",
        (
            (number, f"row {number}", f"<p>text of row {number}</p>", "2020-01-01 00:00:00")
            for number in range(1, rows + 1)
        ),
    )
    for what in ("first", "again"):
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.pull", "--memory-child", str(folder), what],
            capture_output=True,
            check=True,
            text=True,
        )
        found = json.loads(child.stdout)
        print(
            f"memory, {rows:,} rows, {what}: {found['before_mb']:.0f} MB before, "
            f"{found['peak_mb']:.0f} MB at most, {found['seconds']:.0f} s, "
            f"samples {found['samples_mb']}",
            flush=True,
        )
    database.close()


def _memory_child(folder: str, what: str) -> None:
    file = Path(folder) / "source's file.db"
    values = {
        "url": f"sqlite:///{file}",
        "table": "posts",
        "key": "Id",
        "watermark": "UpdatedAt",
        "document": {"title": ["Title"], "body": ["Body"]},
    }
    definition = SourceDefinition.from_table("posts", values)
    before_mb = _resident_mb()
    samples: list[float] = []

    async def told(done: int, total: int | None) -> None:
        del total
        if done // 100_000 >= len(samples):
            samples.append(round(_resident_mb()))

    bench = Bench(Path(folder), definition, None if what == "first" else _FIRST_SOURCE_ID)
    seconds = _timed(lambda: bench.sync(on_progress=told)).seconds
    bench.close()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {"before_mb": before_mb, "peak_mb": peak_mb, "seconds": seconds, "samples_mb": samples}
        )
    )


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


# Real posts


def _real_posts(file: Path) -> None:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as raw:
        tables = [
            row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
    for table in tables:
        with tempfile.TemporaryDirectory() as folder:
            definition = proposal(f"sqlite:///{file}", table, table)
            bench = Bench(Path(folder), definition)
            first, again = bench.sync(), bench.sync()
            bench.close()
        rate = statistics.fmean([first.rows / first.seconds])
        print(
            f"{table}: {first.created} created, {first.failed} failed, {rate:,.0f} rows/s; again: "
            f"{again.unchanged} unchanged, {again.rows / again.seconds:,.0f} rows/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
