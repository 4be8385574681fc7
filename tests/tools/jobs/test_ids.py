"""The id of a sync as callers see it, and as it is stored."""

from __future__ import annotations

import re

import pytest

from zibaldone.model.job import new_job_id
from zibaldone.tools.jobs.ids import shown_id, stored_id

SHOWN = re.compile(r"sync-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


def test_one_form_is_computed_from_the_other_and_keeps_the_order() -> None:
    stored = sorted({new_job_id() for _ in range(2_000)} | {"0" * 26, "019a8c1f2b3" + "f" * 15})
    shown = [shown_id(job_id, "sync") for job_id in stored]
    assert all(SHOWN.fullmatch(name) for name in shown)
    assert shown == sorted(shown)
    assert len({*shown}) == len(stored)
    assert [stored_id(name) for name in shown] == stored


def test_the_time_is_when_the_job_was_added() -> None:
    assert shown_id(f"{1_768_816_800_123:011x}{7:015x}", "sync").startswith(
        "sync-2026-01-19T10:00:00.123"
    )


@pytest.mark.parametrize(
    "name",
    [
        "019a8c1f2b3" + "f" * 15,
        "nothing",
        "sync-",
        "sync-2026-13-01T00:00:00.0000000000000000000000Z",
        "sync-1969-12-31T23:59:59.0000000000000000000000Z",
        "sync-2026-01-19T10:00:00.1239999999999999999999Z",
        "sync-2026-01-19T10:00:00Z",
        "sync-\u0662026-01-19T10:00:00.1230000000000000000000Z",
    ],
)
def test_what_was_never_shown_so_stays_as_it_is(name: str) -> None:
    assert stored_id(name) == name


def test_ids_of_other_kinds_are_shown_as_they_are() -> None:
    job_id = new_job_id()
    assert shown_id(job_id, "vectors") == job_id
    assert shown_id("odd", "sync") == "odd"
