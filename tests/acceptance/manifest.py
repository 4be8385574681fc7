"""Which acceptance id is proved by which test: `requirements.toml` against the markers in tests/.

Run `python -m tests.acceptance.manifest` to see where the two differ, and add `--write` to bring
the file up to date. `--report` counts the rows by what answers them. Which of the tests really ran
is another question: `pytest --acceptance` (as `make test` does) ends with the rows whose tests were
skipped. Markers are read from the syntax tree, so nothing is imported and a test file whose
optional dependency is absent still counts.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS_FILE = Path(__file__).with_name("requirements.toml")

AREAS = ("keep", "serve", "find", "pull", "consult", "push", "scale", "process")
KINDS = ("G", "O", "B", "Q", "X")

# None of the ids of these areas may be merely planned.
DELIVERED_AREAS: tuple[str, ...] = AREAS

LINE_CHARS_MAX = 100


# ---- the file ----


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    area: str
    kind: str
    tests: tuple[str, ...] = ()
    planned: bool = False
    reason: str | None = None
    sum: tuple[str, ...] = ()
    """The rows that this one is the sum of."""
    benchmark: str | None = None
    """Beside tests: what measures the row's own figure."""
    nightly: str | None = None
    """Beside tests: what does for as long as the row asks what they do for seconds."""
    open: str | None = None
    """Beside tests: what of the row nothing proves yet."""
    note: str | None = None


class ManifestError(Exception):
    """The file cannot be read as a manifest."""


