"""The fuzzer: `make fuzz`, or `python -m tests.nightly.fuzz`.

FUZZ_CASES          in process: the ASGI application without a socket          (1 000 000)
FUZZ_SOCKET_CASES   over sockets, against a server in a process of its own        (50 000)
FUZZ_SECONDS        stop after so long, whatever is left                     (no such bound)
FUZZ_SEED           the same seed gives the same cases                                 (1)
FUZZ_FILE_SHARE     share of the cases in process that ingest a file               (0.005)
FUZZ_CORPUS         where failing cases are kept                 (tests/nightly/corpus.jsonl)

Looked for: an answer that `verdict` does not allow, an error in the product's log, a stall of the
event loop (over sockets: of a second client) longer than 1 s, memory that grows. A failing case is
made as short as it goes, printed, and kept for `tests/nightly/test_fuzz.py` to replay.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tests.nightly.bench import (
    Heartbeat,
    MemorySample,
    StillBusy,
    errors_logged,
    exchange,
    prepare,
    serving,
    settled_memory,
)
from tests.nightly.cases import Case, Cases, Surface, request_of, tool_of
from tests.nightly.second_client import Late, control
from tests.nightly.shrink import shrunk
from tests.nightly.verdict import Answer, is_out_of_time, is_server_error, problem_of
from zibaldone.web.app import App

CORPUS = Path(__file__).parent / "corpus.jsonl"
EPOCH_CASES = 25_000
"""Cases on one store. Then a new one is made: how much is stored stays the same, so any growth of
the process from epoch to epoch is a leak."""
RSS_GROWTH_BYTES_MAX = 64_000_000
MALLOC_GROWTH_BYTES_MAX = 8_000_000
BLOCKS_GROWTH_MAX = 50_000
"""From the end of the second epoch to the end of the last: what allocators keep for themselves, and
what is in use by C code and by Python."""
STALL = "did not get round for"
DEADLINE = "504 DEADLINE_EXCEEDED"
_ROUND_CASES = 400
_WIDTH = 8
_IDLE_SECONDS = 2.0
_SUSPECTS_MAX = 40
_TRIES_IN_COMPANY = 3
_NUMBERS = re.compile(r"[\d.]+")
NO_CASE: Case = {"kind": "raw", "parts": [], "is_split": False, "is_closed": False}
"""For what no single case is to blame for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    cases: int
    socket_cases: int
    seconds: float
    seed: int
    file_share: float = 0.005
    corpus: Path | None = None

    @classmethod
    def from_environment(cls) -> Bounds:
        given = os.environ.get
        return cls(
            cases=int(given("FUZZ_CASES", "1000000")),
            socket_cases=int(given("FUZZ_SOCKET_CASES", "50000")),
            seconds=float(given("FUZZ_SECONDS", "inf")),
            seed=int(given("FUZZ_SEED", "1")),
            file_share=float(given("FUZZ_FILE_SHARE", "0.005")),
            corpus=Path(given("FUZZ_CORPUS", str(CORPUS))),
        )


@dataclass(frozen=True, slots=True)
class Suspect:
    problem: str
    case: Case
    company: tuple[Case, ...] = ()
    """The cases around it, itself included."""


@dataclass(slots=True)
class Finding:
    problem: str
    case: Case
    is_reproduced: bool
    count: int = 1


