"""How soon a write is found: by keyword, and by meaning, while writes keep coming.

    python -m benchmarks.freshness [--seconds 300] [--rate 10] [--quick] [--embedder auto]
        [--store postgresql://…]

A running server with the real model. Each document has a word of its own, which is searched for
right after the write was acknowledged; then its status is watched until its vectors are ready.
`--store` is a database of PostgreSQL for the documents, which stay there.
"""

from __future__ import annotations

import argparse
import math
import os
import queue
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from benchmarks.report import percentile
from benchmarks.servers.process import zibaldone

_LOOK_SECONDS = 0.02
_READY_SECONDS_MAX = 120
_QUICK_SECONDS = 15
_PER_WRITER = 10.0
"""Writes a second of one client: it also waits for its search."""

_SENTENCES = (
    "The worker leases a few changes and embeds only the passages that are new.",
    "A river carries sand from the mountains to the harbour, where ships wait for the tide.",
    "The invoice was sent to the customer before the meeting about next year's budget.",
    "Flutter of a wing begins when the flow over its boundary layer gives energy to the motion.",
    "A planet in a narrow orbit is heated by the tides that its star raises in it.",
    "The train leaves the station at noon and reaches the tunnel under the pass an hour later.",
    "Every revision of a document is kept, and an old one can be restored at any time.",
    "The garden needs water in the evening, when the sun is low and the soil has cooled.",
)


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    acknowledged_s: float


@dataclass(frozen=True, slots=True)
class Freshness:
    written: int
    seconds: float
    not_found: int
    """Writes that a keyword search right after them did not find."""
    ready_seconds: Sequence[float]
    """From the acknowledgement of a write to its vectors, ascending."""
    lag_seconds_max: float
    write_seconds: Sequence[float]
    """What the writes took, ascending."""

    def p(self, percent: float) -> float:
        return percentile(self.ready_seconds, percent)


def text(luck: random.Random, own_word: str) -> str:
    """One to three passages about this and that."""
    paragraphs = [
        " ".join(luck.choices(_SENTENCES, k=luck.randrange(4, 12)))
        for _ in range(luck.randrange(1, 4))
    ]
    return "\n\n".join([f"The word here is {own_word}.", *paragraphs])


def measure(url: str, *, rate: float, seconds: float, seed: int = 0) -> Freshness:
    """Write at that rate for that long, and wait for the last to be ready."""
    outstanding: queue.SimpleQueue[Written | None] = queue.SimpleQueue()
    ready_s: list[float] = []
    watching = threading.Thread(target=_watch, args=(url, outstanding, ready_s))
    watching.start()
    writers = max(1, math.ceil(rate / _PER_WRITER))
    started_s = time.monotonic()

    def write(number: int) -> _Counts:
        return _write(url, outstanding, rate, seconds, seed, range(number, 1_000_000, writers))

    try:
        with ThreadPoolExecutor(writers) as threads:
            counts = list(threads.map(write, range(writers)))
    finally:
        outstanding.put(None)
        watching.join()
    return Freshness(
        sum(len(one.write_s) for one in counts),
        time.monotonic() - started_s,
        sum(one.not_found for one in counts),
        sorted(ready_s),
        max(one.lag_max_s for one in counts),
        sorted(taken_s for one in counts for taken_s in one.write_s),
    )


@dataclass(slots=True)
class _Counts:
    """What one client noticed."""

    write_s: list[float] = field(default_factory=list)
    not_found: int = 0
    lag_max_s: float = 0.0


