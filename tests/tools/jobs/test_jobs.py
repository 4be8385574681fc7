"""Jobs over REST and MCP: seen in their own namespace, cancelled and retried by those who may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.engines import backend_of
from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import Mcp
from tests.drivers.server import Server
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.job import VECTORS, NewJob, Progress, Setback

NOW = 1_800_000_000_000_000
ONE, OTHER = Tenant("one"), Tenant("other")


@dataclass(frozen=True, slots=True)
class Served:
    server: Server
    kept: Kept
    """The same store, for what only workers do."""
    admin: Key
    reader: Key
    other: Key
    folder: Key
    """Of the same namespace as the admin's, for one folder."""

    def get(self, url: str, key: Key | None = None, **params: Any) -> httpx.Response:
        headers = (key or self.reader).headers
        return self.server.client.get(url, params=params, headers=headers)

    def post(self, url: str, key: Key | None = None) -> httpx.Response:
        return self.server.client.post(url, headers=(key or self.admin).headers)

    def add(self, tenant: Tenant = ONE, kind: str = "sync", **more: Any) -> str:
        job = NewJob(kind, **{"created_at_us": NOW, **more})
        return self.kept.write(lambda writer: writer.queue.add([job]), tenant)[0]

    def lease(self, kind: str) -> Any:
        (lease,) = self.kept.upkeep(
            lambda upkeep: upkeep.queue.lease(
                kind, limit=1, now_us=NOW, until_us=NOW + 20_000_000, owner="test"
            )
        )
        return lease


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("jobs") / "data"
    admin = ("--effect", "read", "--effect", "write", "--effect", "admin")
    keys = [
        create_key(data, "--namespace", "one", *admin),
        create_key(data, "--namespace", "one", "--effect", "read"),
        create_key(data, "--namespace", "other", *admin),
        create_key(data, "--namespace", "one", "--prefix", "team/", *admin),
    ]
    with Server(data) as server:
        store = backend_of(data).open(Limits())
        try:
            yield Served(server, Kept(store, Limits()), *keys)
        finally:
            store.close()


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_job_is_shown_with_all_that_is_known_of_it(served: Served) -> None:
    job_id = served.add(kind="shown", subject="shop", payload={"full": True})
    assert served.get(f"/jobs/{job_id}").json() == {
        "job_id": job_id,
        "kind": "shown",
        "state": "queued",
        "subject": "shop",
        "created_at": "2027-01-15T08:00:00.000000Z",
        "not_before": None,
        "started_at": None,
        "finished_at": None,
        "attempts": 0,
        "crashes": 0,
        "cancel_requested": False,
        "progress": None,
        "error": None,
        "payload": {"full": True},
        "result": None,
    }
    lease = served.lease("shown")
    served.kept.upkeep(lambda upkeep: upkeep.queue.progress(lease, Progress(1, 3, "rows")))
    running = served.get(f"/jobs/{job_id}").json()
    assert running["state"] == "running"
    assert running["started_at"] == "2027-01-15T08:00:00.000000Z"
    assert running["progress"] == {"done": 1.0, "total": 3.0, "message": "rows"}
    served.kept.upkeep(lambda upkeep: upkeep.queue.finish([lease], now_us=NOW, result=[1, 2]))
    done = served.get(f"/jobs/{job_id}").json()
    assert (done["state"], done["result"]) == ("done", [1, 2])


def test_a_list_is_newest_first_and_goes_on(served: Served) -> None:
    ids = [served.add(kind="listed", job_id=f"{number:026x}") for number in range(5)]
    first = served.get("/jobs", kind="listed", limit=2).json()
    assert [job["job_id"] for job in first["jobs"]] == ids[:2:-1]
    assert "payload" not in first["jobs"][0]
    rest = served.get("/jobs", kind="listed", after=first["next_after"]).json()
    assert [job["job_id"] for job in rest["jobs"]] == ids[2::-1]
    assert rest["next_after"] is None
    whole = served.get("/jobs", kind="listed", limit=5).json()
    assert whole["next_after"] is None


def test_a_list_can_be_of_a_state(served: Served) -> None:
    served.add(kind="stateful")
    job_id = served.add(kind="stateful")
    served.post(f"/jobs/{job_id}/cancel").raise_for_status()
    page = served.get("/jobs", kind="stateful", state="cancelled").json()
    assert [job["job_id"] for job in page["jobs"]] == [job_id]


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": 201},
        {"state": "lost"},
        {"kind": "k" * 65},
        {"after": "0" * 65},
        {"namespace": "other"},
    ],
)
def test_odd_arguments_are_refused(served: Served, params: dict[str, Any]) -> None:
    assert code_of(served.get("/jobs", **params)) == (422, "INVALID_ARGUMENT")


@pytest.mark.parametrize("job_id", ["f" * 26, "x", "~"])
def test_a_job_that_is_not_there(served: Served, job_id: str) -> None:
    expected = (404, "NOT_FOUND") if job_id.isalnum() else (422, "INVALID_ARGUMENT")
    assert code_of(served.get(f"/jobs/{job_id}")) == expected
    assert code_of(served.post(f"/jobs/{job_id}/cancel")) == expected
    assert code_of(served.post(f"/jobs/{job_id}/retry")) == expected