@dataclass(slots=True)
class Report:
    """What one phase saw."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    undocumented_5xx: int = 0
    stalls: int = 0
    longest_stall_s: float = 0.0
    out_of_time: int = 0
    """Conversions that were ended because the machine gave them too little CPU time."""
    late_once: int = 0
    """Deadlines that passed once and, tried again in the same company, were kept."""
    rss_bytes: list[int] = field(default_factory=list)
    memory: list[MemorySample] = field(default_factory=list)
    """In process: at the end of each epoch, with nothing open."""

    def find(self, problem: str, case: Case, *, is_reproduced: bool) -> None:
        key = signature(problem, case)
        if key in self.findings:
            self.findings[key].count += 1
            return
        self.findings[key] = Finding(problem, case, is_reproduced)
        mark = "" if is_reproduced else " (seen once, not again)"
        say(f"FINDING{mark}: {problem}\n  {json.dumps(case)[:2_000]}")

    def note_server_error(self, problem: str) -> None:
        self.undocumented_5xx += is_server_error(problem)

    def is_known(self, problem: str, case: Case) -> bool:
        return signature(problem, case) in self.findings

    def figures(self) -> dict[str, Any]:
        return {
            "phase": self.name,
            "cases": self.cases,
            "seconds": round(self.seconds, 1),
            "cases_per_second": round(self.cases / max(self.seconds, 0.001)),
            "findings": len(self.findings),
            "undocumented_5xx": self.undocumented_5xx,
            "stalls_over_1s": self.stalls,
            "longest_stall_ms": round(self.longest_stall_s * 1000),
            "conversions_out_of_time": self.out_of_time,
            "late_once": self.late_once,
            "rss_mb": [round(size / 1e6, 1) for size in self.rss_bytes],
            "malloc_mb": [round(sample.malloc_bytes / 1e6, 1) for sample in self.memory],
            "python_blocks": [sample.blocks for sample in self.memory],
            "outcomes": dict(self.outcomes.most_common(40)),
        }

    def line(self) -> str:
        """The whole run on one line."""
        sizes = self.rss_bytes or [0]
        return (
            f"{self.name}: {self.cases} cases in {self.seconds:.0f} s"
            f" ({self.cases / max(self.seconds, 0.001):.0f}/s), {len(self.findings)} findings, "
            f"{self.undocumented_5xx} undocumented 5xx, {self.stalls} stalls over"
            f" 1 s (longest {self.longest_stall_s * 1000:.0f} ms), {self.out_of_time} conversions"
            f" out of time, {self.late_once} late once, "
            f"RSS {sizes[0] / 1e6:.0f} MB first, {sizes[-1] / 1e6:.0f} MB last"
        )


def signature(problem: str, case: Case) -> tuple[str, str]:
    """Findings of one signature are taken for one."""
    return tool_of(case), _without_numbers(problem)[:120]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """In memory where there is such a place: what is fuzzed is not the disk."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class Bench:
    """One application under fuzz."""

    app: App
    folder: str
    """Where it may ingest files from."""
    report: Report
    late: Late = field(default_factory=Late)
    _running: dict[int, Case] = field(default_factory=dict)

    async def alone(self, case: Case) -> str | None:
        """What is wrong when nothing else runs."""
        request = request_of(case, self.folder)
        with errors_logged() as log:
            async with Heartbeat(late=self.late) as heart:
                answer = await exchange(self.app, request)
            problem = self._problem(case, answer, request.method)
        if heart.stalls:
            return f"the event loop {STALL} {max(heart.stalls):.1f} s"
        return problem or (f"logged: {log.messages[0]}" if log.messages else None)

    @staticmethod
    def _problem(case: Case, answer: Answer, method: str) -> str | None:
        return None if is_out_of_time(case, answer) else problem_of(answer, method)

    async def round(self, cases: Iterator[Case]) -> None:
        suspects: list[Suspect] = []
        recent: list[Case] = []

        def on_stall(seconds: float) -> None:
            running = [*self._running.values(), *recent][-_SUSPECTS_MAX:]
            problem = f"the event loop {STALL} {seconds:.1f} s"
            suspects.extend(Suspect(problem, case) for case in running)

        async def work(number: int) -> None:
            for case in cases:
                with heart.own_work():
                    request = request_of(case, self.folder)
                self._running[number] = case
                recent.append(case)
                del recent[: -4 * _WIDTH]
                answer = await exchange(self.app, request)
                with heart.own_work():
                    problem = self._problem(case, answer, request.method)
                    self.report.out_of_time += is_out_of_time(case, answer)
                self.report.outcomes[_outcome(answer.status, answer.body)] += 1
                if problem is not None:
                    suspects.append(Suspect(problem, case, tuple(recent)))
                self.report.cases += 1
                self._running.pop(number)

        with errors_logged() as log:
            async with Heartbeat(on_stall, self.late) as heart:
                await asyncio.gather(*(work(number) for number in range(_WIDTH)))
        self.report.stalls += len(heart.stalls)
        self.report.longest_stall_s = max(self.report.longest_stall_s, heart.longest_s)
        await examine(self.report, suspects, self.alone, shrink_seconds=60)
        if log.messages and not suspects:
            self.report.find(f"logged: {log.messages[0]}", recent[-1], is_reproduced=False)


