"""PostgreSQL against the embedded engine, on the same rows and in the same run.

    python -m benchmarks.postgres --postgres URL [--chunks 5000,1000000] [--queries 100]
        [--store DIR]

URL is that of a role that may create databases: `zibaldone_bench_<size>` is made for each size and
stays there. Ten chunks make a document. The embedded store is filled as `benchmarks.search` does,
and its rows are copied by COPY: embedding and writing a million passages would take hours and is
not what is measured. Postings and the index of the vectors are made by the engine itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.report import percentile
from benchmarks.search import (
    DIMENSIONS,
    PER_DOCUMENT,
    TAGS,
    Corpus,
    K,
    Known,
    Measured,
    Tools,
    by_vector,
    exact,
    filled,
    measure_ours,
    recall,
    row_of,
    timed,
)
from benchmarks.servers.process import PostgresProcesses
from zibaldone.access.principal import LOCAL
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url

_DOCUMENT_COLUMNS = (
    "document_key, namespace, document_id, source_id, title, tags, mime, metadata, revision, "
    "content_hash, content_chars, created_at_us, updated_at_us, updated_by, operation, "
    "vector_status"
)
_TABLES = (
    ("documents", _DOCUMENT_COLUMNS, f"SELECT {_DOCUMENT_COLUMNS} FROM documents"),
    (
        "facets",
        "document_key, namespace, created_us",
        "SELECT document_key, 'default', 1 FROM facets",
    ),
    (
        "document_tags",
        "namespace, tag, document_key",
        "SELECT 'default', tag, document_key FROM document_tags",
    ),
)
_WRITES = 300
_WAIT_SECONDS_MAX = 7_200.0
_PAGE = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--chunks", default="5000,1000000")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--store", type=Path, help="keep what was filled there, to use it again")
    given = parser.parse_args()
    print("| chunks | what | p50 ms | p95 ms | recall@10 |\n|---|---|---|---|---|", flush=True)
    urls: dict[int, tuple[str, Corpus]] = {}
    for chunks in map(int, given.chunks.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) if given.store is None else given.store / str(chunks)
            corpus = filled(folder, chunks, given.queries)
            url = _postgres_filled(given.postgres, folder, corpus)
            _compare(chunks, corpus, store_url(folder), url)
            _report_sizes(url, chunks)
            urls[chunks] = (url, corpus)
    _report_lists(urls)
    print(f"load of the machine: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


def _compare(chunks: int, corpus: Corpus, embedded: str, postgres: str) -> None:
    pairs = []
    for engine, url in (("embedded", embedded), ("PostgreSQL", postgres)):
        tools = Tools(url, corpus)
        measured = [_by_tool(tools, engine, *way) for way in _ways(chunks)]
        for found in measured:
            print(found.row(chunks), flush=True)
        if engine == "PostgreSQL":
            _report_floors(tools, postgres, chunks)
        tools.close()
        pairs.append([*measured, *measure_ours(url, corpus, engine)])
        _report_filters(url, corpus, engine)
    _report_cpu(postgres, corpus)
    for ours, theirs in zip(*pairs, strict=True):
        what = ours.name.partition(": ")[2]
        print(
            f"{chunks:,} {what}: PostgreSQL / embedded {theirs.p50_ms / ours.p50_ms:.2f} (p50), "
            f"{theirs.p95_ms / ours.p95_ms:.2f} (p95)"
        )


Way = tuple[str, str, Callable[[int], dict[str, Any]]]


def _ways(chunks: int) -> list[Way]:
    """Writing comes first: what it wrote is read then. All of them run for each engine."""
    chance = random.Random(5)
    run = f"{time.time_ns():x}"
    folders = [f"d/{chance.randrange(chunks // 1000):05d}" for _ in range(_WRITES)]
    words = [[f"w{chance.randrange(200_000)}" for _ in range(120)] for _ in range(_WRITES)]
    return [
        (
            "upload_document",
            "upload_document",
            lambda number: {
                "path": f"written/{run}/{number}/{time.time_ns()}",
                "content": " ".join(words[number % _WRITES]),
            },
        ),
        (
            f"list_documents, {_PAGE} under a prefix",
            "list_documents",
            lambda number: {"prefix": folders[number % _WRITES], "limit": _PAGE},
        ),
        (
            "get_document",
            "get_document",
            lambda number: {"path": f"bench/{number % 100}", "related": False},
        ),
    ]


def _by_tool(
    tools: Tools, engine: str, name: str, tool: str, arguments: Callable[[int], dict[str, Any]]
) -> Measured:
    if tool == "get_document":
        _require_documents(tools)
    ask = tools.ask(tool, arguments)
    for number in range(10 if tool == "upload_document" else _WRITES):
        ask(number)  # what is read was read before: a first read is one of the disk
    taken_ms = []
    for number in range(_WRITES):
        started_s = time.perf_counter()
        ask(number)
        taken_ms.append((time.perf_counter() - started_s) * 1000)
    taken_ms.sort()
    return Measured(f"{engine}: {name}", percentile(taken_ms, 50), percentile(taken_ms, 95))


def _require_documents(tools: Tools) -> None:
    """A hundred documents with bodies; those that were copied have only chunks."""
    create = tools.ask(
        "upload_document",
        lambda number: {"path": f"bench/{number}", "content": "text " * 400, "upsert": True},
    )
    for number in range(100):
        create(number)


def _report_floors(tools: Tools, url: str, chunks: int) -> None:
    """`get_document` beside what it is made of, in turns, so that a busy moment hits all alike.

    The floor is the row and its body by key over one connection, as psycopg does it by itself: no
    transaction, no settings for row-level security, no deadline. The same in a thread is what an
    event loop cannot do without.
    """
    sql = (
        b"SELECT d.*, b.body FROM zibaldone.documents d JOIN zibaldone.bodies b "
        b"USING (document_key) WHERE d.namespace = 'default' AND d.document_id = %s"
    )
    get = tools.ask("get_document", lambda n: {"path": f"bench/{n % 100}", "related": False})
    loop, store = tools.loop, tools.runtime.store
    with (
        psycopg.connect(url, autocommit=True) as raw,
        ThreadPoolExecutor(1) as thread,
    ):
        raw.execute("SET zibaldone.namespace = 'default'")

        def select(number: int) -> object:
            return raw.execute(sql, (f"bench/{number % 100}",)).fetchone()

        def peek(number: int) -> object:
            return loop.run_until_complete(
                store.read(
                    LOCAL.tenant,
                    lambda reader: reader.documents.peek(f"bench/{number % 100}", 500),
                    is_small=True,
                )
            )

        def in_thread(work: Callable[[int], object], number: int) -> object:
            return loop.run_until_complete(loop.run_in_executor(thread, work, number))

        ways: dict[str, Callable[[int], object]] = {
            "a bare SELECT": select,
            "nothing, in a thread": partial(in_thread, lambda _: None),
            "a bare SELECT in a thread": partial(in_thread, select),
            "Store.read of the same": peek,
            "get_document": get,
        }
        taken_ms: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(-50, 10 * _WRITES):
            for name, way in ways.items():
                started_s = time.perf_counter()
                way(number)
                if number >= 0:
                    taken_ms[name].append((time.perf_counter() - started_s) * 1_000)
    floor = sorted(taken_ms["a bare SELECT"])
    for name, values in taken_ms.items():
        values.sort()
        times = ", ".join(f"p{at} {percentile(values, at):.3f}" for at in (10, 50, 95))
        ratios = ", ".join(
            f"{percentile(values, at) / percentile(floor, at):.2f}" for at in (10, 50)
        )
        print(
            f"{chunks:,} {name}: {times} ms; against a bare SELECT {ratios} (p10, p50)", flush=True
        )


def _report_lists(urls: Mapping[int, tuple[str, Corpus]]) -> None:
    """Pages of the same length from stores of different size, in turns."""
    tools = {chunks: Tools(url, corpus) for chunks, (url, corpus) in urls.items()}
    asks = {}
    for chunks, own in tools.items():
        arguments = next(way[2] for way in _ways(chunks) if way[1] == "list_documents")
        asks[chunks] = own.ask("list_documents", arguments)
    taken_ms: dict[int, list[float]] = {chunks: [] for chunks in asks}
    for number in range(-_WRITES, 6 * _WRITES):  # each of them once before it counts
        for chunks, ask in asks.items():
            started_s = time.perf_counter()
            ask(number % _WRITES)
            if number >= 0:
                taken_ms[chunks].append((time.perf_counter() - started_s) * 1_000)
    for own in tools.values():
        own.close()
    smallest = sorted(taken_ms[min(taken_ms)])
    for chunks, values in taken_ms.items():
        values.sort()
        shown = ", ".join(
            f"p{at} {percentile(values, at):.3f} ms "
            f"({percentile(values, at) / percentile(smallest, at):.2f} x the smallest)"
            for at in (10, 50, 90, 95)
        )
        print(f"list_documents of {chunks:,} chunks, in turns: {shown}", flush=True)


def _report_cpu(url: str, corpus: Corpus) -> None:
    """CPU of calls, ours and the server's: what they take where nothing else runs, at least."""
    tools, postgres = Tools(url, corpus), PostgresProcesses(url)
    chunks, count = len(corpus.vectors), len(corpus.queries)
    lists = next(arguments for _, tool, arguments in _ways(chunks) if tool == "list_documents")

    def by_text(number: int) -> dict[str, Any]:
        return {"query": corpus.texts[number % count], "k": K}

    ways: dict[str, Callable[[int], dict[str, Any]]] = {
        "list_documents": lists,
        "rag.search_vector": lambda number: by_vector(corpus, {})(number % count),
        "rag.search_fts": by_text,
        "rag.search_hybrid": by_text,
    }
    for tool, arguments in ways.items():
        ask, taken_ms = tools.ask(tool, arguments), []
        for number in range(-min(10, count), count):
            theirs_s = postgres.cpu_seconds()
            ours_s = time.process_time()
            ask(number % count)
            ours_s = time.process_time() - ours_s
            theirs_s = postgres.cpu_seconds() - theirs_s
            if number >= 0:
                taken_ms.append((ours_s + theirs_s) * 1_000)
        taken_ms.sort()
        p50, p95 = percentile(taken_ms, 50), percentile(taken_ms, 95)
        print(f"{chunks:,} {tool}: CPU p50 {p50:.2f}, p95 {p95:.2f} ms", flush=True)
    tools.close()


