"""Vectors by their index: when there is one, what it finds, and that nobody waits for its build."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

import numpy as np
import psycopg
import pytest

from tests.drivers.postgres import databases
from tests.store.backends import Postgres
from tests.store.contract.test_filtered_recall import clustered
from tests.store.kept import Kept
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.model.vector import Vectors
from zibaldone.store.port import Scored
from zibaldone.store.postgres import vector_indexes, vectors
from zibaldone.store.postgres.store import PostgresStore
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.chunk import Chunk

MODEL = "model/of/this/test"
ROWS = clustered(3_000)
HANG_SECONDS_MAX = 60.0


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few thousand vectors are many."""
    monkeypatch.setattr(vector_indexes, "VECTORS_MIN", 1_000)
    monkeypatch.setattr(vectors, "_COMPARED_MAX", 400)


def fill(kept: Kept, tables: Postgres, rows: Vectors = ROWS) -> list[int]:
    """Documents with a tenth, four tenths and half of the vectors; the keys of their chunks."""
    cuts = [0, len(rows) // 10, len(rows) // 2, len(rows)]
    for tag, start, end in zip(("tenth", "four", "half"), cuts[:-1], cuts[1:], strict=True):
        document = kept.create(tag, "", tags=(tag,))
        chunks = [Chunk(n, n, n + 1, "", f"c{n}") for n in range(end - start)]
        kept.put_chunks(document, chunks)
    found = tables.query("SELECT chunk_key FROM chunks ORDER BY document_key, chunk_index")
    keys = [key for (key,) in found]
    put(kept, MODEL, keys, rows)
    return keys


def put(kept: Kept, model: str, keys: list[int], rows: Vectors) -> int:
    def work(work: Upkeep) -> int:
        model_id = work.models.id(model, rows.shape[1], 0)
        work.vectors.put(model_id, keys, rows)
        return model_id

    return kept.upkeep(work)


def nearest(
    kept: Kept, query: Vectors, k: int = 10, wanted: Filter = NO_FILTER, model: str = MODEL
) -> list[Scored]:
    return kept.read(lambda reader: reader.vectors.search(model, query, k, wanted))


def prepare(kept: Kept) -> None:
    asyncio.run(kept.store.prepare_model(MODEL))


def indexes(tables: Postgres) -> dict[str, bool]:
    """Of vectors, and whether each can be used."""
    return dict(
        tables.query(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = indexrelid "
            "WHERE c.relname LIKE 'vectors_nearest_%'"
        )
    )


def scans(tables: Postgres) -> int:
    tables.query("SELECT pg_stat_force_next_flush()")
    ((count,),) = tables.query(
        "SELECT coalesce(sum(idx_scan), 0)::int FROM pg_stat_all_indexes "
        "WHERE indexrelname LIKE 'vectors_nearest_%'"
    )
    return int(count)


def recall(kept: Kept, keys: list[int], wanted: Filter, passing: slice) -> float:
    right = 0
    queries = ROWS[:: len(ROWS) // 25][:25]
    own, rows = np.array(keys)[passing], ROWS[passing]
    for query in queries:
        hits = nearest(kept, query, 10, wanted)
        assert len(hits) == 10
        assert [score for _, score in hits] == sorted((s for _, s in hits), reverse=True)
        right += len({key for key, _ in hits} & set(own[np.argsort(-(rows @ query))[:10]]))
    return right / 250


def test_many_vectors_are_found_by_an_index(kept: Kept, tables: Postgres) -> None:
    keys = fill(kept, tables)
    assert nearest(kept, ROWS[5])[0][0] == keys[5], "without an index all are compared"
    assert indexes(tables) == {}
    prepare(kept)
    assert list(indexes(tables).values()) == [True]
    before = scans(tables)
    assert recall(kept, keys, NO_FILTER, slice(None)) >= 0.98
    half = Filter(tags_any=("half",))
    assert recall(kept, keys, half, slice(len(ROWS) // 2, None)) >= 0.95
    kept.store.close()  # sends its counts
    assert scans(tables) >= before + 50


def test_what_a_filter_leaves_is_compared_if_it_is_little(kept: Kept, tables: Postgres) -> None:
    keys = fill(kept, tables)
    prepare(kept)
    tables.execute("ANALYZE")
    before = scans(tables)
    tenth = Filter(tags_any=("tenth",))
    assert recall(kept, keys, tenth, slice(0, len(ROWS) // 10)) == 1
    kept.store.close()
    assert scans(tables) == before


def test_what_is_far_away_is_found_if_nothing_else_passes(
    kept: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index gives up before it comes there."""
    monkeypatch.setattr(vectors, "_LOOKED_AT_MAX", 50)
    monkeypatch.setattr(vectors, "_LIST_MAX", 40)
    query = ROWS[0]
    order = np.argsort(ROWS @ query)
    fill(kept, tables, ROWS[order[::-1]])  # the second half is far from the query
    prepare(kept)
    hits = nearest(kept, query, 500, Filter(tags_any=("half",)))
    expected = np.sort(ROWS @ query)[: len(ROWS) // 2][::-1][:500]
    assert [score for _, score in hits] == pytest.approx(expected.tolist(), abs=0.001)


def test_few_vectors_get_no_index(kept: Kept, tables: Postgres) -> None:
    fill(kept, tables, ROWS[:900])
    prepare(kept)
    assert indexes(tables) == {}


def test_an_index_is_built_when_vectors_have_become_many(
    kept: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_indexes, "_PAUSE_SECONDS", 0.1)
    fill(kept, tables)
    until_s = time.monotonic() + HANG_SECONDS_MAX
    while list(indexes(tables).values()) != [True]:
        assert time.monotonic() < until_s
        time.sleep(0.1)


@pytest.fixture
def old_snapshot(tables: Postgres, kept: Kept) -> Iterator[psycopg.Connection]:
    """A transaction that an index build has to wait for."""
    del kept
    with psycopg.connect(tables._places()["admin_url"]) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM zibaldone.vectors")
        yield connection


def start_building(kept: Kept) -> threading.Thread:
    def build() -> None:
        with suppress(ZibaldoneError):  # it may be cancelled
            prepare(kept)

    thread = threading.Thread(target=build, daemon=True)
    thread.start()
    return thread


def wait_for_build(tables: Postgres) -> None:
    until_s = time.monotonic() + HANG_SECONDS_MAX
    while not indexes(tables):
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_reads_and_writes_go_on_while_an_index_is_built(
    kept: Kept, tables: Postgres, old_snapshot: psycopg.Connection
) -> None:
    keys = fill(kept, tables)
    building = start_building(kept)
    wait_for_build(tables)
    assert nearest(kept, ROWS[7])[0][0] == keys[7]
    document = kept.create("meanwhile", "")
    kept.put_chunks(document, [Chunk(0, 0, 1, "", "text")])
    ((new,),) = tables.query("SELECT max(chunk_key) FROM chunks")
    far = -ROWS[7:8]
    put(kept, MODEL, [new], far)
    kept.delete("tenth")
    assert building.is_alive()
    assert list(indexes(tables).values()) == [False]
    assert asyncio.run(kept.store.check()).ok, "a build that runs is no damage"
    # Another server that starts now leaves it alone.
    second = Kept(tables.open(Limits()), Limits())
    prepare(second)
    second.store.close()
    assert building.is_alive()
    old_snapshot.rollback()
    building.join(HANG_SECONDS_MAX)
    assert list(indexes(tables).values()) == [True]
    assert nearest(kept, far[0])[0][0] == new
    assert nearest(kept, ROWS[7])[0][0] != keys[7]


def test_what_a_build_left_that_was_cut_short_is_replaced(
    kept: Kept, tables: Postgres, old_snapshot: psycopg.Connection
) -> None:
    fill(kept, tables)
    building = start_building(kept)
    wait_for_build(tables)
    cast("PostgresStore", kept.store)._indexes.cancel()
    building.join(HANG_SECONDS_MAX)
    assert list(indexes(tables).values()) == [False]
    assert not asyncio.run(kept.store.check()).ok
    old_snapshot.rollback()
    prepare(kept)
    assert list(indexes(tables).values()) == [True]
    assert asyncio.run(kept.store.check()).ok


def test_a_store_that_is_closed_ends_a_build(
    tables: Postgres, kept: Kept, old_snapshot: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    del old_snapshot
    monkeypatch.setattr(vector_indexes, "_PAUSE_SECONDS", 0.1)
    fill(kept, tables)
    wait_for_build(tables)
    kept.store.close()
    assert list(indexes(tables).values()) == [False]


def test_the_vectors_of_the_old_model_serve_until_the_new_ones_are_there(
    kept: Kept, tables: Postgres
) -> None:
    keys = fill(kept, tables)
    prepare(kept)
    old_id = put(kept, MODEL, [], ROWS[:0])
    other = clustered(3_000)[::-1, :20] * np.float32(3)
    other = other / np.linalg.norm(other, axis=1, keepdims=True)
    put(kept, "newer", keys[:500], other[:500])
    assert nearest(kept, ROWS[9])[0][0] == keys[9]
    assert nearest(kept, other[3], model="newer")[0][0] == keys[3]
    put(kept, "newer", keys[500:], other[500:])
    prepare(kept)
    assert len(indexes(tables)) == 2
    assert nearest(kept, other[-3], model="newer")[0][0] == keys[-3]
    assert nearest(kept, ROWS[9])[0][0] == keys[9]
    while kept.upkeep(lambda work: work.vectors.drop(old_id, 1_000)):
        pass
    prepare(kept)
    assert len(indexes(tables)) == 1
    assert nearest(kept, ROWS[9]) == []
    assert nearest(kept, other[-3], model="newer")[0][0] == keys[-3]


def test_pgvector_may_be_in_any_schema(tables: Postgres) -> None:
    name = databases().create(empty=True)
    try:
        with psycopg.connect(databases().admin_url(name), autocommit=True) as connection:
            connection.execute("DROP EXTENSION vector")
            connection.execute('CREATE SCHEMA "the extensions"')
            connection.execute('CREATE EXTENSION vector SCHEMA "the extensions"')
            connection.execute('GRANT USAGE ON SCHEMA "the extensions" TO PUBLIC')
        store = PostgresStore(databases().url(name), Limits())
        kept = Kept(store, Limits())
        try:
            for number in range(3):
                kept.create(f"d/{number}", f"zebra {number}")
            kept.index()
            assert len(kept.nearest("zebra 1")) == 3
            document = kept.create("many", "")
            kept.put_chunks(document, [Chunk(n, n, n + 1, "", f"c{n}") for n in range(1_200)])
            stored = kept.write(lambda writer: writer.chunks.stored(document))
            put(kept, MODEL, [chunk.chunk_key for chunk in stored], ROWS[:1_200])
            prepare(kept)
            hits = nearest(kept, ROWS[77])
            assert hits[0][0] == stored[77].chunk_key
        finally:
            store.close()
    finally:
        databases().drop(name)


def test_a_vector_is_not_put_on_a_chunk_that_somebody_is_removing(
    kept: Kept, tables: Postgres
) -> None:
    """It is left out at once: to wait for its writer would hold up everybody's vectors."""
    document = kept.create("d", "")
    kept.put_chunks(document, [Chunk(0, 0, 1, "", "text")])
    ((key,),) = tables.query("SELECT chunk_key FROM chunks")
    with psycopg.connect(tables._places()["admin_url"]) as remover:
        remover.execute("DELETE FROM zibaldone.chunks")
        thread = threading.Thread(target=put, args=(kept, MODEL, [key], ROWS[:1]))
        thread.start()
        thread.join(HANG_SECONDS_MAX)
        assert not thread.is_alive()
        remover.commit()
    assert tables.query("SELECT count(*) FROM vectors") == [(0,)]
