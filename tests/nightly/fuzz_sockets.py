"""The part of the fuzzer that goes over real sockets, to a server in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median

import psutil

from tests.drivers.server import Server
from tests.nightly import raw_http
from tests.nightly.bench import prepare, serving
from tests.nightly.cases import Case, Cases, HttpRequest, request_of
from tests.nightly.fuzz import NO_CASE, STALL, Bounds, Report, Suspect, examine, say
from tests.nightly.second_client import STALL_SECONDS_MAX, SecondClient
from tests.nightly.verdict import Answer, problem_of
from tests.nightly.wire import Broken, read_answer

GROWTH_BYTES_MAX = 48_000_000
"""From the second quarter of the run to the last: the caches are full by then."""
_WIDTH = 12
_ROUND_CASES = 500
_ANSWER_SECONDS_MAX = 45.0
_SILENCE_SECONDS = 0.3
"""A request that is not complete gets no answer; the fuzzer waits this long for one."""
_LOOK_EVERY_SECONDS = 0.1
_ANSWERS_TO_SECOND = {200, 404, 429}
"""To its small read: a case may have deleted the document, and the server may be full."""


@dataclass(slots=True)
class Target:
    server: Server
    second: SecondClient
    report: Report
    _running: dict[int, Case] = field(default_factory=dict)
    _recent: deque[Case] = field(default_factory=lambda: deque(maxlen=4 * _WIDTH))

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, limit=2**20)

    async def send(self, case: Case) -> str | None:
        """What is wrong with the answer to this case."""
        reader, writer = await self._connected()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS_MAX):
                if case["kind"] == "raw":
                    return await self._raw(case, reader, writer)
                return await self._request(request_of(case), reader, writer)
        except TimeoutError:
            return f"no answer in {_ANSWER_SECONDS_MAX:g} s"
        except (Broken, asyncio.IncompleteReadError, ValueError) as problem:
            return f"a broken answer: {problem}"[:200]
        except ConnectionError:
            self.report.outcomes["reset"] += 1
            return None  # it may refuse to read on; that it lives is seen by the others
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _request(
        self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str | None:
        lines = [request.method.encode() + b" " + (request.target or b"/") + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in request.headers]
        names = {name for name, _ in request.headers}
        if b"content-length" not in names:
            lines.append(b"content-length: %d" % len(request.body))
        writer.write(b"\r\n".join([*lines, b"connection: close", b"", b""]) + request.body)
        with contextlib.suppress(ConnectionError):  # it may answer without reading it all
            await writer.drain()
        if b"content-length" in names and writer.can_write_eof():
            writer.write_eof()  # the length may promise more than there is
        answer = await read_answer(reader, request.method)
        if answer is None:
            self.report.outcomes["closed"] += 1
            return None if b"content-length" in names else "closed without an answer"
        return self._judge(answer, request.method)

    async def _raw(
        self, case: Case, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str | None:
        for part in raw_http.sent(case):
            writer.write(part)
            await writer.drain()
        if case["is_closed"]:
            with contextlib.suppress(OSError):  # the server was quicker and has closed it
                writer.write_eof()
        try:
            async with asyncio.timeout(_SILENCE_SECONDS):
                answer = await read_answer(reader, "GET")
        except TimeoutError:
            self.report.outcomes["silence"] += 1
            return None
        if answer is None:
            self.report.outcomes["closed"] += 1
            return None
        return self._judge(answer, "GET")

    def _judge(self, answer: Answer, method: str) -> str | None:
        kind = answer.header(b"content-type")
        self.report.outcomes[str(answer.status)] += 1
        if kind.startswith(b"text/plain") and 400 <= answer.status < 500:
            return None  # the HTTP parser's own refusal: there is no request to answer in JSON
        if answer.status == 101:
            return "the server changed to another protocol"
        return problem_of(answer, method)

    async def round(self, cases: Iterator[Case]) -> None:
        suspects: list[Suspect] = []

        async def work(number: int) -> None:
            for case in cases:
                self._running[number] = case
                self._recent.append(case)
                problem = await self.send(case)
                if problem is not None:
                    suspects.append(Suspect(problem, case, tuple(self._recent)))
                self.report.cases += 1
                self._running.pop(number)

        watching = asyncio.create_task(self._watch(suspects))
        await asyncio.gather(*(work(number) for number in range(_WIDTH)))
        await asyncio.to_thread(self.second.settle)
        await asyncio.sleep(2 * _LOOK_EVERY_SECONDS)
        watching.cancel()
        self.report.rss_bytes.append(psutil.Process(self.server.process.pid).memory_info().rss)
        await examine(self.report, suspects, self.alone, shrink_seconds=30)

    async def _watch(self, suspects: list[Suspect]) -> None:
        """Whatever ran when the second client was left waiting is suspected."""
        seen = len(self.second.stalls)
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            for wait in self.second.stalls[seen:]:
                seen += 1
                running = [*self._running.values(), *self._recent]
                problem = f"the server {STALL} {wait.caused_s:.1f} s"
                suspects.extend(Suspect(problem, case) for case in running)

    async def alone(self, case: Case) -> str | None:
        began_s = time.monotonic()
        problem = await self.send(case)
        await asyncio.to_thread(self.second.settle)
        longest_s = self.second.worst_since(began_s)
        if longest_s > STALL_SECONDS_MAX:
            return f"the server {STALL} {longest_s:.1f} s"
        return problem


async def over_sockets(bounds: Bounds, until_s: float, folder: Path) -> Report:
    report = Report("over sockets")
    started_s = time.monotonic()
    data = folder / "socket-data"
    async with serving(data) as app:
        surface = await prepare(app)
    cases = Cases(surface, random.Random(bounds.seed + 1)).over_sockets()
    environment = {"ZIBALDONE_EMBEDDER": "hashed"}
    with Server(data, arguments=("--log-level", "warning"), environment=environment) as server:
        while report.cases < bounds.socket_cases and time.monotonic() < until_s:
            with SecondClient(server.port, server.process.pid) as second:
                try:
                    await _rounds(Target(server, second, report), cases, bounds, until_s)
                except OSError as problem:
                    if server.process.poll() is None:
                        raise
                    report.find(f"the server ended: {problem}", NO_CASE, is_reproduced=False)
                    server.start()
            _judge_second(report, second)
        log = server.log()
        if "Traceback" in log:
            at = log.index("Traceback")
            report.find(f"logged: {log[at : at + 1500]}", NO_CASE, is_reproduced=True)
    report.seconds = time.monotonic() - started_s
    _judge_memory(report)
    return report


async def _rounds(target: Target, cases: Iterator[Case], bounds: Bounds, until_s: float) -> None:
    report, started_s = target.report, time.monotonic()
    before = report.cases
    while report.cases < bounds.socket_cases and time.monotonic() < until_s:
        await target.round(islice(cases, min(_ROUND_CASES, bounds.socket_cases - report.cases)))
        if report.cases % 5_000 < _ROUND_CASES:
            seconds = time.monotonic() - started_s
            say(
                f"over sockets: {report.cases} cases, {(report.cases - before) / seconds:.0f}/s, "
                f"{len(report.findings)} findings, RSS {report.rss_bytes[-1] / 1e6:.0f} MB"
            )


def _judge_second(report: Report, second: SecondClient) -> None:
    say(second.line())
    report.stalls += len(second.stalls)
    report.longest_stall_s = max(report.longest_stall_s, second.longest_s)
    refused = {status for status in second.statuses if status not in _ANSWERS_TO_SECOND}
    if refused:
        report.find(f"the second client got {second.statuses}", NO_CASE, is_reproduced=False)


def _judge_memory(report: Report) -> None:
    sizes = report.rss_bytes
    quarter = len(sizes) // 4
    if quarter:
        growth = median(sizes[-quarter:]) - median(sizes[quarter : 2 * quarter])
        report.rss_bytes = [*sizes[:: max(1, len(sizes) // 12)], sizes[-1]]
        if growth > GROWTH_BYTES_MAX:
            report.find(f"memory grew by {growth / 1e6:.0f} MB", NO_CASE, is_reproduced=True)
