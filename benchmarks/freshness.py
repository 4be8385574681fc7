"""How soon a write is found: by keyword, and by meaning, while writes keep coming.

    python -m benchmarks.freshness [--seconds 300] [--rate 10] [--quick] [--embedder auto]

A running server with the real model. Each document has a word of its own, which is searched for
right after the write was acknowledged; then its status is watched until its vectors are ready.
"""

from __future__ import annotations

import argparse
import queue
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2

from benchmarks.report import percentile
from benchmarks.servers.process import ServerProcess

_LOOK_SECONDS = 0.02
_READY_SECONDS_MAX = 120
_QUICK_SECONDS = 15

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
    luck = random.Random(seed)
    not_found, written, lag_max = 0, 0, 0.0
    started_s = time.monotonic()
    with httpx2.Client(base_url=url, timeout=30) as client:
        while (due_s := started_s + written / rate) < started_s + seconds:
            time.sleep(max(0.0, due_s - time.monotonic()))
            own_word = f"own{seed}x{written}"
            body = {"path": f"fresh/{seed}/{written}", "content": text(luck, own_word)}
            client.post("/documents", json=body).raise_for_status()
            outstanding.put(Written(body["path"], time.monotonic()))
            found = client.get("/search", params={"query": f'"{own_word}"'}).json()
            not_found += [hit["document_id"] for hit in found["results"]] != [body["path"]]
            written += 1
            if written % max(1, round(rate)) == 0:
                index = client.get("/health").json()["services"]["index"]
                lag_max = max(lag_max, index["vector_sync_lag_seconds"])
    outstanding.put(None)
    watching.join()
    took_s = time.monotonic() - started_s
    return Freshness(written, took_s, not_found, sorted(ready_s), lag_max)


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
    lines = [
        f"{found.written} writes in {found.seconds:.0f} s, {rate:g} a second",
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
    options = parser.parse_args()
    seconds = _QUICK_SECONDS if options.quick else options.seconds
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "zibaldone.toml"
        config.write_text(f'embedder = "{options.embedder}"\nlog_level = "warning"\n')
        program = (sys.executable, "-m", "zibaldone", "--config", config)
        with ServerProcess([*program, "serve", "--data", Path(folder) / "data"]) as server:
            url = f"http://127.0.0.1:{server.port}"
            # The model is loaded before the clock starts: a server's first write is one of many.
            measure(url, rate=options.rate, seconds=3 / options.rate, seed=1)
            found = measure(url, rate=options.rate, seconds=seconds)
            used_mb = server.resident_bytes() / 1e6
    print(report(found, options.rate))
    print(f"server: {used_mb:.0f} MB resident")


if __name__ == "__main__":
    main()
