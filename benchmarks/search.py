"""Search at size: every tool's p50 and p95, recall against the exact answer, beside other engines.

    python -m benchmarks.search [--chunks 10000,100000] [--queries 200] [--no-peers] [--store DIR]

Texts have Zipf-distributed words, vectors lie in clusters as real ones do. The store is filled by
SQL, because embedding a million passages would take hours and is not what is measured. Peers get
the same vectors and queries in the same run, in an environment of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.report import percentile
from zibaldone import settings
from zibaldone.access.principal import LOCAL
from zibaldone.find.query_vector import QueryVectors
from zibaldone.ingest.convert import Converter
from zibaldone.ingest.fetch import Fetcher
from zibaldone.keep.writing import Preparation
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Store
from zibaldone.store.sqlite.vector_index import pack
from zibaldone.tools import built_in
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime

Floats = npt.NDArray[np.float32]

_TOOLS = {tool.name: tool for tool in built_in.TOOLS}

DIMENSIONS = 384
PER_CLUSTER = 50
"""Passages about the same thing, however many there are in all."""
PER_DOCUMENT = 10
TAGS = 20
"""A twentieth of the documents has each tag: the filter of five percent."""
VOCABULARY = 200_000
K = 10
PEERS = ("apsw", "sqlite-vec==0.1.9", "lancedb==0.40.0", "chromadb==1.5.9", "numpy")
PEER_SCRIPT = Path(__file__).parent / "servers" / "vector_peers.py"


@dataclass(frozen=True, slots=True)
class Corpus:
    vectors: Floats
    queries: Floats
    texts: list[str]
    """A query in words for each query vector."""

    @property
    def tagged(self) -> npt.NDArray[np.bool_]:
        documents = np.arange(len(self.vectors)) // PER_DOCUMENT
        result: npt.NDArray[np.bool_] = documents % TAGS == 0
        return result


class Known:
    """Stands in for a model: it knows the vector of each query's text."""

    name = "bench"
    identity = f"bench/{DIMENSIONS}"
    dimensions = DIMENSIONS
    similarity_min = 0.25

    def __init__(self, corpus: Corpus) -> None:
        self._by_text = dict(zip(corpus.texts, corpus.queries, strict=True))

    def embed(self, texts: Sequence[str]) -> Floats:
        return np.stack([self._by_text[text] for text in texts])

    def language_trust(self, text: str) -> float:
        del text
        return 1.0

    def close(self) -> None:
        pass


def unit(rows: Floats) -> Floats:
    result: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return result


