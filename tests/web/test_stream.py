"""Long calls: progress while they run for clients that ask, and an end when the client leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.mcp import (
    BOTH,
    JSON,
    JSON_TYPE,
    SSE,
    SSE_TYPE,
    Mcp,
    envelope_of,
    frames_of,
    modern_headers,
    modern_meta,
    text_of,
)
from tests.drivers.server import Server
from tests.drivers.slow_host import WAIT_SECONDS_MAX, SlowHost


@pytest.fixture(scope="module")
def host() -> Iterator[SlowHost]:
    with SlowHost() as running:
        yield running


@pytest.fixture(scope="module")
def ingesting(tmp_path_factory: pytest.TempPathFactory, host: SlowHost) -> Iterator[Server]:
    environment = {"ZIBALDONE_INGEST_HOSTS": f"127.0.0.1:{host.port}", "NO_PROXY": "*"}
    data = tmp_path_factory.mktemp("progress") / "data"
    with Server(data, environment=environment) as server:
        yield server


@pytest.fixture
def mcp(ingesting: Server, host: SlowHost) -> Mcp:
    host.rearm()
    return Mcp(ingesting.client)


def ingest(url: str, path: str, token: object = None, *, modern: bool = False) -> dict[str, Any]:
    meta = {} if token is None else {"progressToken": token}
    params = {"name": "ingest_document", "arguments": {"source": url, "path": path}}
    if modern:
        meta |= modern_meta()
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def start(mcp: Mcp, message: dict[str, Any], accept: str = BOTH, **headers: str) -> Any:
    """A POST whose answer is read while it comes."""
    given = {"content-type": JSON, "accept": accept, **headers}
    return mcp.client.stream("POST", "/mcp", content=json.dumps(message), headers=given)


def first_frame(answer: httpx.Response, parts: Iterator[bytes]) -> tuple[Any, bytes]:
    """The first frame of a stream, and what has come after it."""
    received = b""
    while b"\n\n" not in received:
        received += next(parts)
    frame, _, rest = received.partition(b"\n\n")
    assert answer.headers["content-type"] == SSE_TYPE
    return frames_of(frame + b"\n\n")[0], rest


@pytest.mark.parametrize("accept", [BOTH, SSE])
@pytest.mark.parametrize("token", ["a", 7, 0])
def test_progress_arrives_before_the_answer(
    mcp: Mcp, host: SlowHost, accept: str, token: str | int
) -> None:
    path = f"progress/{token}-{len(accept)}"
    with start(mcp, ingest(host.url, path, token), accept) as answer:
        parts = answer.iter_raw()
        first, rest = first_frame(answer, parts)
        assert first["method"] == "notifications/progress"
        assert first["params"]["progressToken"] == token
        assert host.asked.wait(WAIT_SECONDS_MAX)
        host.release.set()
        frames = frames_of(rest + b"".join(parts))
    *progress, last = frames
    steps = [first["params"]["progress"], *(one["params"]["progress"] for one in progress)]
    assert steps == sorted(set(steps))
    assert all("id" not in one for one in progress)
    assert last["id"] == 1
    assert text_of(last["result"])["status"] == "created"
    assert mcp.call("get_document", path=path)["content"].startswith("# Slow page")


def test_in_the_modern_era_too(mcp: Mcp, host: SlowHost) -> None:
    message = ingest(host.url, "progress/modern", "t", modern=True)
    host.release.set()
    headers = modern_headers("tools/call", message["params"])
    with start(mcp, message, BOTH, **headers) as answer:
        frames = frames_of(b"".join(answer.iter_raw()))
    assert len(frames) > 1
    assert frames[-1]["result"]["resultType"] == "complete"


def test_the_headers_of_a_stream_that_reports(mcp: Mcp, host: SlowHost) -> None:
    host.release.set()
    with start(mcp, ingest(host.url, "progress/headers", "t")) as answer:
        frames = frames_of(answer.read())
    assert answer.status_code == 200
    assert "result" in frames[-1]
    assert answer.headers["content-type"] == SSE_TYPE
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in answer.headers
    assert answer.headers["x-request-id"]


@pytest.mark.requirement("001/R5")
def test_without_a_token_a_long_call_is_one_frame(mcp: Mcp, host: SlowHost) -> None:
    host.release.set()
    answer = mcp.post(ingest(host.url, "progress/none"), accept=SSE)
    assert len(frames_of(answer.content)) == 1
    assert text_of(envelope_of(answer)["result"])["id"] == "progress/none"


def test_without_a_token_and_with_both_types_it_is_json(mcp: Mcp, host: SlowHost) -> None:
    host.release.set()
    answer = mcp.post(ingest(host.url, "progress/json"), accept=BOTH)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == JSON_TYPE
    assert text_of(envelope_of(answer)["result"])["id"] == "progress/json"


def test_a_client_that_takes_no_stream_gets_none(mcp: Mcp, host: SlowHost) -> None:
    host.release.set()
    answer = mcp.post(ingest(host.url, "progress/refused", "t"), accept=JSON)
    assert answer.headers["content-type"] == JSON_TYPE
    assert "result" in envelope_of(answer)


def test_a_quick_tool_reports_nothing(mcp: Mcp) -> None:
    params = {"name": "list_documents", "arguments": {}, "_meta": {"progressToken": "t"}}
    answer = mcp.rpc("tools/call", params, accept=SSE)
    assert len(frames_of(answer.content)) == 1


@pytest.mark.requirement("000/R9")
@pytest.mark.parametrize("url", ["http://127.0.0.1:9/refused", "ftp://x/y", "http://elsewhere/"])
def test_a_failure_on_the_way_is_a_whole_last_frame(mcp: Mcp, url: str) -> None:
    answer = mcp.post(ingest(url, "progress/failed", "t"))
    *progress, last = frames_of(answer.content)
    assert [one["method"] for one in progress] == ["notifications/progress"]
    assert last["result"]["isError"] is True
    assert text_of(last["result"])["code"] in ("FORBIDDEN", "INVALID_ARGUMENT")


@pytest.mark.parametrize("token", [None, 1.5, ["t"], {"t": 1}])
def test_a_token_of_another_type_gets_no_progress(mcp: Mcp, host: SlowHost, token: object) -> None:
    host.release.set()
    message = ingest(host.url, "progress/odd", "t")
    message["params"]["_meta"]["progressToken"] = token
    answer = mcp.post(message, accept=SSE)
    assert len(frames_of(answer.content)) == 1


def test_closing_the_stream_ends_the_work(mcp: Mcp, host: SlowHost, ingesting: Server) -> None:
    with start(mcp, ingest(host.url, "progress/closed", "t")) as answer:
        parts = answer.iter_raw()  # kept: the stream is closed when nobody holds it
        first_frame(answer, parts)
        assert host.asked.wait(WAIT_SECONDS_MAX)
        assert not host.abandoned.is_set()
    assert host.abandoned.wait(WAIT_SECONDS_MAX)
    assert "error" in mcp.call("get_document", path="progress/closed")
    assert "Traceback" not in ingesting.log()