def _write(
    url: str,
    outstanding: queue.SimpleQueue[Written | None],
    rate: float,
    seconds: float,
    seed: int,
    numbers: range,
) -> _Counts:
    """Write the documents of these numbers, each when it is due."""
    counts = _Counts()
    luck = random.Random(f"{seed} {numbers.start}")
    started_s = time.monotonic()
    with httpx2.Client(base_url=url, timeout=30) as client:
        for number in numbers:
            due_s = started_s + number / rate
            if due_s >= started_s + seconds:
                return counts
            time.sleep(max(0.0, due_s - time.monotonic()))
            own_word = f"own{seed}x{number}"
            body = {"path": f"fresh/{seed}/{number}", "content": text(luck, own_word)}
            sent_s = time.monotonic()
            client.post("/documents", json=body).raise_for_status()
            acknowledged_s = time.monotonic()
            counts.write_s.append(acknowledged_s - sent_s)
            outstanding.put(Written(body["path"], acknowledged_s))
            hits = client.get("/search", params={"query": f'"{own_word}"'}).json()["results"]
            counts.not_found += [hit["document_id"] for hit in hits] != [body["path"]]
            if number % max(1, round(rate)) == 0:
                index = client.get("/health").json()["services"]["index"]
                counts.lag_max_s = max(counts.lag_max_s, index["vector_sync_lag_seconds"])
    return counts


def _watch(url: str, outstanding: queue.SimpleQueue[Written | None], ready_s: list[float]) -> None:
    """Look at what is not ready yet, oldest first, until all is."""
    waiting: list[Written] = []
    more = True
    with httpx2.Client(base_url=url, timeout=30) as client:
        while more or waiting:
            while more and (not waiting or not outstanding.empty()):
                arrived = outstanding.get()
                if arrived is None:
                    more = False
                else:
                    waiting.append(arrived)
            waiting = [one for one in waiting if not _is_ready(client, one, ready_s)]
            time.sleep(_LOOK_SECONDS)


def _is_ready(client: httpx2.Client, written: Written, ready_s: list[float]) -> bool:
    shown = client.get(f"/documents/{written.path}", params={"char_count": 1}).json()
    took_s = time.monotonic() - written.acknowledged_s
    if shown["vector_status"] == "ready":
        ready_s.append(took_s)
        return True
    if shown["vector_status"] != "pending" or took_s > _READY_SECONDS_MAX:
        raise RuntimeError(f"{written.path} is {shown['vector_status']} after {took_s:.0f} s")
    return False


def report(found: Freshness, rate: float) -> str:
    ready = " | ".join(f"{found.p(percent):.2f}" for percent in (50, 95, 99, 100))
    took = [1000 * percentile(found.write_seconds, percent) for percent in (50, 95)]
    lines = [
        f"{found.written} writes in {found.seconds:.0f} s, {rate:g} a second",
        f"a write took {took[0]:.0f} ms (p50), {took[1]:.0f} ms (p95)",
        "",
        "| write → | p50 s | p95 s | p99 s | max s | aim |",
        "|---|---|---|---|---|---|",
        f"| found by keyword | same call | same call | same call | {found.not_found} missed | 0 |",
        f"| vectors ready | {ready} | p95 < 2, p99 < 15 |",
        "",
        f"vector_sync_lag_seconds at most {found.lag_seconds_max:.2f} (a sample each second)",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rate", type=float, default=10.0, help="writes a second")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_SECONDS} seconds only")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--store", default="", help="URL of a database of PostgreSQL")
    options = parser.parse_args()
    seconds = _QUICK_SECONDS if options.quick else options.seconds
    seed = time.time_ns() // 1_000 if options.store else 0  # the database may have older ones
    with (
        tempfile.TemporaryDirectory() as folder,
        zibaldone(Path(folder) / "data", embedder=options.embedder, store=options.store) as server,
    ):
        url = f"http://127.0.0.1:{server.port}"
        # The model is loaded before the clock starts: a server's first write is one of many.
        measure(url, rate=options.rate, seconds=3 / options.rate, seed=seed + 1)
        cpu_before_s, load_before = server.cpu_seconds(), os.getloadavg()[0]
        found = measure(url, rate=options.rate, seconds=seconds, seed=seed)
        cpu_s = server.cpu_seconds() - cpu_before_s
        used_mb = server.resident_bytes() / 1e6
    print(report(found, options.rate))
    print(
        f"server: {used_mb:.0f} MB resident, {cpu_s / found.seconds:.2f} cores; "
        f"load of the machine {load_before:.1f} before, {os.getloadavg()[0]:.1f} after"
    )


if __name__ == "__main__":
    main()
