"""Whatever happens to a table, and wherever a sync is cut short: the documents become its rows."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.posts import Posts, expected
from tests.pull.databases import (
    DATABASES,
    SqliteFile,
    create_posts,
    delete_posts,
    insert_posts,
    update_posts,
)
from tests.pull.pulling import Pulling, counts
from tests.store.backends import BACKENDS, Backend
from zibaldone.errors import Conflict, StorageUnavailable
from zibaldone.keep.pulled import Pair, PulledDocuments, Run
from zibaldone.keep.writing import Preparation
from zibaldone.limits import PREPARE_INLINE_CHARS_MAX, Limits
from zibaldone.model.incoming import Imported
from zibaldone.store.open import open_store


class CutShort:
    """A destination whose transactions fail from some number on, before they happen or after."""

    def __init__(self, destination: Any) -> None:
        self._destination = destination
        self.left = 10**9
        self.is_after = False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._destination, name)

        async def cut_short(*arguments: Any) -> Any:
            self.left -= 1
            if self.left < 0 and not self.is_after:
                raise StorageUnavailable("cut short")
            result = await call(*arguments)
            if self.left < 0:
                raise StorageUnavailable("cut short")
            return result

        return cut_short


@pytest.mark.parametrize("watermark", ["UpdatedAt", ""])
@pytest.mark.parametrize(
    ("source", "engine", "seeds"),
    [
        ("sqlite", "sqlite", range(6)),
        ("sqlite", "postgres", range(2)),
        ("mariadb", "sqlite", range(2)),
        ("postgres", "sqlite", range(2)),
    ],
)
def test_any_history(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    engine: str,
    seeds: range,
    watermark: str,
) -> None:
    monkeypatch.setattr("zibaldone.pull.rows.SYNC_BLOCK_ROWS", 8)
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        database = DATABASES[source](folder)
        backend = BACKENDS[engine](folder)
        store = backend.open(Limits())
        pulling = Pulling(store, database)
        try:
            _live(pulling, random.Random(seed), watermark)
        finally:
            pulling.close()
            store.close()
            backend.close()
            database.close()


def _live(pulling: Pulling, chance: random.Random, watermark: str) -> None:
    posts = Posts(seed=chance.randint(0, 10**9))
    database = pulling.database
    destination = CutShort(pulling.destination)
    pulling.destination = destination  # type: ignore[assignment]
    create_posts(database)
    definition = pulling.define(watermark=watermark, delete_share_max=1.0)
    for _ in range(14):
        for _ in range(chance.randint(0, 4)):
            _change(database, posts, chance)
        # An edit that is taken back before the next sync must not be kept by a block of before.
        undone = [dict(post.values) for post in posts.rows.values()][:3]
        destination.left, destination.is_after = 10**9, chance.random() < 0.5
        if chance.random() < 0.5:
            destination.left = chance.randint(0, 12)
        if chance.random() < 0.3 and undone:
            database.execute('UPDATE "posts" SET "Title" = \'undone\', "UpdatedAt" = NULL')
            _try(pulling, definition)
            for values in posts.rows.values():
                update_posts(database, [values])
            destination.left = 10**9
        is_full = chance.random() < 0.2
        if not _try(pulling, definition, is_full=is_full):
            continue
        wanted = expected(posts, has_native_times=database.has_native_times)
        assert pulling.contents() == wanted
        revisions = pulling.revisions()
        destination.left = 10**9
        again = pulling.sync(definition)
        assert counts(again) == (0, 0, 0, len(posts.rows), 0)
        assert pulling.revisions() == revisions


def _try(pulling: Pulling, definition: Any, **options: Any) -> bool:
    try:
        pulling.sync(definition, **options)
    except StorageUnavailable:
        return False
    return True


def _change(database: Any, posts: Posts, chance: random.Random) -> None:
    match chance.randint(0, 5):
        case 0 | 1:
            insert_posts(database, posts.add(chance.randint(1, 20)))
        case 2:
            insert_posts(database, posts.insert_between(chance.randint(1, 6)))
        case 3:
            update_posts(database, posts.edit(chance.randint(1, 8)))
        case 4:
            delete_posts(database, posts.delete(chance.randint(1, 10)))
        case 5:
            insert_posts(database, posts.add(3, has_watermark=False))


_RUN = """
import asyncio, sys
from zibaldone.keep.pulled import PulledDocuments
from zibaldone.keep.writing import Preparation
from zibaldone.limits import Limits
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.sync import sync
from zibaldone.store.open import open_store
import orjson
url, source_id, definition = sys.argv[1:]
store = open_store(url, Limits())
read = SourceDefinition.from_table("posts", orjson.loads(definition))
async def main():
    async def told(done, total):
        print(done, flush=True)
    destination = PulledDocuments(store, Preparation(), Limits())
    await sync(store, destination, int(source_id), read, on_progress=told)
