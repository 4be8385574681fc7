"""The official conformance suite, and how its results are compared with what is announced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients import conformance
from tests.clients.conformance import REVISIONS, Outcome, faults, report
from tests.clients.fixtures.surface import ConformanceSurface
from zibaldone.protocol.surface import Surface

# The first test waits for the suite to be installed.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with conformance.conformance_server() as running:
        yield running


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_suite_finds_what_is_announced_and_nothing_else(url: str, revision: str) -> None:
    outcomes = conformance.run_suite(url, revision)
    assert faults(outcomes, conformance.expected().get(revision, {})) == []


def test_the_scenarios_of_tasks_find_what_is_announced_and_nothing_else(url: str) -> None:
    outcomes = conformance.run_tasks(url)
    assert len(outcomes) == 10
    assert faults(outcomes, conformance.expected()[conformance.TASKS]) == []


def test_what_is_announced_belongs_to_a_revision_that_runs() -> None:
    assert conformance.expected().keys() <= {*REVISIONS, conformance.TASKS}


def test_fixtures_add_to_the_product_and_accept_nothing_that_it_refuses() -> None:
    assert ConformanceSurface.subscribe is Surface.subscribe


PASSING = Outcome("ping", is_required=True, passed=2)
WARNING = Outcome("tools-list", is_required=True, passed=1, warnings=("order: it changes",))
FAILING = Outcome("caching", is_required=True, passed=3, failures=("ttl: missing",))
EXTRA = Outcome("tasks-lifecycle", is_required=False, failures=("tasks: none",))


class TestComparison:
    def test_a_pass_needs_no_words(self) -> None:
        assert faults([PASSING, EXTRA], {}) == []

    def test_an_announced_failure_is_no_fault(self) -> None:
        assert faults([FAILING, WARNING], {"caching": "Why.", "tools-list": "Why."}) == []

    def test_an_unannounced_failure_is_told_with_what_failed(self) -> None:
        assert faults([FAILING], {}) == ["caching: fail, unannounced: ttl: missing"]

    def test_an_unannounced_warning_is_a_fault_as_well(self) -> None:
        assert faults([WARNING], {}) == ["tools-list: warn, unannounced: order: it changes"]

    @pytest.mark.parametrize("outcomes", [[PASSING], []], ids=["it passes", "it is not required"])
    def test_a_line_that_no_longer_holds_is_a_fault(self, outcomes: list[Outcome]) -> None:
        (fault,) = faults(outcomes, {"ping": "Why."})
        assert fault.startswith("ping: ")


class TestReport:
    def test_counts_what_is_required_and_gives_the_reasons(self) -> None:
        told = report("2025-11-25", [PASSING, FAILING, EXTRA], {"caching": "Why."}, show_all=False)
        assert "## 2025-11-25: 1 of 2 required scenarios pass" in told
        assert "| caching  | fail   | 3      | Why. |" in told
        assert "tasks-lifecycle" not in told

    def test_shows_the_rest_on_demand_and_marks_a_surprise(self) -> None:
        told = report("2025-11-25", [FAILING, EXTRA], {}, show_all=True)
        assert "**unexpected**" in told
        assert "| not required |" in told
