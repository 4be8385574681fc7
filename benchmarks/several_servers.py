"""Throughput of two and of four servers on one PostgreSQL, against one.

    python -m benchmarks.several_servers --postgres URL [--connections 16] [--rounds 8] [--quick]

URL is that of a database whose user may write; the documents stay there. All servers run the whole
time. In each round the same clients ask the first, the first two, and all four, so that what else
the machine does hits all alike. Where everything is on one machine, servers, PostgreSQL and the
client share its cores: the table says how many each of them used, so that one can see what would be
left to gain elsewhere.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.load import fetch, request, spread_all
from benchmarks.report import paired_ratio
from benchmarks.servers.process import PostgresProcesses, ServerProcess, zibaldone
from benchmarks.writes import text

SERVERS = (1, 2, 4)
_DOCUMENTS = 2_000
_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Round:
    """One kind of request to so many servers. Cores are those used on average."""

    per_second: float
    p95_ms: float
    servers: float
    postgres: float
    client: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="three rounds")
    given = parser.parse_args()
    rounds = 3 if given.quick else given.rounds
    run = f"{time.time_ns():x}"
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        servers = [
            running.enter_context(zibaldone(Path(folder) / str(number), store=given.postgres))
            for number in range(max(SERVERS))
        ]
        postgres = PostgresProcesses(given.postgres)
        _fill(servers, run)
        load_before = os.getloadavg()[0]
        print(
            "| requests | servers | a second | against one | p95 ms | cores: servers | PostgreSQL "
            "| client |\n|---|---|---|---|---|---|---|---|"
        )
        for what, requests in _kinds(run).items():
            found = _measure(servers, postgres, requests, given.connections, rounds)
            for count, all_rounds in found.items():
                print(_row(what, count, all_rounds, found[SERVERS[0]]), flush=True)
    print(
        f"{os.cpu_count()} cores, {given.connections} clients, {rounds} rounds of {_SECONDS:g} s; "
        f"load of the machine {load_before:.1f} before, {os.getloadavg()[0]:.1f} after"
    )


def _fill(servers: Sequence[ServerProcess], run: str) -> None:
    made = (_post(f"kept/{run}/{number}", number) for number in range(_DOCUMENTS))
    spread_all(servers, made, connections=8)
    for server in servers:  # each reads what was written through the others
        answer = orjson.loads(fetch(server, request("GET", f"/documents/kept/{run}/0")))
        assert answer["document_id"] == f"kept/{run}/0", answer


def _post(path: str, number: int) -> bytes:
    body = {"path": path, "content": text(number)}
    return request("POST", "/documents", orjson.dumps(body))


def _kinds(run: str) -> dict[str, Iterator[bytes]]:
    reads = [request("GET", f"/documents/kept/{run}/{number}") for number in range(500)]
    words = [text(number).split()[20:23] for number in range(500)]
    searches = [request("GET", f"/search?query={'%20'.join(asked)}") for asked in words]
    return {
        "read a document": itertools.cycle(reads),
        "keyword search": itertools.cycle(searches),
        "write": (_post(f"written/{run}/{number}", number) for number in itertools.count()),
    }


def _measure(
    servers: Sequence[ServerProcess],
    postgres: PostgresProcesses,
    requests: Iterator[bytes],
    connections: int,
    rounds: int,
) -> dict[int, list[Round]]:
    found: dict[int, list[Round]] = {count: [] for count in SERVERS}
    for number in range(-1, rounds):
        turn = number % len(SERVERS)
        for count in (*SERVERS[turn:], *SERVERS[:turn]):
            one = _stretch(servers[:count], postgres, requests, connections)
            if number >= 0:  # the first round warms caches and opens connections
                found[count].append(one)
    return found


def _stretch(
    servers: Sequence[ServerProcess],
    postgres: PostgresProcesses,
    requests: Iterator[bytes],
    connections: int,
) -> Round:
    until_s = time.perf_counter() + _SECONDS
    within_time = itertools.takewhile(lambda _: time.perf_counter() < until_s, requests)
    postgres_before_s, client_before_s = postgres.cpu_seconds(), time.process_time()
    stretch = spread_all(servers, within_time, connections=connections)
    return Round(
        stretch.per_second,
        stretch.p95_us / 1_000,
        stretch.cpu_us * stretch.per_second / 1e6,
        (postgres.cpu_seconds() - postgres_before_s) / stretch.seconds,
        (time.process_time() - client_before_s) / stretch.seconds,
    )


def _row(what: str, count: int, rounds: Sequence[Round], alone: Sequence[Round]) -> str:
    def median(name: str) -> float:
        return statistics.median(float(getattr(one, name)) for one in rounds)

    ratio = paired_ratio((one.per_second for one in rounds), (one.per_second for one in alone))
    return (
        f"| {what} | {count} | {median('per_second'):,.0f} | {ratio:.2f} | "
        f"{median('p95_ms'):.1f} | {median('servers'):.2f} | {median('postgres'):.2f} | "
        f"{median('client'):.2f} |"
    )


if __name__ == "__main__":
    main()
