"""/health really tries the store; /metrics counts what was called."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import httpx2 as httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import zibaldone
from tests.drivers.in_process import application
from tests.drivers.server import Server
from tests.drivers.urls import at
from zibaldone.errors import StorageFull
from zibaldone.jobs.supervisor import BackgroundTask, Supervisor
from zibaldone.web.app import App
from zibaldone.wiring import application as wiring_application


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client


def test_healthy(client: httpx.Client) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    health = answer.json()
    assert health["status"] == "healthy"
    assert health["version"] == zibaldone.__version__
    assert health["services"]["store"]["status"] == "ok"
    assert health["services"]["store"]["ms"] >= 0
    background = health["services"]["background"]
    assert background["status"] == "ok"
    assert {"jobs", "schedules"} <= background["tasks"].keys()


def test_a_background_task_that_died_is_told_and_does_not_take_the_server_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die() -> None:
        raise StorageFull("The disk is full.")

    async def ask(app: App, supervisor: Supervisor) -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with (
            supervisor.running(),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            await asyncio.sleep(0.05)
            return await client.get("/health")

    supervisor = Supervisor([BackgroundTask("sick", die)])
    monkeypatch.setattr(wiring_application, "build_supervisor", lambda runtime: supervisor)
    with application(tmp_path) as app:
        answer = asyncio.run(ask(app, supervisor))
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    background = answer.json()["services"]["background"]
    assert background["status"] == "degraded"
    assert background["tasks"]["sick"] == {
        "state": "waiting",
        "restarts": 0,
        "last_error": "The disk is full. [STORAGE_FULL]",
    }


def test_health_leaves_nothing_behind(shared_server: Server) -> None:
    before = shared_server.client.get("/documents").json()
    shared_server.client.get("/health").raise_for_status()
    assert shared_server.client.get("/documents").json() == before


class Samples:
    """What /metrics says, by name and labels."""

    def __init__(self, client: httpx.Client) -> None:
        answer = client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        self.calls: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.count: defaultdict[str, float] = defaultdict(float)
        self.buckets: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                labels = sample.labels
                match sample.name:
                    case "zibaldone_tool_calls_total":
                        self.calls[labels["tool"], labels["outcome"]] = sample.value
                    case "zibaldone_tool_seconds_count":
                        self.count[labels["tool"]] = sample.value
                    case "zibaldone_tool_seconds_bucket":
                        bound = float(labels["le"])
                        self.buckets[labels["tool"]].append((bound, sample.value))


def test_calls_are_counted_by_tool_and_outcome(shared_server: Server) -> None:
    client = shared_server.client
    before = Samples(client)
    shared_server.create("metrics/a", "text")
    client.post("/documents", json={"path": "metrics/a", "content": "x"})
    client.post("/documents", json={"path": "metrics/b"})
    for _ in range(3):
        client.get(at("metrics/a")).raise_for_status()
    client.get(at("metrics/none"))
    client.get("/documents", params={"limit": 0})
    after = Samples(client)
    more = {key: after.calls[key] - before.calls[key] for key in after.calls}
    assert {key: value for key, value in more.items() if value} == {
        ("upload_document", "ok"): 1,
        ("upload_document", "CONFLICT"): 1,
        ("upload_document", "INVALID_ARGUMENT"): 1,
        ("get_document_for_rewrite", "ok"): 3,
        ("get_document_for_rewrite", "NOT_FOUND"): 1,
        ("list_documents", "INVALID_ARGUMENT"): 1,
    }


def test_histograms_agree_with_the_counters(shared_server: Server) -> None:
    shared_server.create("metrics/histogram", "text")
    shared_server.client.get("/documents").raise_for_status()
    samples = Samples(shared_server.client)
    assert {"upload_document", "list_documents"} <= {*samples.count}
    for tool, count in samples.count.items():
        by_outcome = [value for (name, _), value in samples.calls.items() if name == tool]
        assert sum(by_outcome) == count
        buckets = sorted(samples.buckets[tool])
        values = [value for _, value in buckets]
        assert values == sorted(values), "each bucket holds those below it"
        assert buckets[-1] == (float("inf"), count)


@pytest.mark.engine("sqlite", reason="it is about the file")
def test_a_stopped_server_leaves_one_whole_file(data: Path) -> None:
    """So that copying the file of a stopped server copies everything."""
    with Server(data) as server:
        server.create("a", "text")
        server.process.terminate()
        assert server.process.wait(timeout=20) == 0
    assert [file.name for file in data.iterdir()] == ["zibaldone.db"]
