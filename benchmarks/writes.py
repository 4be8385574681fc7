"""Documents acknowledged in a second, and the memory of an import.

    python -m benchmarks.writes [--quick]

The floor is a bare INSERT of the same text by apsw, with the pragmas of the product: no id to
check, no passages, no keyword index, no queue, no audit trail. On both sides an acknowledged write
is on disk.
"""

from __future__ import annotations

import itertools
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import orjson
import psutil

from benchmarks.load import request, send_all
from benchmarks.report import Finding, paired_ratio, table
from benchmarks.servers.process import ServerProcess, zibaldone
from zibaldone.limits import IMPORT_BATCH_DOCUMENTS_MAX
from zibaldone.store.sqlite.connection import Connection

WORDS_PER_DOCUMENT = 120
_FOLDERS = 500
_SAMPLE_SECONDS = 0.2
_MIB = 1024 * 1024

_VOCABULARY = [
    "".join(random.Random(number).choices("abdefgiklmnoprstuvw", k=3 + number % 8))
    for number in range(5_000)
]


def measure(*, quick: bool) -> list[Finding]:
    rounds, per_round = (3, 150) if quick else (7, 400)
    imported = 10_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        findings = _over_http(Path(folder), rounds, per_round)
        return findings + _by_import(Path(folder), imported)


def _over_http(folder: Path, rounds: int, per_round: int) -> list[Finding]:
    numbers = itertools.count()
    found: dict[str, list[float]] = {"one": [], "many": [], "floor": []}
    with zibaldone(folder / "served") as server, BareTable(folder / "bare-single.db") as bare:
        for _ in range(rounds):
            found["one"].append(_post(server, numbers, per_round, connections=1))
            found["floor"].append(bare.insert(per_round, per_commit=1))
            found["many"].append(_post(server, numbers, 4 * per_round, connections=32))
    return [
        _compared(
            "1 writer over HTTP", found["one"], found["floor"], "bare INSERTs, a commit each"
        ),
        _compared("32 writers over HTTP", found["many"], found["floor"], "the same"),
    ]


def _post(server: ServerProcess, numbers: Iterator[int], count: int, *, connections: int) -> float:
    documents = (
        {"path": f"notes/{number}", "content": text(number)}
        for number in itertools.islice(numbers, count)
    )
    made = [request("POST", "/documents", orjson.dumps(document)) for document in documents]
    return send_all(server, iter(made), connections=connections).per_second


class BareTable:
    """Text in a table, and nothing else."""

    def __init__(self, path: Path) -> None:
        connection = Connection(path, wait_seconds_max=5, create=True)
        self._raw: apsw.Connection = connection.raw
        self._raw.execute("PRAGMA journal_mode = WAL").fetchall()
        self._raw.execute("CREATE TABLE texts (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID")
        self._numbers = itertools.count()

    def insert(self, count: int, *, per_commit: int) -> float:
        numbers = list(itertools.islice(self._numbers, count))
        rows = [(f"notes/{number}", text(number)) for number in numbers]
        started_s = time.perf_counter()
        for first in range(0, count, per_commit):
            self._raw.execute("BEGIN IMMEDIATE")
            for row in rows[first : first + per_commit]:
                self._raw.execute("INSERT INTO texts VALUES (?, ?)", row)
            self._raw.execute("COMMIT")
        return count / (time.perf_counter() - started_s)

    def __enter__(self) -> BareTable:
        return self

    def __exit__(self, *error: object) -> None:
        self._raw.close()


def _by_import(folder: Path, count: int) -> list[Finding]:
    files = folder / "files"
    for number in range(_FOLDERS):
        (files / f"{number:03}").mkdir(parents=True)
    for number in range(count):
        (files / f"{number % _FOLDERS:03}" / f"{number:06}.md").write_text(text(number))
    with BareTable(folder / "bare-batched.db") as bare:
        batch = IMPORT_BATCH_DOCUMENTS_MAX
        before = bare.insert(count // 10, per_commit=batch)
        run = _import(files, folder / "imported", count)
        after = bare.insert(count // 10, per_commit=batch)
    floor = statistics.mean((before, after))
    return [
        _compared(
            f"import of {count:,} files", [run.per_second], [floor], f"bare, {batch} a commit"
        ),
        Finding(
            f"import of {count:,} files: memory, largest",
            f"{max(run.resident_mib):.0f} MiB",
            f"{run.resident_mib[len(run.resident_mib) // 10]:.0f} MiB after a tenth of it",
            max(run.resident_mib) / run.resident_mib[len(run.resident_mib) // 10],
        ),
        Finding(
            f"import of {count:,} files: memory, growth in the second half",
            f"{run.slope_mib():+.1f} MiB for each 100,000 documents",
            "",
        ),
    ]


@dataclass(frozen=True, slots=True)
class ImportRun:
    documents: int
    seconds: float
    resident_mib: list[float]

    @property
    def per_second(self) -> float:
        return self.documents / self.seconds

    def slope_mib(self) -> float:
        """Growth over the second half, when everything that fills up once is full."""
        half = self.resident_mib[len(self.resident_mib) // 2 :]
        slope, _ = statistics.linear_regression(range(len(half)), half)
        return slope * len(self.resident_mib) * 100_000 / self.documents


def _import(files: Path, data: Path, count: int) -> ImportRun:
    zibaldone_ = (sys.executable, "-m", "zibaldone", "--data", str(data))
    command = [*zibaldone_, "import", str(files), "--json"]
    started_s = time.perf_counter()
    resident_mib = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=data.parent
    ) as process:
        measured = psutil.Process(process.pid)
        while process.poll() is None:
            resident_mib.append(measured.memory_info().rss / _MIB)
            time.sleep(_SAMPLE_SECONDS)
        seconds = time.perf_counter() - started_s
        assert process.stdout is not None
        summary = orjson.loads(process.stdout.read())
    assert summary["created"] == count, summary
    # The last sample may see a process that is already being taken down.
    return ImportRun(count, seconds, resident_mib[:-1])


def text(number: int) -> str:
    chance = random.Random(number)
    return f"# Note {number}\n\n" + " ".join(chance.choices(_VOCABULARY, k=WORDS_PER_DOCUMENT))


def _compared(what: str, ours: list[float], floor: list[float], name: str) -> Finding:
    return Finding(
        f"{what}: documents acknowledged in a second",
        f"{statistics.median(ours):,.0f}",
        f"{statistics.median(floor):,.0f} ({name})",
        paired_ratio(ours, floor),
    )


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
