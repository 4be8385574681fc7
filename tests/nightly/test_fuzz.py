"""Short forms of `make fuzz`, and every case that once failed."""

from __future__ import annotations

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.nightly import fuzz
from tests.nightly.bench import prepare, serving
from tests.nightly.cases import Case, Cases, Operation, Surface, request_of
from tests.nightly.fuzz_sockets import over_sockets
from tests.nightly.shrink import shrunk

SECONDS_MAX = 90.0
CORPUS = [json.loads(line) for line in fuzz.CORPUS.read_text(encoding="utf-8").splitlines()]


def bounds(cases: int = 0, socket_cases: int = 0) -> fuzz.Bounds:
    return fuzz.Bounds(cases, socket_cases, seconds=SECONDS_MAX, seed=1)


def assert_clean(report: fuzz.Report, cases: int) -> None:
    """What was seen once and not again may be the doing of a busy machine; at night it counts."""
    findings = [finding for finding in report.findings.values() if finding.is_reproduced]
    assert [(finding.problem, json.dumps(finding.case)) for finding in findings] == []
    assert report.cases == cases
    assert len(report.outcomes) > 10, "it tried too little"


@pytest.mark.timeout(240)
def test_a_sample_in_process(tmp_path: Path) -> None:
    until_s = time.monotonic() + SECONDS_MAX
    report = asyncio.run(fuzz.in_process(bounds(cases=1_500), until_s, tmp_path))
    assert_clean(report, 1_500)


@pytest.mark.timeout(240)
def test_a_sample_over_sockets(tmp_path: Path) -> None:
    until_s = time.monotonic() + SECONDS_MAX
    report = asyncio.run(over_sockets(bounds(socket_cases=500), until_s, tmp_path))
    assert_clean(report, 500)


@pytest.mark.parametrize("line", CORPUS, ids=lambda line: line["problem"][:60])
def test_what_once_failed(tmp_path: Path, line: dict[str, Any]) -> None:
    async def replay() -> str | None:
        async with serving(tmp_path / "data", ingest_roots=[str(tmp_path)]) as app:
            await prepare(app)
            return await fuzz.Bench(app, str(tmp_path), fuzz.Report("replay")).alone(line["case"])

    assert asyncio.run(replay()) is None


ARGUMENTS = {"type": "object", "properties": {"path": {"type": "string"}}}
SURFACE = Surface({"echo": ARGUMENTS}, (Operation("POST", "/echo", (), ARGUMENTS),))
CALL: Case = {
    "kind": "mcp", "path": "/mcp-all", "method": "tools/call", "era": None,
    "accept": "application/json", "params": {"name": "echo", "arguments": {"path": "a", "b": 1}},
}  # fmt: skip


def judged(app: Any) -> str | None:
    return asyncio.run(fuzz.Bench(app, "", fuzz.Report("")).alone(CALL))


async def answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class TestTheFuzzerNotices:
    """What it is there to find, in applications that have it."""

    def test_nothing_in_a_sound_answer(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            await answer(send, 200, b'{"jsonrpc":"2.0","id":1,"result":{}}')

        assert judged(app) is None

    def test_a_500(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            error = {"code": "INTERNAL", "message": "m", "details": {}, "request_id": "r"}
            await answer(send, 500, json.dumps(error).encode())

        assert judged(app) == "500 INTERNAL: m"

    def test_a_code_that_is_not_known(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            error = {"code": "ODD", "message": "m", "details": {}, "request_id": "r"}
            await answer(send, 400, json.dumps(error).encode())

        assert judged(app) == "400 with the unknown code 'ODD'"

    def test_an_exception(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive, send
            raise RuntimeError("oh")

        assert "RuntimeError" in (judged(app) or "")

    def test_a_stall(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            until_s = time.process_time() + 1.2
            while time.process_time() < until_s:
                pass
            await answer(send, 200, b'{"jsonrpc":"2.0","id":1,"result":{}}')

        assert fuzz.STALL in (judged(app) or "")


def test_the_same_seed_gives_the_same_cases() -> None:
    def some(seed: int) -> list[Case]:
        cases = Cases(SURFACE, random.Random(seed)).over_sockets()
        return [next(cases) for _ in range(200)]

    assert some(3) == some(3) != some(4)


def test_a_failing_case_is_made_shorter() -> None:
    long = {**CALL, "headers": [["a", "b"]], "damage": {"at": 1, "put": ""}}

    async def fails(case: Case) -> bool:
        request_of(case)
        return "path" in case["params"]["arguments"]

    short = asyncio.run(shrunk(long, fails))
    assert short["params"]["arguments"].keys() == {"path"}
    assert "headers" not in short
    assert "damage" not in short
