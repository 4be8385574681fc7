"""Fuzzing: whatever is sent, the answer is whole, readable and the client's or nobody's fault.

`make test` tries a sample; FUZZ_CASES says how many, and the nightly run says 100 000.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drivers import fuzz
from tests.drivers.catalogues import CATALOGUE, MAIN
from tests.drivers.engines import store_flags
from tests.drivers.mcp import JSON_TYPE, SSE_TYPE, frames_of
from tests.drivers.server import Server
from zibaldone import settings as product_settings
from zibaldone.access.principal import LOCAL
from zibaldone.protocol.surface import Surface
from zibaldone.stdio import StdioServer
from zibaldone.tools.spec import Runtime
from zibaldone.web.app import App
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime

CASES = int(os.environ.get("FUZZ_CASES", "2000"))
ANSWER_SECONDS_MAX = 10
_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_CLIENTS_OWN = (b"content-length", b"host")
"""Headers that a client library insists on writing itself."""
_LEGAL_IN_A_HEADER = re.compile(rb"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")


def cases(share: float) -> settings:
    count = max(1, int(CASES * share))
    return settings(max_examples=count, suppress_health_check=_HEALTH)


@dataclass(slots=True)
class Answer:
    """What an application sent, checked for being one whole HTTP answer."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""
    is_complete: bool = False

    async def take(self, message: Any) -> None:
        assert not self.is_complete, "something was sent after the end"
        if message["type"] == "http.response.start":
            assert self.status == 0, "a second answer began"
            self.status = message["status"]
            self.headers = dict(message["headers"])
            assert len(self.headers) == len(message["headers"]), "a header was sent twice"
            return
        assert message["type"] == "http.response.body"
        assert self.status, "a body came before its head"
        self.body += message.get("body", b"")
        self.is_complete = not message.get("more_body", False)


@dataclass(frozen=True, slots=True)
class Bench:
    """The application on an event loop of its own."""

    runner: asyncio.Runner
    runtime: Runtime
    app: App

    def answer(self, request: fuzz.HttpRequest) -> Answer:
        return self.runner.run(self._exchange(request))

    async def _exchange(self, request: fuzz.HttpRequest) -> Answer:
        answer = Answer()
        messages = iter(
            [
                {"type": "http.request", "body": request.body[:7], "more_body": True},
                {"type": "http.request", "body": request.body[7:], "more_body": False},
            ]
        )

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            await asyncio.Event().wait()  # the client stays until it has its answer
            raise AssertionError

        scope = {
            "type": "http",
            "method": request.method,
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": b"",
            "headers": list(request.headers),
            "client": ("127.0.0.1", 1),
        }
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            await self.app(scope, receive, answer.take)
        assert answer.is_complete
        return answer


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    data = tmp_path_factory.mktemp("fuzz") / "data"
    chosen = product_settings.load({"data": str(data), **store_flags(data)}, environment={})
    runtime = build_runtime(chosen)
    try:
        with asyncio.Runner() as runner:
            yield Bench(runner, runtime, build_application(chosen, runtime))
    finally:
        runtime.store.close()


def check(status: int, content_type: str, body: bytes, request: fuzz.HttpRequest) -> None:
    """The answer is no failure of ours and can be read by what it says it is."""
    assert 200 <= status < 500, (status, body)
    if status in (202, 204) or request.method == "HEAD":
        assert body == b""
        return
    if content_type == SSE_TYPE:
        values = frames_of(body)
        assert status == 200
    else:
        assert content_type == JSON_TYPE, content_type
        values = [json.loads(body)]
    for value in values:
        for envelope in value if isinstance(value, list) else [value]:
            check_envelope(envelope, request)


def check_envelope(envelope: Any, request: fuzz.HttpRequest) -> None:
    assert isinstance(envelope, dict)
    if "jsonrpc" not in envelope:
        return  # plain JSON: the server's description, or a refusal before the protocol
    assert envelope["jsonrpc"] == "2.0"
    if "method" in envelope:
        assert "id" not in envelope
        return
    assert envelope.keys() - {"jsonrpc", "id"} in ({"result"}, {"error"})
    assert envelope["id"] is None or isinstance(envelope["id"], str | int)
    if envelope.get("result", {}).get("isError"):
        failure = json.loads(envelope["result"]["content"][0]["text"])
        assert failure["status"] < 500 or failure["code"] == "NOT_CONFIGURED", failure
    if "error" in envelope:
        assert isinstance(envelope["error"]["code"], int)
        assert isinstance(envelope["error"]["message"], str)
        assert len(envelope["error"]["message"]) < 1_000
        assert envelope["error"]["code"] != -32603, envelope


@pytest.mark.requirement("000/AC.10", "000/P2.04")
@cases(0.8)
@given(fuzz.requests)
def test_any_request_is_answered(bench: Bench, asked: fuzz.HttpRequest) -> None:
    answer = bench.answer(asked)
    content_type = answer.headers.get(b"content-type", b"").decode()
    check(answer.status, content_type, answer.body, asked)
    if asked.method != "HEAD" and b"content-length" in answer.headers:
        assert int(answer.headers[b"content-length"]) == len(answer.body)


@pytest.mark.requirement("000/AC.10", "000/P2.04")
@cases(0.15)
@given(fuzz.requests)
def test_any_request_over_a_socket_is_answered(
    shared_server: Server, asked: fuzz.HttpRequest
) -> None:
    headers = [
        (name, value)
        for name, value in asked.headers
        if name not in _CLIENTS_OWN and _LEGAL_IN_A_HEADER.fullmatch(value)
    ]
    answer: httpx.Response = shared_server.client.request(
        asked.method, asked.path, headers=headers, content=asked.body
    )
    check(answer.status_code, answer.headers.get("content-type", ""), answer.content, asked)


def test_the_server_is_alive_and_has_nothing_to_report(shared_server: Server) -> None:
    assert shared_server.client.get("/health").status_code == 200
    assert "Traceback" not in shared_server.log()


@cases(0.05)
@given(st.lists(fuzz.bodies, max_size=5))
def test_any_lines_over_stdio_are_answered(bench: Bench, lines: list[bytes]) -> None:
    source = io.BytesIO(b"\n".join(lines))
    sink = io.BytesIO()
    server = StdioServer(Surface(MAIN, CATALOGUE), bench.runtime, LOCAL)

    async def serve() -> None:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            await server.serve(source, sink)

    bench.runner.run(serve())
    request = fuzz.HttpRequest("POST", "", (), b"")
    for line in sink.getvalue().splitlines():
        value = json.loads(line)
        for envelope in value if isinstance(value, list) else [value]:
            check_envelope(envelope, request)


def test_a_length_in_digits_that_are_no_number(bench: Bench) -> None:
    """Found by fuzzing: `²` is a digit to Python, and no number."""
    headers = ((b"content-length", "²".encode("latin-1")),)
    assert bench.answer(fuzz.HttpRequest("GET", "/mcp", headers, b"")).status == 200
