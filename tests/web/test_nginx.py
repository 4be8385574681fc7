"""Behind nginx, as docs/howto/nginx.conf sets it up: streams pass, secrets stay out of its logs."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import (
    BOTH,
    JSON,
    JSON_TYPE,
    MODERN,
    SSE,
    SSE_TYPE,
    Mcp,
    envelope_of,
    frames_of,
)
from tests.drivers.nginx import CONFIGURATION, HOST, Nginx
from tests.drivers.server import Server
from tests.drivers.slow_host import SlowHost
from tests.drivers.urls import at, refusal


@dataclass(frozen=True, slots=True)
class Edge:
    """A server, nginx before it, and a key."""

    server: Server
    nginx: Nginx
    key: Key

    @property
    def token_path(self) -> str:
        return f"/gpt-mcp/{self.key.secret}/mcp"

    def mcp(self, path: str = "/mcp", version: str | None = None) -> Mcp:
        headers = {} if path == self.token_path else self.key.headers
        return Mcp(self.nginx.client, path, version, headers)


@contextmanager
def edge_of(folder: Path, **settings: Any) -> Iterator[Edge]:
    data = folder / "data"
    key = create_key(data)
    environment = {
        "ZIBALDONE_PUBLIC_URL": f"https://{HOST}",
        **{f"ZIBALDONE_{name.upper()}": value for name, value in settings.items()},
    }
    with Server(data, environment=environment) as server, Nginx(folder / "nginx", server) as nginx:
        yield Edge(server, nginx, key)


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    with edge_of(tmp_path_factory.mktemp("edge")) as running:
        yield running


# The seed's rows


@pytest.mark.requirement("001/PR.1")
def test_json_through_the_proxy(edge: Edge) -> None:
    answer = edge.mcp(edge.token_path).rpc("tools/list", accept=JSON)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == JSON_TYPE
    assert len(envelope_of(answer)["result"]["tools"]) == 8


@pytest.mark.requirement("001/PR.2")
def test_sse_through_the_proxy(edge: Edge) -> None:
    answer = edge.mcp(edge.token_path).rpc("tools/list", accept=SSE)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == SSE_TYPE
    assert len(envelope_of(answer)["result"]["tools"]) == 8


@pytest.mark.requirement("001/PR.3")
def test_json_wins_the_tie_through_the_proxy(edge: Edge) -> None:
    answer = edge.mcp(edge.token_path).rpc("tools/list", accept=BOTH)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == JSON_TYPE
    assert len(envelope_of(answer)["result"]["tools"]) == 8


@pytest.mark.requirement("000/U14", "000/GN.07")
def test_an_sse_answer_arrives_whole(edge: Edge) -> None:
    """And begins soon: the seed wants 50 ms, a machine that is busy gets four times that."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    headers = {"Content-Type": JSON, "Accept": SSE}
    direct = Mcp(edge.server.client, edge.token_path).post(body, accept=SSE).content
    first_byte_ms = []
    for _ in range(20):
        started_s = time.perf_counter()
        with edge.nginx.client.stream(
            "POST", edge.token_path, content=body, headers=headers
        ) as answer:
            pieces = answer.iter_raw()
            received = next(pieces)
            first_byte_ms.append((time.perf_counter() - started_s) * 1000)
            received += b"".join(pieces)
        assert received == direct
    assert statistics.median(first_byte_ms) < 4 * 50


@pytest.mark.requirement("000/U14", "000/GN.07", "000/GN.09")
@pytest.mark.parametrize("has_token_in_path", [True, False])
def test_a_frame_passes_while_the_answer_is_not_finished(
    tmp_path: Path, has_token_in_path: bool
) -> None:
    """A proxy that gathers the answer first would never show the frame: the work waits for us."""
    with (
        SlowHost() as host,
        edge_of(
            tmp_path,
            ingest_hosts=f"127.0.0.1:{host.port}",
            capability_routes='{"gpt-mcp": "mcp"}',
        ) as edge,
    ):
        path = edge.token_path if has_token_in_path else "/mcp"
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "ingest_document",
                "arguments": {"source": host.url, "path": "ingested"},
                "_meta": {"progressToken": "p"},
            },
        }
        headers = {"Accept": BOTH, **({} if has_token_in_path else edge.key.headers)}
        with edge.nginx.client.stream("POST", path, json=message, headers=headers) as answer:
            assert answer.headers["Content-Type"] == SSE_TYPE
            pieces = answer.iter_raw()
            first = next(pieces)
            assert not host.release.is_set()
            host.release.set()
            frames = frames_of(first + b"".join(pieces))
    assert frames[0]["method"] == "notifications/progress"
    assert frames[-1]["result"]["isError"] is False, frames[-1]


def test_large_bodies_pass_both_ways(edge: Edge) -> None:
    text = "wide " * 400_000
    mcp = edge.mcp(version=MODERN)
    mcp.call("upload_document", path="edge/large", content=text)
    assert mcp.call("get_document_for_rewrite", path="edge/large")["content"] == text
    for accept, kind in ((JSON, JSON_TYPE), (SSE, SSE_TYPE)):
        answer = mcp.rpc(
            "tools/call",
            {"name": "get_document_for_rewrite", "arguments": {"path": "edge/large"}},
            accept=accept,
        )
        assert answer.headers["Content-Type"] == kind
        assert envelope_of(answer)["result"]["structuredContent"]["content"] == text


# What is not for everybody


@pytest.mark.requirement("7.5.b")
@pytest.mark.parametrize("path", ["/mcp-gpt-full", "/mcp-gpt-full/"])
def test_the_full_profile_is_not_to_be_had_from_outside(edge: Edge, path: str) -> None:
    refusal(edge.mcp(path).rpc("tools/list"), 404, "NOT_FOUND")
    forged = edge.nginx.client.post(
        path, json={}, headers={**edge.key.headers, "X-Forwarded-For": "127.0.0.1"}
    )
    refusal(forged, 404, "NOT_FOUND")
    here = Mcp(edge.server.client, path, headers=edge.key.headers)
    assert len(here.tools()) == 10


