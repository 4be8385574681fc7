"""What a run proved: rows whose tests were skipped show as unproven."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.acceptance.manifest import ROOT, Requirement
from tests.acceptance.outcome import Outcome, Run, judge

ROWS = [Requirement("T1", "keep", "G", tests=("a::one", "a::two"))]


def run_of(*outcomes: tuple[str, Outcome]) -> Run:
    run = Run()
    for node_id, outcome in outcomes:
        run.note(node_id, outcome, "no nginx" if outcome is Outcome.SKIPPED else "")
    return run


@pytest.mark.parametrize(
    ("one", "two", "word"),
    [
        (Outcome.PASSED, Outcome.PASSED, "proven"),
        (Outcome.PASSED, Outcome.SKIPPED, "in part"),
        (Outcome.SKIPPED, Outcome.SKIPPED, "unproven"),
        (Outcome.PASSED, Outcome.FAILED, "unproven"),
        (Outcome.PASSED, Outcome.NOT_RUN, "in part"),
        (Outcome.NOT_RUN, Outcome.NOT_RUN, "unproven"),
    ],
)
def test_a_row_is_proven_when_all_its_tests_passed(one: Outcome, two: Outcome, word: str) -> None:
    verdict = judge(ROWS, run_of(("a::one", one), ("a::two", two)))
    where = {"proven": verdict.proven, "in part": verdict.in_part, "unproven": verdict.unproven}
    assert [name for name, rows in where.items() if "T1" in rows] == [word]


def test_one_of_several_parameters_is_enough_unless_another_fails() -> None:
    two = ("a::two", Outcome.PASSED)
    engines = (("a::one[a]", Outcome.SKIPPED), ("a::one[b]", Outcome.PASSED))
    assert judge(ROWS, run_of(*engines, two)).proven == ("T1",)
    assert judge(ROWS, run_of(*reversed(engines), two)).proven == ("T1",)
    failed = (("a::one[a]", Outcome.FAILED), ("a::one[b]", Outcome.PASSED))
    assert "T1" in judge(ROWS, run_of(*failed, two)).unproven


def test_the_reason_is_told() -> None:
    verdict = judge(ROWS, run_of(("a::one", Outcome.SKIPPED), ("a::two", Outcome.SKIPPED)))
    assert verdict.lines() == [
        "0 rows proven by this run, 0 in part, 1 unproven",
        "unproven: T1 (skipped: no nginx)",
    ]


def test_what_is_open_stays_open() -> None:
    row = Requirement("T1", "push", "X", tests=("a::one",), open="The client.")
    assert judge([row], run_of(("a::one", Outcome.PASSED))).in_part == {"T1": "The client."}


def test_without_nginx_its_rows_are_unproven() -> None:
    environment = {**os.environ, "TESTS_NGINX": ""}
    test = "tests/web/test_nginx.py::test_json_through_the_proxy"
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--acceptance", test],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "unproven: 001/PR.1 (skipped: nginx is not installed" in result.stdout, result.stdout
    assert "0 rows proven by this run" in result.stdout
