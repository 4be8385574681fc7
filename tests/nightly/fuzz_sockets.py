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
from tests.nightly.bench import STALL_SECONDS_MAX, prepare, serving
from tests.nightly.cases import Case, Cases, HttpRequest, request_of
from tests.nightly.fuzz import NO_CASE, STALL, Bounds, Report, examine, say
from tests.nightly.verdict import Answer, problem_of
from tests.nightly.wire import Broken, read_answer

GROWTH_BYTES_MAX = 48_000_000
"""From the second quarter of the run to the last: the caches are full by then."""
_WIDTH = 12
_ROUND_CASES = 500
_ANSWER_SECONDS_MAX = 45.0
_SILENCE_SECONDS = 0.3
"""A request that is not complete gets no answer; the fuzzer waits this long for one."""
_PROBE = b"GET /documents/notes/friday HTTP/1.1\r\nHost: localhost\r\n\r\n"
_PROBE_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Target:
    server: Server
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
        suspects: list[tuple[str, Case]] = []

        async def work(number: int) -> None:
            for case in cases:
                self._running[number] = case
                self._recent.append(case)
                problem = await self.send(case)
                if problem is not None:
                    suspects.append((problem, case))
                self.report.cases += 1
                self._running.pop(number)

        probing = asyncio.create_task(self._probe(suspects))
        await asyncio.gather(*(work(number) for number in range(_WIDTH)))
        probing.cancel()
        self.report.rss_bytes.append(psutil.Process(self.server.process.pid).memory_info().rss)
        await examine(self.report, suspects, self.alone, shrink_seconds=30)

    async def _probe(self, suspects: list[tuple[str, Case]]) -> None:
        """The second client: how long it waits for a small read."""
        while True:
            waited_s, busy_s = await self._probe_once()
            self.report.longest_stall_s = max(self.report.longest_stall_s, min(waited_s, busy_s))
            if waited_s > STALL_SECONDS_MAX and busy_s > STALL_SECONDS_MAX / 2:
                running = [*self._running.values(), *self._recent]
                suspects.extend((f"the server {STALL} {waited_s:.1f} s", case) for case in running)
            await asyncio.sleep(_PROBE_EVERY_SECONDS)

    async def _probe_once(self) -> tuple[float, float]:
        """Seconds until the answer; seconds of them that the server was computing."""
        process = psutil.Process(self.server.process.pid)
        cpu_s, started_s = sum(process.cpu_times()[:2]), time.monotonic()
        reader, writer = await self._connected()
        try:
            writer.write(_PROBE)
            answer = await read_answer(reader, "GET")
            if answer is None or answer.status not in (200, 404, 429):
                say(f"the second client got {answer}")
        except Broken as problem:
            say(f"the second client got {problem}")
        finally:
            writer.close()
        return time.monotonic() - started_s, sum(process.cpu_times()[:2]) - cpu_s

    async def alone(self, case: Case) -> str | None:
        waits: list[float] = []

        async def watch() -> None:
            while True:
                waited_s, busy_s = await self._probe_once()
                waits.append(min(waited_s, 2 * busy_s))
                await asyncio.sleep(0.02)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0.03)
        problem = await self.send(case)
        waited = await self._probe_once()
        watching.cancel()
        longest_s = max([*waits, min(waited[0], 2 * waited[1])])
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
        target = Target(server, report)
        while report.cases < bounds.socket_cases and time.monotonic() < until_s:
            last = min(_ROUND_CASES, bounds.socket_cases - report.cases)
            try:
                await target.round(islice(cases, last))
            except OSError as problem:
                if server.process.poll() is None:
                    raise
                report.find(f"the server ended: {problem}", NO_CASE, is_reproduced=False)
                server.start()
            if report.cases % 5_000 < _ROUND_CASES:
                seconds = time.monotonic() - started_s
                say(
                    f"over sockets: {report.cases} cases, {report.cases / seconds:.0f}/s, "
                    f"{len(report.findings)} findings, RSS {report.rss_bytes[-1] / 1e6:.0f} MB"
                )
        log = server.log()
        if "Traceback" in log:
            at = log.index("Traceback")
            report.find(f"logged: {log[at : at + 1500]}", NO_CASE, is_reproduced=True)
    report.seconds = time.monotonic() - started_s
    _judge_memory(report)
    return report


def _judge_memory(report: Report) -> None:
    sizes = report.rss_bytes
    quarter = len(sizes) // 4
    if quarter:
        growth = median(sizes[-quarter:]) - median(sizes[quarter : 2 * quarter])
        report.rss_bytes = [*sizes[:: max(1, len(sizes) // 12)], sizes[-1]]
        if growth > GROWTH_BYTES_MAX:
            report.find(f"memory grew by {growth / 1e6:.0f} MB", NO_CASE, is_reproduced=True)