def test_another_namespaces_jobs_are_not_there(served: Served) -> None:
    job_id = served.add(kind="secret")
    assert served.get("/jobs", served.other, kind="secret").json()["jobs"] == []
    for answer in (
        served.get(f"/jobs/{job_id}", served.other),
        served.post(f"/jobs/{job_id}/cancel", served.other),
        served.post(f"/jobs/{job_id}/retry", served.other),
    ):
        assert code_of(answer) == (404, "NOT_FOUND")
    assert served.get(f"/jobs/{job_id}").json()["state"] == "queued"


def test_a_job_about_a_document_names_it_to_those_who_see_it(served: Served) -> None:
    document = served.kept.create("team/plan", tenant=ONE)
    hidden = served.kept.create("board/plan", tenant=ONE)
    job_id = served.add(kind=VECTORS, subject=str(document.storage_key))
    hidden_id = served.add(kind=VECTORS, subject=str(hidden.storage_key))
    assert served.get(f"/jobs/{job_id}").json()["subject"] == "team/plan"
    assert served.get(f"/jobs/{job_id}", served.folder).json()["subject"] == "team/plan"
    assert served.get(f"/jobs/{hidden_id}").json()["subject"] == "board/plan"
    assert code_of(served.get(f"/jobs/{hidden_id}", served.folder)) == (404, "NOT_FOUND")
    listed = served.get("/jobs", served.folder, kind=VECTORS).json()["jobs"]
    assert {job["subject"] for job in listed} == {"team/plan"}


def test_whoever_only_reads_cannot_cancel_or_retry(served: Served) -> None:
    job_id = served.add(kind="guarded")
    for act in ("cancel", "retry"):
        assert code_of(served.post(f"/jobs/{job_id}/{act}", served.reader)) == (403, "FORBIDDEN")


def test_cancelling(served: Served) -> None:
    queued, running = served.add(kind="stopped", not_before_us=NOW + 1), served.add(kind="stopped")
    lease = served.lease("stopped")
    assert served.post(f"/jobs/{queued}/cancel").json()["state"] == "cancelled"
    assert served.post(f"/jobs/{queued}/cancel").json()["state"] == "cancelled"
    asked = served.post(f"/jobs/{running}/cancel").json()
    assert (asked["state"], asked["cancel_requested"]) == ("running", True)
    served.kept.upkeep(lambda upkeep: upkeep.queue.finish([lease], now_us=NOW))
    assert code_of(served.post(f"/jobs/{running}/cancel")) == (409, "CONFLICT")


def test_retrying(served: Served) -> None:
    job_id = served.add(kind="retried")
    lease = served.lease("retried")
    assert code_of(served.post(f"/jobs/{job_id}/retry")) == (409, "CONFLICT")
    setback = Setback(lease, "The shop is closed.")
    served.kept.upkeep(lambda upkeep: upkeep.queue.park([setback], now_us=NOW))
    parked = served.get(f"/jobs/{job_id}").json()
    assert (parked["state"], parked["error"]) == ("parked", "The shop is closed.")
    retried = served.post(f"/jobs/{job_id}/retry").json()
    assert (retried["state"], retried["attempts"], retried["error"]) == ("queued", 0, None)
    assert served.post(f"/jobs/{job_id}/retry").json()["state"] == "queued"


def test_a_job_whose_work_another_does_by_now_is_not_retried(served: Served) -> None:
    first = served.add(kind="unique", unique_key="x")
    served.post(f"/jobs/{first}/cancel").raise_for_status()
    served.add(kind="unique", unique_key="x")
    assert code_of(served.post(f"/jobs/{first}/retry")) == (409, "CONFLICT")


def test_other_methods_are_refused(served: Served) -> None:
    job_id = served.add()
    for method, url in (
        ("POST", "/jobs"),
        ("DELETE", f"/jobs/{job_id}"),
        ("GET", f"/jobs/{job_id}/cancel"),
    ):
        answer = served.server.client.request(method, url, headers=served.admin.headers)
        assert code_of(answer) == (405, "METHOD_NOT_ALLOWED")


def test_agents_have_them_on_the_profile_with_everything_only(served: Served) -> None:
    job_id = served.add(kind="by-mcp")
    everything = Mcp(served.server.client, "/mcp-all", headers=served.admin.headers)
    answer = everything.call("get_job", job_id=job_id)
    assert answer["kind"] == "by-mcp"
    assert everything.call("cancel_job", job_id=job_id)["state"] == "cancelled"
    names = {tool["name"] for tool in everything.tools()}
    assert {"list_jobs", "get_job", "cancel_job", "retry_job"} <= names
    for path in ("/mcp", "/mcp-readonly", "/mcp-gpt", "/mcp-rag"):
        tools = Mcp(served.server.client, path, headers=served.admin.headers).tools()
        assert not any("job" in tool["name"] for tool in tools)
