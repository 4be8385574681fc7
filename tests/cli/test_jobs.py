"""jobs: list, show, cancel and retry, for people and for programs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.engines import backend_of
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.job import NewJob, Progress, Setback
from zibaldone.store.port import Store

NOW = 1_800_000_000_000_000


def with_store(cli: Commands, work: Any) -> Any:
    store: Store = backend_of(cli.data).open(Limits())
    try:
        return asyncio.run(work(store))
    finally:
        store.close()


def add(cli: Commands, *jobs: NewJob) -> list[str]:
    ids: list[str] = with_store(
        cli, lambda store: store.write(Tenant(), lambda writer: writer.queue.add(jobs))
    )
    return ids


def work_on(cli: Commands, outcome: str) -> None:
    def work(upkeep: Any) -> None:
        (lease,) = upkeep.queue.lease("work", limit=1, now_us=NOW, until_us=NOW + 9, owner="test")
        upkeep.queue.progress(lease, Progress(2, 4, "rows"))
        if outcome == "parked":
            upkeep.queue.park([Setback(lease, "The shop\nis closed.")], now_us=NOW)
        elif outcome == "done":
            upkeep.queue.finish([lease], now_us=NOW, result={"rows": 4})

    with_store(cli, lambda store: store.upkeep(work))


def job(number: int = 0, **more: Any) -> NewJob:
    return NewJob("work", created_at_us=NOW, job_id=f"{number:026x}", **more)


def test_no_jobs_are_no_output(cli: Commands) -> None:
    cli.ok("key", "create")  # makes the store, and no job
    assert cli.ok("jobs") == ""
    assert cli.json("jobs") == {"jobs": [], "next_after": None}


def test_a_list(cli: Commands) -> None:
    add(cli, job(1, subject="shop"), job(2))
    work_on(cli, "running")
    assert cli.ok("jobs").splitlines() == [
        "id                          kind  state    created               subject",
        f"{2:026x}  work  queued   2027-01-15T08:00:00Z  -",
        f"{1:026x}  work  running  2027-01-15T08:00:00Z  shop     2/4 rows",
    ]
    assert cli.ok("jobs", "--state", "queued").splitlines()[1:] == [
        f"{2:026x}  work  queued  2027-01-15T08:00:00Z  -"
    ]
    assert cli.ok("jobs", "--kind", "other") == ""
    answer = cli.json("jobs", "--limit", "1")
    assert [one["job_id"] for one in answer["jobs"]] == [f"{2:026x}"]
    assert answer["next_after"] == f"{2:026x}"
    page = cli("jobs", "--limit", "1")
    assert f"--after {2:026x}" in page.stderr
    assert f"{1:026x}" in cli.ok("jobs", "--after", f"{2:026x}")


def test_a_failed_job_says_why_on_one_line(cli: Commands) -> None:
    (job_id,) = add(cli, job())
    work_on(cli, "parked")
    assert cli.ok("jobs").splitlines()[1].endswith("The shop is closed.")
    shown = cli.ok("jobs", "show", job_id)
    assert "state        parked\n" in shown
    assert "error        The shop is closed.\n" in shown


def test_one_job(cli: Commands) -> None:
    (job_id,) = add(cli, job(payload={"full": True}))
    work_on(cli, "done")
    assert cli.ok("jobs", "show", job_id).splitlines() == [
        f"job_id       {job_id}",
        "kind         work",
        "state        done",
        "created_at   2027-01-15T08:00:00.000000Z",
        "started_at   2027-01-15T08:00:00.000000Z",
        "finished_at  2027-01-15T08:00:00.000000Z",
        "attempts     0",
        "crashes      0",
        "progress     2/4 rows",
        'payload      {"full":true}',
        'result       {"rows":4}',
    ]
    answer = cli.json("jobs", "show", job_id)
    assert (answer["state"], answer["result"]) == ("done", {"rows": 4})


def test_cancel_and_retry(cli: Commands) -> None:
    (job_id,) = add(cli, job())
    assert cli.ok("jobs", "cancel", job_id) == f"cancelled {job_id}\n"
    assert cli.json("jobs", "show", job_id)["state"] == "cancelled"
    assert cli.ok("jobs", "retry", job_id) == f"queued {job_id}; it runs when a server does\n"
    assert cli.json("jobs", "retry", job_id)["state"] == "queued"
    work_on(cli, "running")
    assert cli.ok("jobs", "cancel", job_id) == f"asked {job_id} to stop\n"
    assert cli.json("jobs", "cancel", job_id)["cancel_requested"] is True


@pytest.mark.parametrize("command", ["show", "cancel", "retry"])
def test_a_job_that_is_not_there(cli: Commands, command: str) -> None:
    cli.ok("put", "any", stdin="x")
    assert cli.error("jobs", command, "0" * 26) == (4, "NOT_FOUND")


def test_a_job_that_is_done_cannot_be_cancelled_or_retried(cli: Commands) -> None:
    (job_id,) = add(cli, job())
    work_on(cli, "done")
    assert cli.error("jobs", "cancel", job_id) == (5, "CONFLICT")
    assert cli.error("jobs", "retry", job_id) == (5, "CONFLICT")


def test_options_of_the_list_do_not_pass_through_to_a_command(cli: Commands) -> None:
    (job_id,) = add(cli, job())
    assert cli("jobs", "--limit", "0").exit_code == 2
    assert cli.json("jobs", "show", job_id)["job_id"] == job_id
