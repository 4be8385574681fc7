"""The seed's latency gates over MCP, on its corpus: what is measured beside what is allowed.

    python -m benchmarks.latency [--quick] [--record]

Each line begins with the acceptance ids it answers. `--quick` takes a small corpus and seconds; it
is what the tests hold to four times the gates. `--record` stores the baseline that later versions
are compared with, in benchmarks/baseline.json.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from tests.drivers.corpus import agent_data_rows

from benchmarks.load import Stretch, fetch, request, send_all
from benchmarks.report import Finding, percentile, table
from benchmarks.servers.process import ServerProcess, zibaldone

JSON, SSE = "application/json", "text/event-stream"
QUICK_ROWS = 60
QUICK_SECONDS = 0.2
SECONDS = 30.0
SECONDS_UNDER_LOAD = 60.0
SMALL_COUNT = 50
"""How many calls the seed's own regression check made."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A p95 that may not be passed, in milliseconds, and which rows say so."""

    rows: str
    what: str
    p95_ms: float
    connections: int = 1


GATES = (
    Gate("7.2.a", "initialize", 50),
    Gate("7.2.b", "tools/list", 50),
    Gate("7.2.c", "get_document", 200),
    Gate("7.2.d", "batch_read", 300),
    Gate("000/P1.05", "list_documents", 100),
    Gate("7.2.e T11 000/P1.06", "list_documents", 250, connections=5),
    Gate("7.2.f T12 000/P1.07", "list_documents", 400, connections=10),
    Gate("7.2.g", "upload_document", 1_200),
    Gate("7.2.h", "update_document", 1_200),
    Gate("7.2.i", "patch_document", 1_200),
    Gate("7.2.j", "search_knowledge", 2_000),
)
AIMS = (
    Gate("000/P1.13", "list_documents", 30),
    Gate("000/P1.13", "list_documents", 150, connections=5),
    Gate("000/P1.13", "list_documents", 250, connections=10),
)
"""What the seed hoped for; measured in the same stretches as its gates."""
STREAM_EXTRA_MS = 5
PATCHED = "latency/patched"
BASELINE_FILE = Path(__file__).with_name("baseline.json")
BASELINE_TOOLS = ("search_knowledge", "get_document", "patch_document")
BASELINE_CONTROL = "initialize"
"""It does next to nothing: how long it takes says how fast the machine is just now."""
BASELINE_CALLS = 100
BASELINE_RATIO_MAX = 1.1
INDEX_SECONDS_MAX = 120.0
QUICK_BASELINE_PERCENT = 50
"""The middle, which a machine that is busy moves least; the whole benchmark compares the p95."""
QUICK_NOISE_MS = 6
"""Calls of a few milliseconds, on a machine that does something else as well."""


def measure(*, quick: bool, record: bool = False, store: str = "") -> list[Finding]:
    """`store`: a URL, for another store than a new file. It is not compared with a baseline."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        paths = _import(data, Path(folder), QUICK_ROWS if quick else None, store)
        with zibaldone(data, embedder="auto", store=store) as ours:
            traffic = Traffic(paths)
            findings = _measured(ours, traffic, quick=quick)
            if store:
                return findings
            percent = QUICK_BASELINE_PERCENT if quick else 95
            _until_indexed(ours)
            found = _baseline(ours, traffic, percent)
            if record:
                rounds = [found, *(_baseline(ours, traffic, percent) for _ in range(4))]
                _record({what: min(one[what] for one in rounds) for what in found}, quick=quick)
            return findings + _against_baseline(found, quick=quick)


def _import(data: Path, folder: Path, rows_max: int | None, store: str) -> list[str]:
    """The seed's knowledge base in a fresh store; the paths of what is alive."""
    file = folder / "kb_documents.jsonl"
    alive: list[str] = []
    with file.open("wb") as opened:
        for row in itertools.islice(agent_data_rows(), rows_max):
            opened.write(orjson.dumps(row) + b"\n")
            if row["key"] and row["data"]["deleted_at"] is None:
                alive.append(row["data"]["document_id"])
    command = [sys.executable, "-m", "zibaldone", "--data", str(data)]
    chosen = ["--store", store] if store else []
    subprocess.run(
        [*command, *chosen, "import", "agent-data", str(file), "--with-deleted", "--json"],
        check=True,
        capture_output=True,
    )
    return alive