asyncio.run(main())
"""


@pytest.mark.parametrize("engine", BACKENDS)
@pytest.mark.timeout(400)
def test_killed_in_the_middle_and_begun_again(tmp_path: Path, engine: str) -> None:
    import orjson

    posts = Posts()
    database = SqliteFile(tmp_path)
    create_posts(database)
    insert_posts(database, posts.add(2_500))
    backend: Backend = BACKENDS[engine](tmp_path)
    store = backend.open(Limits())
    pulling = Pulling(store, database)
    definition = pulling.define(watermark="UpdatedAt")
    source_id = pulling.add(definition)
    kills = 0
    for seconds in (0.0, 0.3, 0.15):
        kills += _kill_after(backend.url, source_id, orjson.dumps(definition.as_dict()), seconds)
        assert len(pulling.documents()) > 0
    assert kills, "at least one was killed while it ran"
    before = pulling.revisions()
    result = pulling.sync(definition)
    assert (result.updated, result.deleted, result.failed) == (0, 0, 0)
    assert result.created == 2_500 - len(before)
    assert pulling.contents() == expected(posts, has_native_times=False)
    assert set(pulling.revisions().values()) == {1}, "nothing was stored twice"
    jobs = backend.query(
        "SELECT count(*), count(DISTINCT subject) FROM jobs WHERE kind = 'vectors'"
    )
    assert jobs == [(2_500, 2_500)], "each is embedded once"
    pulling.close()
    store.close()
    backend.close()
    database.close()


def _kill_after(url: str, source_id: int, definition: bytes, seconds: float) -> bool:
    """Run a sync in a process and kill it some time after it stored its first rows."""
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, url, str(source_id), definition.decode()],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    with process, process.stdout as told:
        told.readline()
        time.sleep(seconds)
        is_running = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    return is_running


def test_a_run_that_was_overtaken_stops(tmp_path: Path) -> None:
    """A process that slept while another one took over its job must not write any more."""
    import asyncio

    from zibaldone.access.principal import Tenant

    posts = Posts()
    database = SqliteFile(tmp_path)
    create_posts(database)
    insert_posts(database, posts.add(2_500))
    store = open_store(str(tmp_path / "zibaldone.db"), Limits())
    pulling = Pulling(store, database)
    definition = pulling.define(watermark="UpdatedAt")
    source_id = pulling.add(definition)

    async def overtake(done: int, total: int | None) -> None:
        del total
        if 0 < done < 2_000:
            last = await store.read(Tenant(), lambda reader: reader.pulled.last_run(source_id))
            assert last is not None
            number = last.run + 1
            await store.write(Tenant(), lambda writer: writer.pulled.begin(source_id, number))

    with pytest.raises(Conflict, match="Another sync"):
        asyncio.run(pulling.start(definition, source_id, on_progress=overtake))
    assert pulling.sync(definition).failed == 0
    assert pulling.contents() == expected(posts, has_native_times=False)
    pulling.close()
    store.close()
    database.close()


class Overtaken(PulledDocuments):
    """Each time when rows are about to be written, another process begins a run."""

    async def write(self, run: Run, pairs: Sequence[Pair]) -> list[Imported]:
        await self.begin(run.tenant, run.source_id, run.source_name, run.run + 1)
        outcomes = await super().write(run, pairs)
        pytest.fail(f"it went on to further rows: {outcomes}")


def test_a_run_that_was_overtaken_writes_no_long_row(tmp_path: Path) -> None:
    """What is remembered of the row would be the other run's, and would never be compared again."""
    database = SqliteFile(tmp_path)
    create_posts(database)
    (post,) = Posts().add(1)
    post.values["Body"] = "word " * PREPARE_INLINE_CHARS_MAX
    insert_posts(database, [post])
    store = open_store(str(tmp_path / "zibaldone.db"), Limits())
    pulling = Pulling(store, database)
    definition = pulling.define()
    own, preparation = pulling.destination, Preparation()
    pulling.destination = Overtaken(store, preparation, Limits())
    with pytest.raises(Conflict, match="Another sync"):
        pulling.sync(definition)
    assert pulling.documents() == {}
    pulling.destination = own
    assert counts(pulling.sync(definition)) == (1, 0, 0, 0, 0)
    assert counts(pulling.sync(definition)) == (0, 0, 0, 1, 0)
    preparation.close()
    pulling.close()
    store.close()
    database.close()
