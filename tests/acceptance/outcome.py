"""What a run of the tests proved: a skipped test proves nothing.

`pytest --acceptance` ends with what `judge` says of the run. A test with parameters passed if one
of them did and none failed: the same test may run on engines that are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from tests.acceptance.manifest import Requirement


class Outcome(IntEnum):
    """In the order in which one outweighs another, for the same test."""

    NOT_RUN = 0
    SKIPPED = 1
    PASSED = 2
    FAILED = 3


@dataclass(slots=True)
class Run:
    """Outcomes by node id, without parameters."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    skip_reasons: dict[str, str] = field(default_factory=dict)

    def note(self, node_id: str, outcome: Outcome, reason: str = "") -> None:
        name = node_id.partition("[")[0]
        self.outcomes[name] = max(outcome, self.outcomes.get(name, outcome))
        if outcome is Outcome.SKIPPED:
            self.skip_reasons[name] = reason

    def of(self, test: str) -> Outcome:
        return self.outcomes.get(test, Outcome.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Verdict:
    proven: tuple[str, ...]
    in_part: Mapping[str, str]
    """Rows of whose tests some did not run, and why."""
    unproven: Mapping[str, str]
    """Rows of whose tests none passed, or one failed."""

    def lines(self) -> list[str]:
        count = f"{len(self.proven)} rows proven by this run"
        lines = [f"{count}, {len(self.in_part)} in part, {len(self.unproven)} unproven"]
        for word, rows in (("unproven", self.unproven), ("in part", self.in_part)):
            lines += [f"{word}: {row} ({why})" for row, why in rows.items()]
        return lines


def judge(requirements: Iterable[Requirement], run: Run) -> Verdict:
    proven: list[str] = []
    in_part: dict[str, str] = {}
    unproven: dict[str, str] = {}
    for row in requirements:
        if not row.tests:
            continue
        outcomes = {test: run.of(test) for test in row.tests}
        lacking = [test for test, outcome in outcomes.items() if outcome is not Outcome.PASSED]
        if not lacking:
            if row.open is None:
                proven.append(row.id)
            else:
                in_part[row.id] = row.open
            continue
        why = "; ".join(sorted({_why(test, run) for test in lacking}))
        has_failed = Outcome.FAILED in outcomes.values()
        (unproven if has_failed or len(lacking) == len(outcomes) else in_part)[row.id] = why
    return Verdict(tuple(proven), in_part, unproven)


def _why(test: str, run: Run) -> str:
    match run.of(test):
        case Outcome.FAILED:
            return f"failed: {test}"
        case Outcome.SKIPPED:
            return f"skipped: {run.skip_reasons.get(test) or test}"
    return f"not run: {test}"