_SHARES = (1, 2, 4, 10)
"""Tags, each of which is on a twentieth of the documents."""
_FILTERED_QUERIES = 30


def _report_filters(url: str, corpus: Corpus, engine: str) -> None:
    """Vector search under filters that leave more and more."""
    few = Corpus(
        corpus.vectors, corpus.queries[:_FILTERED_QUERIES], corpus.texts[:_FILTERED_QUERIES]
    )
    tools = Tools(url, few)
    tools.loop.run_until_complete(tools.runtime.store.prepare_model(Known.identity))
    tag_of_row = np.arange(len(few.vectors)) // PER_DOCUMENT % TAGS
    for tags in _SHARES:
        name = f"{engine}: rag.search_vector, {100 * tags // TAGS} % filter"
        arguments = by_vector(few, {"tags_any": [f"t{tag}" for tag in range(tags)]})
        found, answers = timed(name, tools.ask("rag.search_vector", arguments), len(few.queries))
        hits = [{row_of(hit["chunk_id"]) for hit in one["results"]} for one in answers]
        right = exact(few, tag_of_row < tags)
        print(replace(found, recall=recall(hits, right)).row(len(few.vectors)), flush=True)
    tools.close()


def _postgres_filled(server: str, folder: Path, corpus: Corpus) -> str:
    """The address of a database with the same rows, made unless it is there."""
    chunks = len(corpus.vectors)
    name = f"zibaldone_bench_{chunks}"
    url = _with_database(server, name)
    with psycopg.connect(server, autocommit=True) as raw:
        known = raw.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if known is None:
            raw.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
    open_store(url, Limits()).close()
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("SET zibaldone.upkeep = 'on'")
        if raw.execute("SELECT 1 FROM zibaldone.models").fetchone() is None:
            started_s = time.perf_counter()
            with raw.transaction():
                _copy(raw, folder, corpus)
            raw.execute("VACUUM ANALYZE")
            _say(f"{chunks:,}: rows copied", started_s)
        _wait_for_indexes(url, raw, chunks)
    return url