def make_vectors(count: int, queries: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(7)
    clusters = max(1, count // PER_CLUSTER)
    centres = rng.standard_normal((clusters, DIMENSIONS), np.float32)
    rows = np.empty((count, DIMENSIONS), np.float32)
    for start in range(0, count, 50_000):
        end = min(count, start + 50_000)
        noise = rng.standard_normal((end - start, DIMENSIONS), np.float32)
        rows[start:end] = unit(centres[rng.integers(0, clusters, end - start)] + 0.8 * noise)
    asked = rows[rng.integers(0, count, queries)]
    return rows, unit(asked + 0.03 * rng.standard_normal(asked.shape).astype(np.float32))


def fill(folder: Path, vectors: Floats, queries: int) -> list[str]:
    """Write the store; a text query of three to six words from some passage for each query."""
    open_store(store_url(folder), Limits()).close()
    raw = apsw.Connection(str(folder / DATABASE_NAME))
    raw.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
    raw.execute("INSERT INTO models VALUES (1, ?, ?, 0)", (Known.identity, DIMENSIONS))
    rng = np.random.default_rng(11)
    frequency = 1.0 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.05
    cumulated = np.cumsum(frequency / frequency.sum())
    texts: list[str] = []
    count = len(vectors)
    for start in range(0, count, 10_000):
        rows = range(start, min(count, start + 10_000))
        lengths = rng.integers(80, 170, len(rows))
        words = np.searchsorted(cumulated, rng.random(int(lengths.sum())))
        _insert(raw, rows, np.split(words, np.cumsum(lengths)[:-1]), vectors)
        wanted = queries * (rows.stop) // count - len(texts)
        for passage in rng.integers(0, len(rows), wanted):
            first = int(lengths[:passage].sum())
            own = [word for word in words[first : first + int(lengths[passage])] if word > 100]
            texts.append(
                " ".join(f"w{word}" for word in own[: int(rng.integers(3, 7))]) + f" q{len(texts)}"
            )
    raw.close()
    return texts


def _insert(raw: apsw.Connection, rows: range, words: list[Any], vectors: Floats) -> None:
    documents = [row // PER_DOCUMENT for row in rows if row % PER_DOCUMENT == 0]
    with raw:
        raw.executemany(
            "INSERT INTO documents (document_key, namespace, document_id, source_id, title, tags, "
            "mime, metadata, revision, content_hash, content_chars, created_at_us, updated_at_us, "
            "updated_by, operation, vector_status) VALUES (?1 + 1, 'default', "
            "printf('d/%07d', ?1), 1, '', '[]', 'text/plain', '{}', 1, x'00', 1, 1, 1, 'bench', "
            "'create', 'ready')",
            [(document,) for document in documents],
        )
        raw.executemany(
            "INSERT INTO facets VALUES (?1 + 1, 1, NULL, NULL)", [(one,) for one in documents]
        )
        raw.executemany(
            "INSERT INTO document_tags VALUES (?, ?)",
            [(f"t{one % TAGS}", one + 1) for one in documents],
        )
        bodies = [" ".join(f"w{word}" for word in own) for own in words]
        raw.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, 0, 1, '', ?, x'00')",
            [
                (row + 1, row // PER_DOCUMENT + 1, row % PER_DOCUMENT, body)
                for row, body in zip(rows, bodies, strict=True)
            ],
        )
        raw.executemany(
            "INSERT INTO chunk_terms (rowid, title, heading, body) VALUES (?, '', '', ?)",
            [(row + 1, body) for row, body in zip(rows, bodies, strict=True)],
        )
        raw.executemany(
            "INSERT INTO vectors VALUES (1, ?, ?)", [(row + 1, pack(vectors[row])) for row in rows]
        )


def exact(corpus: Corpus, allowed: npt.NDArray[np.bool_] | None) -> list[set[int]]:
    rows = np.arange(len(corpus.vectors)) if allowed is None else np.flatnonzero(allowed)
    among = corpus.vectors if allowed is None else corpus.vectors[rows]
    return [
        set((rows[np.argpartition(-(among @ query), K)[:K]] + 1).tolist())
        for query in corpus.queries
    ]


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    p50_ms: float
    p95_ms: float
    recall: float | None = None

    def row(self, chunks: int) -> str:
        found = "" if self.recall is None else f"{self.recall:.3f}"
        return f"| {chunks:,} | {self.name} | {self.p50_ms:.2f} | {self.p95_ms:.2f} | {found} |"


def timed(name: str, run: Callable[[int], Any], count: int) -> tuple[Measured, list[Any]]:
    for number in range(min(5, count)):
        run(number)
    taken_ms, answers = [], []
    for number in range(count):
        started_s = time.perf_counter()
        answers.append(run(number))
        taken_ms.append((time.perf_counter() - started_s) * 1000)
    taken_ms.sort()
    return Measured(name, percentile(taken_ms, 50), percentile(taken_ms, 95)), answers


def recall(found: Sequence[set[int]], right: Sequence[set[int]]) -> float:
    return sum(len(one & other) for one, other in zip(found, right, strict=True)) / (K * len(right))


class Tools:
    """The product's tools over a store, without a server around them."""

    def __init__(self, url: str, corpus: Corpus) -> None:
        limits = settings.load({}, environment={}).limits
        self.runtime = Runtime(
            store=open_store(url, limits),
            limits=limits,
            fetcher=Fetcher(roots=(), hosts=(), bytes_max=1, seconds_max=1),
            converter=Converter(bytes_max=1, text_bytes_max=1, seconds_max=1),
            query_vectors=QueryVectors(Known(corpus)),
            preparation=Preparation(),
        )
        self.loop = asyncio.new_event_loop()

    def ask(self, tool: str, arguments: Callable[[int], dict[str, Any]]) -> Callable[[int], Any]:
        def run(number: int) -> Any:
            made = call_tool(_TOOLS[tool], Call(self.runtime, LOCAL), arguments(number))
            return self.loop.run_until_complete(made)

        return run

    def close(self) -> None:
        self.runtime.close()
        self.loop.close()


def measure_ours(url: str, corpus: Corpus, engine: str = "") -> list[Measured]:
    """`engine`: said in each line, where several are measured."""
    tools = Tools(url, corpus)
    _load_vectors(tools.runtime.store, tools.loop, len(corpus.vectors))

    five = {"tags_any": ["t0"]}
    ways: dict[str, tuple[str, Callable[[int], dict[str, Any]], list[set[int]] | None]] = {
        "rag.search_vector": ("rag.search_vector", by_vector(corpus, {}), exact(corpus, None)),
        "rag.search_vector, 5 % filter": (
            "rag.search_vector",
            by_vector(corpus, five),
            exact(corpus, corpus.tagged),
        ),
        "rag.search_fts": ("rag.search_fts", _by_text("query", corpus, {}), None),
        "rag.search_fts, 5 % filter": ("rag.search_fts", _by_text("query", corpus, five), None),
        "rag.search_hybrid": ("rag.search_hybrid", _by_text("query", corpus, {}), None),
        "rag.search_hybrid, 5 % filter": (
            "rag.search_hybrid",
            _by_text("query", corpus, five),
            None,
        ),
        "search_knowledge": (
            "search_knowledge",
            lambda number: {"query": corpus.texts[number], "limit": K},
            None,
        ),
    }
    measured = []
    for what, (tool, arguments, right) in ways.items():
        name = f"{engine}: {what}" if engine else what
        found, answers = timed(name, tools.ask(tool, arguments), len(corpus.queries))
        if right is not None:
            ids = [{row_of(hit["chunk_id"]) for hit in one["results"]} for one in answers]
            found = Measured(name, found.p50_ms, found.p95_ms, recall(ids, right))
        measured.append(found)
        print(found.row(len(corpus.vectors)), flush=True)
    tools.close()
    return measured


def _load_vectors(store: Store, loop: asyncio.AbstractEventLoop, chunks: int) -> None:
    """As a server does before its first search; what that takes of time and memory."""
    before_bytes, started_s = psutil.Process().memory_info().rss, time.perf_counter()
    loop.run_until_complete(store.prepare_model(Known.identity))
    taken_s = time.perf_counter() - started_s
    taken_mb = (psutil.Process().memory_info().rss - before_bytes) / 1e6
    print(f"{chunks:,}: vectors in memory after {taken_s:.1f} s, {taken_mb:.0f} MB", flush=True)


def by_vector(corpus: Corpus, filters: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    def arguments(number: int) -> dict[str, Any]:
        packed = base64.b64encode(corpus.queries[number].tobytes()).decode()
        embedding = {"dim": DIMENSIONS, "values_b64": packed}
        return {"query_embedding": embedding, "k": K, "filters": filters}

    return arguments


def _by_text(name: str, corpus: Corpus, filters: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    return lambda number: {name: corpus.texts[number], "k": K, "filters": filters}


def row_of(chunk_id: str) -> int:
    document, _, index = chunk_id.partition("#")
    return int(document.removeprefix("d/")) * PER_DOCUMENT + int(index) + 1


def peers_python() -> Path:
    """An environment of their own, made once."""
    folder = Path(".cache") / "bench" / "vectors"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PEERS], check=True)
    return python.absolute()


def measure_peers(folder: Path, corpus: Corpus) -> list[Measured]:
    np.save(folder / "vectors.npy", corpus.vectors)
    np.save(folder / "queries.npy", corpus.queries)
    np.save(folder / "tagged.npy", corpus.tagged)
    answer = subprocess.run(
        [str(peers_python()), str(PEER_SCRIPT.absolute()), str(folder), str(K)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )
    measured = []
    for line in answer.stdout.splitlines():
        one = json.loads(line)
        right = exact(corpus, corpus.tagged if one["filtered"] else None)
        ids = [set(found) for found in one["found"]]
        taken = sorted(one["ms"])
        name = one["name"] + (", 5 % filter" if one["filtered"] else "")
        measured.append(
            Measured(name, percentile(taken, 50), percentile(taken, 95), recall(ids, right))
        )
        print(measured[-1].row(len(corpus.vectors)), flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", default="10000,100000")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--store", type=Path, help="keep what was filled there, to use it again")
    options = parser.parse_args()
    print("| chunks | what | p50 ms | p95 ms | recall@10 |\n|---|---|---|---|---|", flush=True)
    for chunks in map(int, options.chunks.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) if options.store is None else options.store / str(chunks)
            corpus = filled(folder, chunks, options.queries)
            ours = measure_ours(store_url(folder), corpus)
            if not options.no_peers:
                _compare(ours[0], measure_peers(Path(name), corpus), chunks)


def filled(folder: Path, chunks: int, queries: int) -> Corpus:
    vectors, asked = make_vectors(chunks, queries)
    kept = folder / f"queries-{queries}.json"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(fill(folder, vectors, queries)))
    return Corpus(vectors, asked, json.loads(kept.read_text()))


def _compare(ours: Measured, peers: Sequence[Measured], chunks: int) -> None:
    for peer in peers:
        if "filter" not in peer.name:
            ratio = peer.p95_ms / ours.p95_ms
            print(f"{chunks:,}: {peer.name} p95 / ours = {ratio:.1f}", flush=True)


if __name__ == "__main__":
    main()
