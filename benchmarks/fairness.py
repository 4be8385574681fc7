"""What one caller notices of another that does its worst.

    python -m benchmarks.fairness [--quick] [--data FOLDER]

Key B reads, searches and writes a little, one request at a time. Its p95 is measured alone, and
while key A, from a process of its own, keeps many connections busy with one kind of heavy work:
searches by the start of a word over a large index, uploads of 10 MB, reading them, conversions of
web pages, a flood of requests that are refused at once.

`--data` keeps the store for the next run; making it takes some minutes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import multiprocessing.synchronize
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from benchmarks.report import Finding, microseconds, percentile, table
from benchmarks.servers.process import ServerProcess
from zibaldone.store.open import DATABASE_NAME
from zibaldone.store.sqlite.match import column_text
from zibaldone.text.terms import index_terms

CHUNKS, CHUNKS_QUICK = 311_000, 60_000
_RATIO_MAX = 5.0
_PAUSE_SECONDS = 0.01
"""Between two requests of B: somebody who works, not a flood."""
_BASE_DOCUMENTS, _CHUNKS_EACH = 30, 100


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as `http.client` takes it."""

    method: str
    path: str
    body: bytes | None = None


def _posted(url: str, **given: Any) -> Asked:
    return Asked("POST", url, json.dumps(given).encode())


def measure(*, quick: bool, data: Path | None = None) -> list[Finding]:
    seconds = 8.0 if quick else 20.0
    with tempfile.TemporaryDirectory() as folder:
        place = data or Path(folder) / "data"
        pages = Path(folder) / "pages"
        pages.mkdir()
        (pages / "slow.html").write_text("<div><p>word " * 60_000)
        keys = _Keys.made_in(place, CHUNKS_QUICK if quick else CHUNKS)
        findings: list[Finding] = []
        for what, connections, attack in _attacks(pages):
            with _server(place, pages) as server:  # a new one, so that nothing is left to be done
                _fill_b(server, keys.b)
                findings += _compared(server, keys, what, connections, attack, seconds)
    return findings


def _attacks(pages: Path) -> Iterator[tuple[str, int, Callable[[int], Asked]]]:
    starts = ("et", "ta", "ao", "oi", "in", "ns", "sh", "hr", "st", "re")
    yield (
        "16 prefix searches",
        16,
        lambda number: _posted(
            "/search", query=" ".join(f"{starts[(number + n) % 10]}*" for n in range(4))
        ),
    )
    body = _text(random.Random(2), 10_000_000)
    large = [_posted("/documents", path=f"large/{n}", content=body, upsert=True) for n in range(6)]
    yield "6 uploads of 10 MB", 6, lambda number: large[number % 6]
    yield "8 reads of 10 MB", 8, lambda number: Asked("GET", f"/documents/large/{number % 6}")
    page = str(pages / "slow.html")
    yield (
        "6 conversions",
        6,
        lambda number: _posted("/ingest", source=page, path=f"converted/{number % 6}"),
    )
    yield "32 loops of refused requests", 32, lambda number: _posted("/search", none=number)


_B: dict[str, Callable[[int], Asked]] = {
    "get": lambda number: Asked("GET", f"/documents/b/{number % 200}"),
    "list": lambda _: Asked("GET", "/documents?limit=50"),
    "search": lambda number: _posted("/search", query=f"gazelle{number % 200}"),
    "write": lambda number: _posted(
        "/documents", path=f"w/{number % 50}", content=f"a line {number}", upsert=True
    ),
}


def _compared(
    server: ServerProcess,
    keys: _Keys,
    what: str,
    connections: int,
    attack: Callable[[int], Asked],
    seconds: float,
) -> list[Finding]:
    alone = _measured(server, keys.b, seconds)
    with _attacker(server, keys.a, connections, attack) as outcomes:
        time.sleep(min(3.0, seconds / 4))
        beside = _measured(server, keys.b, seconds)
    served = ", ".join(f"{status} {count} times" for status, count in sorted(outcomes.items()))
    print(f"{what}: A was answered {served or 'nothing'}", file=sys.stderr)
    return [
        Finding(
            f"B's {name} beside {what}, p95",
            microseconds(percentile(beside[name], 95)),
            f"{microseconds(percentile(alone[name], 95))} alone"
            f" (longest {beside[name][-1] / 1000:.0f} ms)",
            percentile(beside[name], 95) / percentile(alone[name], 95),
            at_most=_RATIO_MAX,
        )
        for name in _B
    ]


def _measured(server: ServerProcess, key: str, seconds: float) -> dict[str, list[float]]:
    """Latencies in microseconds, ascending, of each kind of request."""
    latencies: dict[str, list[float]] = {name: [] for name in _B}
    client = _Client(server.port, key)
    until_s = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until_s:
        number += 1
        for name, asked in _B.items():
            started_s = time.perf_counter()
            status = client.send(asked(number))
            latencies[name].append((time.perf_counter() - started_s) * 1e6)
            if status not in (200, 201):
                print(f"B's {name} was answered {status}", file=sys.stderr)
            time.sleep(_PAUSE_SECONDS)
    client.close()
    return {name: sorted(values) for name, values in latencies.items()}