def load(text: str) -> tuple[Requirement, ...]:
    """The rows in file order. TOML itself refuses an id that appears twice."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(str(error)) from error
    return tuple(_requirement(id_, table) for id_, table in tables.items())


def _requirement(id_: str, table: Mapping[str, Any]) -> Requirement:
    values = dict(table)
    tests = values.pop("tests", [])
    parts = values.pop("sum", [])
    if values.get("planned", True) is not True:
        raise ManifestError(f"{id_}: planned is true or absent")
    try:
        return Requirement(id=id_, tests=tuple(tests), sum=tuple(parts), **values)
    except TypeError as error:
        raise ManifestError(f"{id_}: {error}") from error


# ---- the markers ----


@dataclass(frozen=True, slots=True)
class Markers:
    tests_by_id: Mapping[str, tuple[str, ...]]
    """Requirement id to the sorted node ids of the tests that carry it."""
    all_tests: frozenset[str]
    """Every test found, marked or not."""
    faults: tuple[str, ...] = ()
    """Markers that belong to no test, or whose ids cannot be read without running the code."""


@dataclass(slots=True)
class _Findings:
    tests_by_id: dict[str, set[str]] = field(default_factory=dict)
    all_tests: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


def scan(tests_dir: Path, root: Path) -> Markers:
    findings = _Findings()
    for path in sorted(tests_dir.rglob("*.py")):
        _scan_file(path, path.relative_to(root).as_posix(), findings)
    return Markers(
        tests_by_id={id_: tuple(sorted(tests)) for id_, tests in findings.tests_by_id.items()},
        all_tests=frozenset(findings.all_tests),
        faults=tuple(findings.faults),
    )


def _scan_file(path: Path, relative_path: str, findings: _Findings) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"), filename=relative_path)
    attributed: set[ast.expr] = set()
    if path.match("test_*.py") or path.match("*_test.py"):
        for node_id, markers in _tests_in(module.body, relative_path, ()):
            findings.all_tests.add(node_id)
            for marker in markers:
                attributed.add(marker.func)
                for id_ in _ids_of(marker):
                    findings.tests_by_id.setdefault(id_, set()).add(node_id)
    # What is left would be lost in silence: an alias, a shared table of parameters, a mark on a
    # helper or on a class without tests. It is a fault, so that it gets moved to where it counts.
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and _is_marker(node) and node not in attributed:
            findings.faults.append(
                f"{relative_path}:{node.lineno}: this requirement marker belongs to no test"
            )
        if isinstance(node, ast.Call) and _is_marker(node.func) and not _is_readable(node):
            findings.faults.append(
                f"{relative_path}:{node.lineno}: a requirement marker takes ids as plain strings"
            )


def _tests_in(
    body: Sequence[ast.stmt], prefix: str, inherited: tuple[ast.Call, ...]
) -> Iterator[tuple[str, tuple[ast.Call, ...]]]:
    """Node id and markers of each test pytest would collect from this module or class body."""
    inherited += tuple(_markers_within(_pytestmark_values(body)))
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name.startswith("test"):
                own = _markers_within(statement.decorator_list)
                yield f"{prefix}::{statement.name}", (*inherited, *own)
            case ast.ClassDef() if statement.name.startswith("Test"):
                own = _markers_within(statement.decorator_list)
                yield from _tests_in(
                    statement.body, f"{prefix}::{statement.name}", (*inherited, *own)
                )


def _pytestmark_values(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield value
            case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value):
                yield value


def _markers_within(expressions: Iterable[ast.expr]) -> Iterator[ast.Call]:
    # Walks inside, so that a mark in `pytest.param(..., marks=...)` counts for its test.
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and _is_marker(node.func):
                yield node


def _is_marker(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="requirement", value=ast.Attribute(attr="mark")):
            return True
        case ast.Attribute(attr="requirement", value=ast.Name(id="mark")):
            return True
    return False


def _ids_of(marker: ast.Call) -> Iterator[str]:
    for argument in marker.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def _is_readable(marker: ast.Call) -> bool:
    return bool(marker.args) and not marker.keywords and len(marker.args) == len([*_ids_of(marker)])


# ---- what must hold ----


def faults_of_form(requirements: Iterable[Requirement]) -> list[str]:
    """Each id has a known area and kind, and is answered in exactly one way."""
    faults: list[str] = []
    for row in requirements:
        if row.area not in AREAS:
            faults.append(f"{row.id}: unknown area {row.area!r}")
        if row.kind not in KINDS:
            faults.append(f"{row.id}: unknown kind {row.kind!r}")
        answers = (bool(row.tests), row.planned, row.reason is not None, bool(row.sum))
        if answers.count(True) != 1:
            faults.append(f"{row.id}: needs one of tests, planned, reason, sum")
        elif not row.tests and (row.benchmark or row.nightly or row.open):
            faults.append(f"{row.id}: benchmark, nightly and open stand beside tests")
        if row.reason is not None and (not row.reason.strip() or row.note is not None):
            faults.append(f"{row.id}: a reason is one sentence and stands without a note")
    return faults


def faults_of_delivery(
    requirements: Iterable[Requirement], delivered_areas: Sequence[str]
) -> list[str]:
    return [
        f"{row.id}: still {'planned' if row.planned else 'open'}, but {row.area} is delivered"
        for row in requirements
        if (row.planned or row.open) and row.area in delivered_areas
    ]


def faults_of_sums(requirements: Iterable[Requirement]) -> list[str]:
    rows = {row.id: row for row in requirements}
    return [
        f"{row.id}: a sum of {part}, " + ("a sum itself" if part in rows else "which is no row")
        for row in rows.values()
        for part in row.sum
        if part not in rows or rows[part].sum
    ]


def faults_of_marking(requirements: Iterable[Requirement], markers: Markers) -> list[str]:
    """The file lists exactly the tests that carry each id."""
    rows = {row.id: row for row in requirements}
    faults = [*markers.faults, *_unknown_ids(rows, markers)]
    for row in rows.values():
        marked = markers.tests_by_id.get(row.id, ())
        faults.extend(
            f"{row.id}: {test} carries the marker but is not listed"
            for test in sorted({*marked} - {*row.tests})
        )
        for test in sorted({*row.tests} - {*marked}):
            lack = "lacks the marker" if test in markers.all_tests else "does not exist"
            faults.append(f"{row.id}: {test} is listed but {lack}")
    return faults


def _unknown_ids(known: Iterable[str], markers: Markers) -> list[str]:
    return [
        f"{id_}: unknown id, marked on {', '.join(markers.tests_by_id[id_])}"
        for id_ in sorted({*markers.tests_by_id} - {*known})
    ]


# ---- where each row stands ----

STANDINGS = (
    "proven by tests",
    "measured by a benchmark, held to four times the figure by tests",
    "proven at length by a nightly target, for seconds by tests",
    "proven in part",
    "planned",
    "answered by a reason",
)


def standing(row: Requirement, rows: Mapping[str, Requirement]) -> str:
    """What answers the row, if all its tests run; a sum stands where its weakest part does."""
    if row.sum:
        parts = [standing(rows[part], rows) for part in row.sum]
        return max((part for part in parts if part != STANDINGS[5]), key=STANDINGS.index)
    proven, measured, nightly, in_part, planned, reason = STANDINGS
    if row.planned:
        return planned
    if row.reason is not None:
        return reason
    if row.open is not None:
        return in_part
    if row.nightly is not None:
        return nightly
    return measured if row.benchmark is not None else proven


def report(requirements: Iterable[Requirement]) -> str:
    rows = {row.id: row for row in requirements}
    ids: dict[str, list[str]] = {name: [] for name in STANDINGS}
    for row in rows.values():
        ids[standing(row, rows)].append(row.id)
    lines = [f"{len(rows)} rows"]
    for name, found in ids.items():
        named = "" if name == STANDINGS[0] else f": {' '.join(found)}"
        lines.append(f"{len(found):4} {name}{named}")
    return "\n".join(lines) + "\n"


# ---- bringing the file up to date ----

_HEADER = re.compile(r'^\["([^"\n]+)"\]$', re.MULTILINE)
_TESTS = re.compile(r"^tests = \[[^\]]*\]\n", re.MULTILINE)
_PLANNED = re.compile(r"^planned = .*\n", re.MULTILINE)
_KIND = re.compile(r"^kind = .*\n", re.MULTILINE)


def with_tests(text: str, tests_by_id: Mapping[str, tuple[str, ...]]) -> str:
    """The same text with the tests lists replaced, and `planned` gone where there now are tests.

    An id that loses its last test does not become planned again: lost proof should be noticed.
    """
    preamble, *rest = _HEADER.split(text)
    tables = zip(rest[::2], rest[1::2], strict=True)
    return preamble + "".join(
        f'["{id_}"]{_table_with_tests(body, tests_by_id.get(id_, ()))}' for id_, body in tables
    )


def _table_with_tests(body: str, tests: tuple[str, ...]) -> str:
    line = _tests_line(tests)
    if _TESTS.search(body):
        body = _TESTS.sub(lambda _: line, body, count=1)
    elif tests:
        body = _KIND.sub(lambda kind: kind[0] + line, body, count=1)
    return _PLANNED.sub("", body, count=1) if tests else body


def _tests_line(tests: tuple[str, ...]) -> str:
    line = "tests = [" + ", ".join(f'"{test}"' for test in tests) + "]\n"
    if len(line.rstrip()) <= LINE_CHARS_MAX:
        return line
    return "tests = [\n" + "".join(f'    "{test}",\n' for test in tests) + "]\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.manifest")
    parser.add_argument("--write", action="store_true", help="update requirements.toml")
    parser.add_argument("--report", action="store_true", help="count the rows by what answers them")
    options = parser.parse_args(arguments)

    text = REQUIREMENTS_FILE.read_text(encoding="utf-8")
    if options.report:
        sys.stdout.write(report(load(text)))
        return 0
    markers = scan(ROOT / "tests", ROOT)
    # No rewriting mends these: they need the hand that placed the marker.
    faults = [*markers.faults, *_unknown_ids((row.id for row in load(text)), markers)]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)

    current = with_tests(text, markers.tests_by_id)
    if options.write:
        REQUIREMENTS_FILE.write_text(current, encoding="utf-8", newline="\n")
        return 1 if faults else 0
    difference = difflib.unified_diff(
        text.splitlines(keepends=True), current.splitlines(keepends=True), "listed", "marked"
    )
    sys.stdout.writelines(difference)
    return 1 if faults or current != text else 0


if __name__ == "__main__":
    sys.exit(main())