@pytest.mark.requirement("7.5.b")
def test_the_full_profile_can_be_opened_on_purpose(tmp_path: Path) -> None:
    with edge_of(tmp_path, public_full_profile="true") as edge:
        assert len(edge.mcp("/mcp-gpt-full").tools()) == 10


@pytest.mark.requirement("7.5.a", "7.5.c")
def test_the_token_is_in_no_log(tmp_path: Path) -> None:
    with edge_of(tmp_path) as edge:
        wrong = f"/gpt-mcp/{edge.key.secret}-not/mcp"
        mcp = edge.mcp(edge.token_path)
        mcp.call("upload_document", path="edge/logged", content="x")
        mcp.failure("get_document_for_rewrite", path="edge/missing")
        refusal(edge.mcp(wrong).rpc("tools/list"), 401, "UNAUTHENTICATED")
        refusal(edge.mcp(edge.token_path + "x").rpc("tools/list"), 404, "NOT_FOUND")
        assert mcp.post(b"not json").status_code == 200
        too_large = edge.nginx.client.post(edge.token_path, content=b" " * (33 * 1024 * 1024))
        assert too_large.status_code == 413
        edge.server.stop()
        assert mcp.rpc("tools/list").status_code == 502
        # What nginx writes of the same failure on another route shows that its log is on.
        assert edge.mcp().rpc("tools/list").status_code == 502
        logged = edge.nginx.folder / "error.log"
        edge.nginx.wait_for(lambda: '"POST /mcp HTTP' in logged.read_text())
        lines = edge.nginx.access_log.read_text()
        assert lines.count("/gpt-mcp/-/mcp") >= 6
        for secret in (edge.key.secret, edge.key.secret.removeprefix("cp_")):
            assert secret not in edge.nginx.logs()
            assert secret not in edge.server.log()


# The trail of a delete


def audited(edge: Edge, answer: httpx.Response) -> dict[str, Any]:
    """The line of our own log that has the id nginx gave the request."""
    request_id = answer.headers["X-Request-ID"]
    lines = [json.loads(line) for line in edge.server.log().splitlines()]
    (message,) = [
        line["message"]
        for line in lines
        if line["logger"] == "zibaldone.audit" and request_id in line["message"]
    ]
    found: dict[str, Any] = json.loads(message)
    return found


DELETES: dict[str, tuple[Callable[[Edge], httpx.Response], str]] = {
    "REST": (
        lambda edge: edge.nginx.client.delete(at("edge/gone"), headers=edge.key.headers),
        "DELETE /documents/- tool=- status=200",
    ),
    "MCP": (
        lambda edge: edge.mcp().rpc(
            "tools/call", {"name": "delete_document", "arguments": {"path": "edge/gone"}}
        ),
        "POST /mcp tool=- status=200",
    ),
    "MCP 2026-07-28": (
        lambda edge: edge.mcp(version=MODERN).rpc(
            "tools/call", {"name": "delete_document", "arguments": {"path": "edge/gone"}}
        ),
        "POST /mcp tool=delete_document status=200",
    ),
}


@pytest.mark.requirement("7.5.c")
@pytest.mark.parametrize("way", DELETES)
def test_a_delete_is_on_record_at_the_edge_and_behind_it(edge: Edge, way: str) -> None:
    edge.mcp().call("upload_document", path="edge/gone", content="x")
    delete, line = DELETES[way]
    answer = delete(edge)
    assert answer.status_code == 200, answer.text
    assert line in edge.nginx.access_line(answer)
    entry = audited(edge, answer)
    assert (entry["tool"], entry["document"]) == ("delete_document", "edge/gone")
    assert (entry["key"], entry["outcome"]) == (edge.key.key_id, "ok")


@pytest.mark.requirement("7.5.c")
def test_the_edge_log_has_few_different_values(edge: Edge) -> None:
    """Neither documents nor what callers make up: times, sizes and ids aside, lines repeat."""
    answers = [
        edge.nginx.client.get(path, headers=edge.key.headers)
        for path in ("/documents/secret-plan", "/documents/a/b", "/made/up", "/mcp-made-up")
    ]
    answers.append(
        edge.nginx.client.get("/health", headers={"Mcp-Name": "made up", "X-Request-ID": "made-up"})
    )
    shown = [edge.nginx.access_line(answer) for answer in answers]
    shape = r"\S+ GET (\S+) tool=- status=\d{3} bytes=\d+ seconds=[\d.]+ request=[0-9a-f]{32}"
    routes = [found[1] for line in shown if (found := re.fullmatch(shape, line))]
    assert routes == ["/documents/-", "/documents/-", "other", "other", "/health"]


# The configuration itself


@pytest.mark.requirement("000/GN.07", "000/GN.08", "000/GN.09")
def test_every_location_inherits_what_streams_need() -> None:
    """nginx takes these from the server block unless a location has its own."""
    text = re.sub(r"#.*", "", CONFIGURATION.read_text())
    server, *locations = re.split(r"\blocation\b", text[text.index("server {") :])
    for directive in (
        "proxy_buffering off;",
        "proxy_cache off;",
        "chunked_transfer_encoding on;",
        "proxy_read_timeout 120s;",
        "proxy_set_header X-Forwarded-For $remote_addr;",
    ):
        assert directive in server
    assert len([location for location in locations if "proxy_pass" in location]) == 2
    for location in locations:
        assert not re.search(r"proxy_buffering|proxy_cache|chunked|proxy_set_header", location)