async def examine(
    report: Report,
    suspects: list[Suspect],
    alone: Callable[[Case], Awaitable[str | None]],
    *,
    shrink_seconds: float,
) -> None:
    """Which case it was: each suspect is tried alone, and a guilty one made shorter.

    Of a stall everything that ran at the time is suspected, so the innocent are let go; where all
    are, it stays a finding without a case. A deadline that passed may be the doing of the cases
    around it, or of a machine that had no core to give: it is tried again together with them, some
    times, and counted apart if it keeps within its time. Any other problem stays a finding.
    """
    is_culprit_found = False
    unexplained = ""
    for suspect in suspects:
        problem, case = suspect.problem, suspect.case
        is_stall = STALL in problem
        if is_stall and is_culprit_found:
            continue
        if not is_stall and report.is_known(problem, case):
            report.note_server_error(problem)
            report.find(problem, case, is_reproduced=True)
            continue
        seen = await alone(case)
        if seen is None:
            if is_stall:
                unexplained = problem
            elif DEADLINE not in problem or await _again(suspect, alone):
                report.note_server_error(problem)
                report.find(problem, case, is_reproduced=DEADLINE in problem)
            else:
                report.late_once += 1
                say(f"late once, not again: {problem}\n  {json.dumps(case)[:500]}")
            continue
        report.note_server_error(seen)
        is_culprit_found |= is_stall
        kind = _without_numbers(seen)

        async def fails(shorter: Case, kind: str = kind) -> bool:
            return _without_numbers(await alone(shorter) or "") == kind

        shortest = case
        if not report.is_known(seen, case):
            shortest = await shrunk(case, fails, shrink_seconds)
        report.find(seen, shortest, is_reproduced=True)
    if unexplained and not is_culprit_found:
        report.find(f"{unexplained}, by no case alone", NO_CASE, is_reproduced=False)


async def _again(suspect: Suspect, alone: Callable[[Case], Awaitable[str | None]]) -> bool:
    """Whether the case fails again in the company that it had."""
    places = asyncio.Semaphore(_WIDTH)

    async def one(case: Case) -> bool:
        async with places:
            return DEADLINE in (await alone(case) or "")

    for _ in range(_TRIES_IN_COMPANY):
        if any(await asyncio.gather(*(one(case) for case in suspect.company))):
            return True
    return False


def _without_numbers(text: str) -> str:
    return _NUMBERS.sub("0", text)


def _outcome(status: int, body: bytes) -> str:
    found = re.search(rb'\\?"code\\?": ?\\?"?([A-Z_]+|-?\d+)', body[:600])
    return f"{status} {found[1].decode()}" if found else str(status)


async def in_process(bounds: Bounds, until_s: float, folder: Path) -> Report:
    with control() as second:
        return await _in_process(bounds, until_s, folder, second.late)


