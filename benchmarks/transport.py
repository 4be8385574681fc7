"""What the protocol costs: the same trivial tool on our server, on a bare one, and on the SDKs'.

    python -m benchmarks.transport [--quick]

Every server runs `echo` on the same uvicorn, uvloop and httptools. The bare one parses the message
and answers; the peers are stateless and answer JSON, as ours does. On the legacy wire the SDK can
also keep a session, which costs it less.
"""

from __future__ import annotations

import itertools
import re
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from benchmarks.load import Stretch, Target, fetch, fetch_whole, interleaved, request
from benchmarks.report import Finding, microseconds, paired_ratio, table
from benchmarks.servers.peers import FASTMCP, MCP_LOWLEVEL, MCP_SESSION
from benchmarks.servers.process import ServerProcess
from zibaldone.protocol.versions import NEWEST_LEGACY, NEWEST_MODERN
from zibaldone.tools import built_in, profiles

_RAW = (sys.executable, "-m", "benchmarks.servers.raw_mcp")
_OURS = (sys.executable, "-m", "benchmarks.servers.zibaldone_echo", "--data")

_RAW_RATIO_MAX = 1.6
_MCP_RATIO_MIN = 6
_FASTMCP_RATIO_MIN = 12
_SSE_RATIO_MAX = 1.05
_DOCUMENT_TOOLS_BYTES_MAX = 9_000
_GATES_MS = {5: 250, 10: 400}
"""p95 of list_documents that the first server of this kind had to keep, by connections."""

_ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": "hello"}}
_BOTH_TYPES = "application/json, text/event-stream"
_META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST_MODERN.name,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
}
_PEERS_LISTS = "42.8, 42.0, 25.6, 10.8 KB (peers)"
"""Of basic-memory, mcp-memory-service, Graphiti and a fourth, as read in November 2026."""