class _Client:
    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"x-api-key": key, "content-type": "application/json"}

    def send(self, asked: Asked) -> int:
        try:
            self._connection.request(asked.method, asked.path, asked.body, self._headers)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0
        return answer.status

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _attacker(
    server: ServerProcess, key: str, connections: int, attack: Callable[[int], Asked]
) -> Iterator[Counter[int]]:
    """Key A in a process of its own; what it was answered is known at the end."""
    outcomes: Counter[int] = Counter()
    forked = multiprocessing.get_context("fork")
    over, answered = forked.Event(), forked.SimpleQueue()
    arguments = (server.port, key, connections, attack, over, answered)
    process = forked.Process(target=_attack, args=arguments, daemon=True)
    process.start()
    try:
        yield outcomes
    finally:
        over.set()
        outcomes.update(answered.get())
        process.join(10)
        process.terminate()


def _attack(
    port: int,
    key: str,
    connections: int,
    attack: Callable[[int], Asked],
    over: multiprocessing.synchronize.Event,
    answered: multiprocessing.SimpleQueue[Counter[int]],
) -> None:
    outcomes: Counter[int] = Counter()

    def loop(first: int) -> None:
        client = _Client(port, key)
        number = first
        while not over.is_set():
            outcomes[client.send(attack(number))] += 1
            number += connections

    for first in range(connections):
        threading.Thread(target=loop, args=(first,), daemon=True).start()
    over.wait()
    answered.put(outcomes)


@dataclass(frozen=True, slots=True)
class _Keys:
    a: str
    b: str

    @classmethod
    def made_in(cls, data: Path, chunks: int) -> _Keys:
        """The keys of a store that holds so many chunks of A; it is made if it is not there."""
        known = data.parent / f"{data.name}-keys.json"
        if not known.exists():
            secrets = [_make_key(data, "a"), _make_key(data, "b")]
            with _server(data, data.parent) as server:
                _fill_a(server, secrets[0])
            _multiply(data / DATABASE_NAME, chunks)
            known.write_text(json.dumps(secrets))
        return cls(*json.loads(known.read_text()))


def _make_key(data: Path, namespace: str) -> str:
    command = [sys.executable, "-m", "zibaldone", "--data", data, "key", "create", "--json"]
    made = subprocess.run(
        [*map(str, command), "--namespace", namespace], capture_output=True, check=True
    )
    secret: str = json.loads(made.stdout)["secret"]
    return secret


def _server(data: Path, pages: Path) -> ServerProcess:
    command = (sys.executable, "-m", "zibaldone", "serve", "--data", data)
    settings = {"ZIBALDONE_EMBEDDER": "none", "ZIBALDONE_INGEST_ROOTS": str(pages)}
    return ServerProcess(command, folder=data.parent, settings=settings)


def _text(choice: random.Random, chars: int) -> str:
    """Paragraphs of made-up words, few of them frequent, as in a language."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(choice.choices(letters, k=choice.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    picked = iter(choice.choices(words, weights, k=chars // 5))
    paragraphs, size = [], 0
    while size < chars:
        paragraph = " ".join(word for _, word in zip(range(130), picked, strict=False))
        paragraphs.append(paragraph)
        size += len(paragraph) + 2
    return "\n\n".join(paragraphs)[:chars]


def _fill_a(server: ServerProcess, key: str) -> None:
    client = _Client(server.port, key)
    choice = random.Random(1)
    for number in range(_BASE_DOCUMENTS):
        body = _text(choice, 75_000)
        client.send(_posted("/documents", path=f"base/{number}", content=body, upsert=True))


def _fill_b(server: ServerProcess, key: str) -> None:
    client = _Client(server.port, key)
    for number in range(200):
        body = f"gazelle{number} and a few words more"
        client.send(_posted("/documents", path=f"b/{number}", content=body, upsert=True))


_COPY = """
INSERT INTO documents SELECT document_key + :step, namespace, 'copy' || :step || '/' || document_id,
    source_id, parent_id, title, tags, mime, metadata, pk, revision, content_hash, content_chars,
    created_at_us, updated_at_us, deleted_at_us, updated_by, operation, 'skipped', vector_error,
    chunking_version FROM documents WHERE document_key <= :last;
INSERT INTO bodies SELECT document_key + :step, body FROM bodies WHERE document_key <= :last;
INSERT INTO facets SELECT document_key + :step, created_us, score, post_type FROM facets
    WHERE document_key <= :last;
INSERT INTO chunks SELECT chunk_key + :step, document_key + :step, chunk_index, start_char,
    end_char, heading, body, content_hash FROM chunks WHERE chunk_key <= :last;
INSERT INTO chunk_terms (rowid, title, heading, body)
    SELECT chunk_key + :step, title, heading, terms FROM temp.base_terms;
"""


def _multiply(path: Path, chunks: int) -> None:
    """Copy A's documents by SQL: writing as many through the product would take half an hour."""
    raw = apsw.Connection(str(path))
    raw.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN").fetchall()
    raw.execute("CREATE TEMP TABLE base_terms (chunk_key, title, heading, terms)")
    base = raw.execute("SELECT chunk_key, heading, body FROM chunks").fetchall()
    raw.executemany(
        "INSERT INTO temp.base_terms VALUES (?, '', ?, ?)",
        [
            (key, column_text(index_terms(str(heading))), column_text(index_terms(str(body))))
            for key, heading, body in base
        ],
    )
    last = max(int(key) for key, *_ in base)  # type: ignore[arg-type]
    for copy in range(1, chunks // len(base) + 1):
        raw.execute(_COPY, {"step": copy * (last + 1), "last": last}).fetchall()
    raw.execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    raw.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="What one key notices of another's worst.")
    parser.add_argument("--quick", action="store_true", help="a smaller store, for less time")
    parser.add_argument("--data", type=Path, help="keep the store here, or use what is there")
    options = parser.parse_args()
    print(table(measure(quick=options.quick, data=options.data)))


if __name__ == "__main__":
    main()
