"""Other embedded vector engines on the vectors of `benchmarks.search`, in their own environment.

Prints one JSON object a line: engine, filtered or not, milliseconds and ids for each query.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER, K = Path(sys.argv[1]), int(sys.argv[2])
VECTORS = np.load(FOLDER / "vectors.npy")
QUERIES = np.load(FOLDER / "queries.npy")
TAGGED = np.load(FOLDER / "tagged.npy")

Search = Callable[[Any, bool], list[int]]


def sqlite_vec() -> Search:
    import apsw
    import sqlite_vec as extension

    raw = apsw.Connection(str(FOLDER / "vec.db"))
    raw.enable_load_extension(True)
    raw.load_extension(extension.loadable_path())
    raw.execute(f"CREATE VIRTUAL TABLE v USING vec0(tagged INTEGER, e INT8[{VECTORS.shape[1]}])")
    scaled = np.rint(VECTORS * 127 / np.abs(VECTORS).max()).astype(np.int8)
    with raw:
        raw.executemany(
            "INSERT INTO v(rowid, tagged, e) VALUES (?, ?, vec_int8(?))",
            ((i + 1, int(TAGGED[i]), scaled[i].tobytes()) for i in range(len(scaled))),
        )
    peak = np.abs(VECTORS).max()

    def search(query: Any, filtered: bool) -> list[int]:
        asked = np.clip(np.rint(query * 127 / peak), -127, 127).astype(np.int8).tobytes()
        where = "AND tagged = 1" if filtered else ""
        sql = f"SELECT rowid FROM v WHERE e MATCH vec_int8(?) AND k = ? {where}"
        return [row[0] for row in raw.execute(sql, (asked, K))]

    return search


def lancedb() -> Search:
    import lancedb as engine
    import pyarrow as pa

    table = engine.connect(str(FOLDER / "lance")).create_table(
        "v",
        pa.table(
            {
                "id": pa.array(range(1, len(VECTORS) + 1)),
                "tagged": pa.array(TAGGED),
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(VECTORS.reshape(-1)), VECTORS.shape[1]
                ),
            }
        ),
    )

    def search(query: Any, filtered: bool) -> list[int]:
        asked = table.search(query).distance_type("cosine").limit(K)
        if filtered:
            asked = asked.where("tagged", prefilter=True)
        return [row["id"] for row in asked.select(["id"]).to_list()]

    return search


def chromadb() -> Search:
    import chromadb as engine

    client = engine.PersistentClient(str(FOLDER / "chroma"))
    table = client.create_collection("vectors", metadata={"hnsw:space": "cosine"})
    for start in range(0, len(VECTORS), 5_000):
        rows = range(start, min(len(VECTORS), start + 5_000))
        table.add(
            ids=[str(row + 1) for row in rows],
            embeddings=VECTORS[rows.start : rows.stop],
            metadatas=[{"tagged": bool(TAGGED[row])} for row in rows],
        )

    def search(query: Any, filtered: bool) -> list[int]:
        where = {"tagged": True} if filtered else None
        found = table.query(query_embeddings=[query], n_results=K, where=where, include=[])
        return [int(one) for one in found["ids"][0]]

    return search


def measured(search: Search, filtered: bool) -> Iterator[tuple[float, list[int]]]:
    for query in QUERIES[:5]:
        search(query, filtered)
    for query in QUERIES:
        started_s = time.perf_counter()
        found = search(query, filtered)
        yield (time.perf_counter() - started_s) * 1000, found


def main() -> None:
    engines: dict[str, Callable[[], Search]] = {"sqlite-vec int8": sqlite_vec, "lancedb": lancedb}
    if len(VECTORS) <= 200_000:  # building its graph takes an hour for a million
        engines["chromadb"] = chromadb
    for name, make in engines.items():
        try:
            search = make()
            for filtered in (False, True):
                taken, found = zip(*measured(search, filtered), strict=True)
                result = {"name": name, "filtered": filtered, "ms": taken, "found": found}
                sys.stdout.write(json.dumps(result) + "\n")
                sys.stdout.flush()
        except (ImportError, sqlite3.Error) as problem:
            sys.stderr.write(f"{name}: {problem}\n")


if __name__ == "__main__":
    main()