class Traffic:
    """Endless requests of each kind."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def of(self, what: str, accept: str = JSON) -> Iterator[bytes]:
        if what == "initialize":
            return itertools.repeat(_rpc(what, {"protocolVersion": "2025-11-25"}, accept))
        if what == "tools/list":
            return itertools.repeat(_rpc(what, {}, accept))
        return (_call(what, arguments, accept) for arguments in self._arguments(what))

    def _arguments(self, tool: str) -> Iterator[dict[str, Any]]:
        for number in itertools.count():
            path = self._paths[number * 7 % len(self._paths)]
            match tool:
                case "list_documents":
                    prefixes = ("", "knowledge/", "knowledge/current-state/reports/")
                    yield {"prefix": prefixes[number % 3], "limit": 50}
                case "get_document":
                    yield {"path": path}
                case "search_knowledge":
                    yield {"query": f"what was decided about {path.rpartition('/')[2]}"}
                case "batch_read":
                    yield {
                        "paths": [self._paths[(number + k) % len(self._paths)] for k in range(3)]
                    }
                case "upload_document":
                    content = f"Note {number}. " + "Of the making of many books. " * 60
                    yield {"path": f"latency/{time.monotonic_ns()}", "content": content}
                case "update_document":
                    yield {"path": path, "content": f"Changed {number}. " + "It is so. " * 200}
                case "patch_document":
                    before, after = ("odd", "even") if number % 2 else ("even", "odd")
                    yield {"path": PATCHED, "old_str": before, "new_str": after}


def _measured(ours: ServerProcess, traffic: Traffic, *, quick: bool) -> list[Finding]:
    patched = {"path": PATCHED, "content": "This is even. " + "Text. " * 300}
    _check(ours, _call("upload_document", patched, JSON))
    findings = []
    stretches: dict[tuple[str, int], Stretch] = {}
    for gate in GATES:
        full = SECONDS_UNDER_LOAD if gate.connections > 1 else SECONDS
        seconds = QUICK_SECONDS if quick else full
        stretch = _stretch(ours, traffic.of(gate.what), gate.connections, seconds)
        stretches[gate.what, gate.connections] = stretch
        findings.append(_finding(gate, stretch, "gate"))
    findings += [_finding(aim, stretches[aim.what, aim.connections], "hoped for") for aim in AIMS]
    few = itertools.islice(traffic.of("list_documents"), SMALL_COUNT)
    regression = Gate("001/RG.2", f"list_documents, {SMALL_COUNT} calls", 250, connections=5)
    findings.append(_finding(regression, send_all(ours, few, connections=5), "gate"))
    for what in ("tools/list", "list_documents"):
        findings.append(_stream_against_json(ours, traffic, what, quick=quick))
    return findings


def _stretch(
    ours: ServerProcess, requests: Iterator[bytes], connections: int, seconds: float
) -> Stretch:
    _check(ours, next(requests))

    def within_time() -> Iterator[bytes]:
        until_s = time.perf_counter() + seconds
        while time.perf_counter() < until_s:
            yield next(requests)

    return send_all(ours, within_time(), connections=connections)


def _stream_against_json(
    ours: ServerProcess, traffic: Traffic, what: str, *, quick: bool
) -> Finding:
    """In turns, so that a slow moment of the machine hits both."""
    rounds, seconds = (2, QUICK_SECONDS) if quick else (10, 3.0)
    latencies_us: dict[str, list[float]] = {JSON: [], SSE: []}
    for _ in range(rounds):
        for accept in (JSON, SSE):
            stretch = _stretch(ours, traffic.of(what, accept), 1, seconds)
            latencies_us[accept] += stretch.latencies_us
    p95_ms = {
        accept: percentile(sorted(found), 95) / 1000 for accept, found in latencies_us.items()
    }
    return Finding(
        f"000/P2.03: {what} as a stream, p95",
        f"{p95_ms[SSE]:.2f} ms",
        f"JSON {p95_ms[JSON]:.2f} + {STREAM_EXTRA_MS} ms",
        p95_ms[SSE] / (p95_ms[JSON] + STREAM_EXTRA_MS),
        at_most=1,
    )


def _until_indexed(ours: ServerProcess) -> None:
    """The gates hold while vectors are made; versions are compared without that."""
    until_s = time.monotonic() + INDEX_SECONDS_MAX
    while time.monotonic() < until_s:
        health = json.loads(fetch(ours, request("GET", "/health")))
        if not health["services"]["index"]["pending"]:
            return
        time.sleep(0.1)


def _baseline(ours: ServerProcess, traffic: Traffic, percent: float) -> dict[str, float]:
    """Milliseconds: a percentile of each tool, and the middle of the control before and after."""
    control_us: list[float] = []
    found: dict[str, float] = {}
    for what in (BASELINE_CONTROL, *BASELINE_TOOLS, BASELINE_CONTROL):
        some = itertools.islice(traffic.of(what), BASELINE_CALLS)
        stretch = send_all(ours, some, connections=1)
        if what == BASELINE_CONTROL:
            control_us += stretch.latencies_us
        else:
            found[what] = percentile(sorted(stretch.latencies_us), percent) / 1000
    return {BASELINE_CONTROL: percentile(sorted(control_us), 50) / 1000, **found}


def _size(*, quick: bool) -> str:
    return "quick" if quick else "full"


def _record(found: dict[str, float], *, quick: bool) -> None:
    known = json.loads(BASELINE_FILE.read_text()) if BASELINE_FILE.exists() else {}
    known[_size(quick=quick)] = {what: round(ms, 3) for what, ms in found.items()}
    BASELINE_FILE.write_text(json.dumps(known, indent=2) + "\n")


def _against_baseline(found: dict[str, float], *, quick: bool) -> list[Finding]:
    """Nothing for a size that was never recorded."""
    recorded = json.loads(BASELINE_FILE.read_text()).get(_size(quick=quick))
    if recorded is None:
        return []
    slower = max(1.0, found[BASELINE_CONTROL] / recorded[BASELINE_CONTROL])
    noise_ms = QUICK_NOISE_MS if quick else 0
    return [
        Finding(
            f"000/P1.09: {tool} against the recorded version, "
            f"p{QUICK_BASELINE_PERCENT if quick else 95}",
            f"{found[tool]:.2f} ms",
            f"{recorded[tool]:.2f} \u00d7 {slower:.2f} for the machine + {noise_ms} ms",
            found[tool] / (recorded[tool] * slower + noise_ms),
            at_most=BASELINE_RATIO_MAX,
        )
        for tool in BASELINE_TOOLS
    ]


def _finding(gate: Gate, stretch: Stretch, word: str) -> Finding:
    p95_ms = stretch.p95_us / 1000
    return Finding(
        f"{gate.rows}: {gate.what}, {gate.connections} conn., p95",
        f"{p95_ms:.2f} ms (p50 {stretch.p50_us / 1000:.2f}, n {len(stretch.latencies_us)})",
        f"{word} {gate.p95_ms:g} ms",
        p95_ms / gate.p95_ms,
        at_most=1,
    )


def _rpc(method: str, params: dict[str, Any], accept: str) -> bytes:
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return request("POST", "/mcp", body, [f"accept: {accept}"])


def _call(tool: str, arguments: dict[str, Any], accept: str) -> bytes:
    return _rpc("tools/call", {"name": tool, "arguments": arguments}, accept)


def _check(ours: ServerProcess, made: bytes) -> None:
    """Failures come with status 200 as well: one answer of each kind is looked at."""
    body = fetch(ours, made)
    data = body.partition(b"data: ")[2] or body
    result = json.loads(data).get("result")
    if result is None or result.get("isError"):
        raise RuntimeError(f"the call failed: {body[:500]!r}")


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv, record="--record" in sys.argv)))