def _with_database(server: str, name: str) -> str:
    given = conninfo_to_dict(make_conninfo(server, dbname=name))
    parameters = "&".join(f"{key}={value}" for key, value in given.items())
    return f"postgresql:///?{parameters}"


def _copy(raw: psycopg.Connection, folder: Path, corpus: Corpus) -> None:
    embedded = apsw.Connection(str(folder / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    for table, columns, select in _TABLES:
        with raw.cursor().copy(f"COPY zibaldone.{table} ({columns}) FROM STDIN".encode()) as copy:
            for row in embedded.execute(select):
                copy.write_row(row)
    raw.execute(
        "INSERT INTO zibaldone.usage (namespace, documents, revisions, bytes) "
        "SELECT namespace, count(*), count(*), 0 FROM zibaldone.documents GROUP BY namespace"
    )
    _copy_chunks(raw, embedded, len(corpus.vectors))
    _copy_vectors(raw, corpus)
    for table, key in (("documents", "document_key"), ("chunks", "chunk_key")):
        raw.execute(
            f"SELECT setval(pg_get_serial_sequence('zibaldone.{table}', '{key}'), "
            f"(SELECT max({key}) FROM zibaldone.{table}))".encode()
        )


def _copy_chunks(raw: psycopg.Connection, embedded: apsw.Connection, chunks: int) -> None:
    """With their terms, which in these texts are the words themselves."""
    select = (
        f"SELECT chunk_key, document_key, chunk_index, body FROM chunks WHERE chunk_key <= {chunks}"
    )

    def rows() -> Iterator[tuple[int, int, int, str]]:
        yield from embedded.execute(select)

    columns = (
        "chunk_key, document_key, namespace, chunk_index, start_char, end_char, heading, body, "
        "content_hash"
    )
    with raw.cursor().copy(f"COPY zibaldone.chunks ({columns}) FROM STDIN".encode()) as copy:
        for key, document, index, body in rows():
            copy.write_row((key, document, "default", index, 0, 1, "", body, b"\0"))
    with raw.cursor().copy(
        b"COPY zibaldone.chunk_terms (chunk_key, namespace, length, terms) FROM STDIN"
    ) as copy:
        for key, _, _, body in rows():
            words = body.split()
            places: dict[str, list[int]] = {}
            for place, word in enumerate(words, 1):
                places.setdefault(word, []).append(place)
            terms = " ".join(f"{word}:{','.join(map(str, at))}" for word, at in places.items())
            copy.write_row((key, "default", len(words), terms))
    raw.execute(
        "INSERT INTO zibaldone.unposted (namespace, chunk_key, length) "
        "SELECT namespace, chunk_key, length FROM zibaldone.chunk_terms"
    )


def _copy_vectors(raw: psycopg.Connection, corpus: Corpus) -> None:
    (model,) = raw.execute(
        "INSERT INTO zibaldone.models (identity, dimensions, created_at_us) "
        "VALUES (%s, %s, 0) RETURNING model_id",
        (Known.identity, DIMENSIONS),
    ).fetchone() or (0,)
    head, size_bytes = struct.pack("!hh", DIMENSIONS, 0), 4 + 2 * DIMENSIONS
    with raw.cursor().copy(
        b"COPY zibaldone.vectors (chunk_key, model_id, namespace, document_key, vector) "
        b"FROM STDIN (FORMAT BINARY)"
    ) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for start in range(0, len(corpus.vectors), 10_000):
            halves = corpus.vectors[start : start + 10_000].astype(">f2")
            for number, half in enumerate(halves, start):
                keys = (5, 8, number + 1, 8, model, 7, b"default", 8, number // 10 + 1, size_bytes)
                copy.write(struct.pack("!hiqiqi7siqi", *keys) + head + half.tobytes())
        copy.write(struct.pack("!h", -1))


def _wait_for_indexes(url: str, raw: psycopg.Connection, chunks: int) -> None:
    """The engine makes them by itself, after a write and when it starts."""
    started_s = time.perf_counter()
    store = open_store(url, Limits())
    try:
        asyncio.run(store.prepare_model(Known.identity))
        until_s = started_s + _WAIT_SECONDS_MAX
        while not _is_indexed(raw, chunks):
            if time.perf_counter() > until_s:
                raise RuntimeError("the indexes were not made in time")
            time.sleep(2)
    finally:
        store.close()
    raw.execute("ANALYZE")
    _say(f"{chunks:,}: postings and the index of the vectors", started_s)


def _is_indexed(raw: psycopg.Connection, chunks: int) -> bool:
    (unposted, built) = raw.execute(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM zibaldone.unposted LIMIT 1) u), "
        "(SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE c.relname LIKE 'vectors_nearest_%' AND i.indisvalid)"
    ).fetchone() or (1, 0)
    return unposted == 0 and (built > 0 or chunks < 10_000)


def _report_sizes(url: str, chunks: int) -> None:
    with psycopg.connect(url, autocommit=True) as raw:
        sizes = raw.execute(
            "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c "
            "WHERE c.relnamespace = 'zibaldone'::regnamespace AND c.relkind = 'r' "
            "ORDER BY 2 DESC LIMIT 8"
        ).fetchall()
    for table, size_bytes in sizes:
        print(f"{chunks:,}: {table} {size_bytes / 1e6:,.0f} MB, {size_bytes / chunks:,.0f} a chunk")


def _say(what: str, started_s: float) -> None:
    print(f"{what}: {time.perf_counter() - started_s:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