async def _in_process(bounds: Bounds, until_s: float, folder: Path, late: Late) -> Report:
    report = Report("in process")
    started_s = time.monotonic()
    cases: Iterator[Case] | None = None
    number = 0
    while report.cases < bounds.cases and time.monotonic() < until_s:
        files, data = folder / "files", folder / f"data{number}"
        files.mkdir(exist_ok=True)
        left = min(EPOCH_CASES, bounds.cases - report.cases)
        try:
            async with serving(data, ingest_roots=[str(files)]) as app:
                surface = await prepare(app)
                cases = cases or endless(surface, bounds)
                bench = Bench(app, str(files), report, late)
                while left > 0 and time.monotonic() < until_s:
                    some = min(_ROUND_CASES, left)
                    left -= some
                    await bench.round(islice(cases, some))
        except StillBusy as problem:
            report.find(str(problem), NO_CASE, is_reproduced=False)
        is_busy = await still_busy()
        if is_busy:
            report.find(
                "work goes on though every caller was answered", NO_CASE, is_reproduced=True
            )
        for used in (data, files):
            shutil.rmtree(used, ignore_errors=True)
        number += 1
        report.memory.append(settled_memory())
        report.rss_bytes.append(report.memory[-1].rss_bytes)
        report.seconds = time.monotonic() - started_s
        say(
            f"in process: {report.cases} cases, {report.cases / report.seconds:.0f}/s, "
            f"{len(report.findings)} findings, RSS {report.rss_bytes[-1] / 1e6:.0f} MB"
        )
        if is_busy:
            break  # it would take its share of every core, and be taken for the next ones' doing
    judge_memory(report)
    return report


async def still_busy() -> bool:
    cpu_s = time.process_time()
    await asyncio.sleep(_IDLE_SECONDS)
    return time.process_time() - cpu_s > _IDLE_SECONDS / 4


def endless(surface: Surface, bounds: Bounds) -> Iterator[Case]:
    return Cases(surface, random.Random(bounds.seed)).in_process(file_share=bounds.file_share)


def judge_memory(report: Report) -> None:
    if len(report.memory) < 4:
        return
    first, last = report.memory[1], report.memory[-1]
    if last.rss_bytes - first.rss_bytes > RSS_GROWTH_BYTES_MAX:
        report.find(f"memory grew: {first} to {last}", NO_CASE, is_reproduced=True)
    elif last.malloc_bytes - first.malloc_bytes > MALLOC_GROWTH_BYTES_MAX:
        report.find(f"memory in use grew: {first} to {last}", NO_CASE, is_reproduced=True)
    elif last.blocks - first.blocks > BLOCKS_GROWTH_MAX:
        report.find(f"Python's objects grew: {first} to {last}", NO_CASE, is_reproduced=True)


def keep(reports: list[Report], corpus: Path) -> None:
    """Add what is new to the corpus."""
    known = _known(corpus) if corpus.exists() else set()
    with corpus.open("a", encoding="utf-8") as file:
        for report in reports:
            for finding in report.findings.values():
                line = {"problem": finding.problem, "case": finding.case}
                is_new = finding.case != NO_CASE and json.dumps(finding.case) not in known
                if finding.is_reproduced and is_new:
                    file.write(json.dumps(line) + "\n")
                    known.add(json.dumps(finding.case))


def _known(corpus: Path) -> set[str]:
    lines = corpus.read_text(encoding="utf-8").splitlines()
    return {json.dumps(json.loads(line)["case"]) for line in lines if line.strip()}


def run(phase: Coroutine[Any, Any, Report]) -> Report:
    """Like asyncio.run, but without waiting for threads that may never end."""
    return asyncio.new_event_loop().run_until_complete(phase)


def main() -> int:
    from tests.nightly.fuzz_sockets import over_sockets

    bounds = Bounds.from_environment()
    until_s = time.monotonic() + bounds.seconds
    reports = []
    with scratch_folder() as folder:
        if bounds.cases:
            half_s = min(until_s, time.monotonic() + bounds.seconds * 0.7)
            reports.append(run(in_process(bounds, half_s, folder)))
        if bounds.socket_cases:
            reports.append(run(over_sockets(bounds, until_s, folder)))
    for report in reports:
        say(json.dumps(report.figures(), indent=1))
    findings = [finding for report in reports for finding in report.findings.values()]
    for finding in findings:
        say(json.dumps(dataclasses.asdict(finding))[:4_000])
    if findings and bounds.corpus is not None:
        keep(reports, bounds.corpus)
    for report in reports:
        say(report.line())
    say(f"{sum(report.cases for report in reports)} cases, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads that never end do not keep the report waiting