def legacy(
    path: str,
    method: str,
    params: Mapping[str, Any],
    accept: str = _BOTH_TYPES,
    session: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    headers = {"mcp-protocol-version": NEWEST_LEGACY.name, **session}
    return _message(path, method, params, accept, headers)


def modern(path: str, method: str, params: Mapping[str, Any], accept: str = _BOTH_TYPES) -> bytes:
    headers = {"mcp-protocol-version": NEWEST_MODERN.name, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return _message(path, method, {**params, "_meta": _META}, accept, headers)


_ids = itertools.count(1)
WIRES = {"legacy": legacy, "modern": modern}


def _message(
    path: str, method: str, params: Mapping[str, Any], accept: str, headers: Mapping[str, str]
) -> bytes:
    body = orjson.dumps({"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params})
    lines = [f"accept: {accept}", *(f"{name}: {value}" for name, value in headers.items())]
    return request("POST", path, body, lines)


def measure(*, quick: bool) -> list[Finding]:
    rounds, seconds = (4, 0.15) if quick else (14, 0.15)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ours = stack.enter_context(ServerProcess((*_OURS, Path(folder) / "data")))
        servers = {
            "raw ASGI": stack.enter_context(ServerProcess(_RAW)),
            MCP_LOWLEVEL.name: stack.enter_context(MCP_LOWLEVEL.start()),
            FASTMCP.name: stack.enter_context(FASTMCP.start()),
        }
        in_session = _echo_in_session(stack.enter_context(MCP_SESSION.start()))
        findings = []
        for wire, connections in itertools.product(WIRES, (1, 10)):
            targets = [_echo("ours", ours, wire, "/mcp-bench")]
            targets += [_echo(name, server, wire, "/mcp") for name, server in servers.items()]
            targets += [in_session] if wire == "legacy" else []
            found = interleaved(targets, connections=connections, rounds=rounds, seconds=seconds)
            findings += _against_others(f"echo, {wire}, {connections} conn.", found)
        findings += _stream_against_json(ours, rounds, seconds)
        findings += _documents(ours, rounds, seconds)
        return findings + _sizes(ours)


def _echo(name: str, server: ServerProcess, wire: str, path: str) -> Target:
    # Each with an id of its own: a server may remember those that are under way.
    return Target(name, server, [WIRES[wire](path, "tools/call", _ECHO) for _ in range(100)])


def _echo_in_session(server: ServerProcess) -> Target:
    client = {"name": "benchmark", "version": "1"}
    hello = {"protocolVersion": NEWEST_LEGACY.name, "capabilities": {}, "clientInfo": client}
    head = fetch_whole(server, legacy("/mcp", "initialize", hello)).decode()
    (session,) = re.findall(r"\r\nmcp-session-id: (\S+)", head, re.IGNORECASE)
    with_id = {"mcp-session-id": session}
    calls = [legacy("/mcp", "tools/call", _ECHO, session=with_id) for _ in range(100)]
    return Target(MCP_SESSION.name, server, calls)


def _against_others(what: str, found: dict[str, list[Stretch]]) -> list[Finding]:
    findings = []
    for measured, field in (("server CPU", "cpu_us"), ("p95", "p95_us")):
        values = {
            name: [getattr(stretch, field) for stretch in stretches]
            for name, stretches in found.items()
        }
        ours = values.pop("ours")
        for name, others in values.items():
            is_raw, is_cpu = name == "raw ASGI", field == "cpu_us"
            least = {MCP_LOWLEVEL.name: _MCP_RATIO_MIN, FASTMCP.name: _FASTMCP_RATIO_MIN}
            findings.append(
                Finding(
                    f"{what}: {measured}" + ("" if is_raw else ", times dearer"),
                    microseconds(statistics.median(ours)),
                    f"{microseconds(statistics.median(others))} ({name})",
                    paired_ratio(ours, others) if is_raw else paired_ratio(others, ours),
                    at_most=_RAW_RATIO_MAX if is_raw and is_cpu else None,
                    at_least=least.get(name) if is_cpu else None,
                )
            )
    return findings


def _stream_against_json(ours: ServerProcess, rounds: int, seconds: float) -> list[Finding]:
    findings = []
    for wire, made in WIRES.items():
        targets = [
            Target(accept, ours, [made("/mcp-bench", "tools/call", _ECHO, accept)])
            for accept in ("text/event-stream", "application/json")
        ]
        found = interleaved(targets, connections=1, rounds=2 * rounds, seconds=seconds)
        for measured, field in (("p50", "p50_us"), ("p95", "p95_us")):
            streams, others = (
                [getattr(stretch, field) for stretch in found[target.name]] for target in targets
            )
            findings.append(
                Finding(
                    f"echo, {wire}: event stream, {measured}",
                    microseconds(statistics.median(streams)),
                    f"{microseconds(statistics.median(others))} (JSON)",
                    paired_ratio(streams, others),
                    at_most=_SSE_RATIO_MAX,
                )
            )
    return findings


def _documents(ours: ServerProcess, rounds: int, seconds: float) -> list[Finding]:
    """Real tools, beside the gates they were given."""
    for number in range(200):
        arguments = {"path": f"notes/{number:03}", "content": "A tiny one."}
        fetch(
            ours, modern("/mcp", "tools/call", {"name": "upload_document", "arguments": arguments})
        )
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "get_document": ("tools/call", {"arguments": {"path": "notes/007", "related": False}}),
        "list_documents, 50": ("tools/call", {"arguments": {"prefix": "notes/"}}),
        "list_documents, nothing there": ("tools/call", {"arguments": {"prefix": "none/"}}),
        "tools/list": ("tools/list", {}),
    }
    findings = []
    for connections in (1, 5, 10):
        targets = []
        for what, (method, params) in calls.items():
            named = {"name": what.partition(",")[0], **params} if params else {}
            targets.append(Target(what, ours, [modern("/mcp", method, named)]))
        found = interleaved(targets, connections=connections, rounds=rounds, seconds=seconds)
        for what, stretches in found.items():
            cpu_us = statistics.median(stretch.cpu_us for stretch in stretches)
            p95_us = statistics.median(stretch.p95_us for stretch in stretches)
            gate_ms = _GATES_MS.get(connections) if what == "list_documents, 50" else None
            findings.append(
                Finding(
                    f"{what}, modern, {connections} conn.: p95",
                    f"{microseconds(p95_us)} (CPU {microseconds(cpu_us)})",
                    "" if gate_ms is None else f"{gate_ms} ms (gate)",
                    None if gate_ms is None else p95_us / 1000 / gate_ms,
                    at_most=None if gate_ms is None else 1,
                )
            )
    return findings


def _sizes(ours: ServerProcess) -> list[Finding]:
    """Every client reads the whole list of tools first, and pays for it in tokens."""
    findings = []
    for profile in profiles.built_in(built_in.TOOLS):
        answer = orjson.loads(fetch(ours, modern(profile.path, "tools/list", {})))
        size_bytes = len(orjson.dumps(answer["result"]["tools"]))
        is_main = profile.is_main
        findings.append(
            Finding(
                f"tools/list of {profile.path} ({len(profile.tools)} tools): size",
                f"{size_bytes / 1000:.1f} KB",
                _PEERS_LISTS if is_main else "",
                size_bytes / _DOCUMENT_TOOLS_BYTES_MAX if is_main else None,
                at_most=1 if is_main else None,
            )
        )
    return findings


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
