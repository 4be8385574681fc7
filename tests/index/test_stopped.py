"""The application while no worker runs: what waits and what failed is told; reads do not care."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.drained import BAD
from tests.drivers.embedders import PATIENCE_SECONDS, Clock, Failing
from tests.drivers.engines import backend_of, store_flags
from tests.drivers.index_state import assert_in_step
from tests.index.test_sweep import waiting_since
from tests.store.kept import Kept
from tests.test_stdio import Stdio
from zibaldone import settings
from zibaldone.embed.hashed import Hashed
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import INDEX_LAG_ALERT_SECONDS, INDEX_TRIES_MAX
from zibaldone.model.instant import now_us
from zibaldone.store.postgres.writer import Writers
from zibaldone.store.sqlite.writer import WriterThread
from zibaldone.tools.spec import Runtime
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime

Client = httpx.AsyncClient

WRITERS: dict[str, tuple[type, str]] = {
    "sqlite": (WriterThread, "submit"),
    "postgres": (Writers, "run"),
}
"""The way of every write."""


class Stopped:
    """The parts and the application over them; its background work is never started."""

    def __init__(self, data: Path) -> None:
        chosen = settings.load(
            {"data": str(data), **store_flags(data), "embedder": "hashed"}, environment={}
        )
        self.runtime: Runtime = build_runtime(chosen)
        self.kept = Kept(self.runtime.store, chosen.limits)
        self._app = build_application(chosen, self.runtime)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        transport = httpx.ASGITransport(app=self._app)
        async with Client(transport=transport, base_url="http://localhost") as client:
            yield client

    def ask(self, work: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            async with self._client() as client:
                return await work(client)

        return asyncio.run(run())

    def get(self, path: str) -> httpx.Response:
        answer: httpx.Response = self.ask(lambda client: client.get(path))
        return answer

    def post(self, path: str, body: Any = None) -> httpx.Response:
        answer: httpx.Response = self.ask(lambda client: client.post(path, json=body))
        return answer


@pytest.fixture
def stopped(data: Path) -> Iterator[Stopped]:
    made = Stopped(data)
    yield made
    made.runtime.store.close()


@pytest.mark.requirement("000/CC.04")
def test_documents_wait_and_searches_say_that_some_do(stopped: Stopped) -> None:
    for number in range(3):
        stopped.post("/documents", {"path": f"d/{number}", "content": "a zebra"})
    assert stopped.get("/documents/d/0").json()["vector_status"] == "pending"
    found = stopped.get("/search?query=zebra").json()
    assert found["count"] == 3
    assert "3 documents are found by keyword only" in found["note"]


@pytest.mark.requirement("000/CC.09", "X-13")
def test_the_alert_is_on_in_health_and_metrics_when_one_waits_too_long(stopped: Stopped) -> None:
    waiting_since(stopped.kept, "stuck", INDEX_LAG_ALERT_SECONDS + 5)
    stopped.post("/documents", {"path": "young", "content": "text"})
    answer = stopped.get("/health")
    assert answer.status_code == 200  # late, but it serves
    assert answer.json()["status"] == "degraded"
    index = answer.json()["services"]["index"]
    assert (index["status"], index["alert"], index["pending"]) == ("late", True, 2)
    assert index["vector_sync_lag_seconds"] > INDEX_LAG_ALERT_SECONDS
    assert index["youngest_pending_seconds"] < INDEX_LAG_ALERT_SECONDS
    metrics = stopped.get("/metrics").text
    assert "\nvector_sync_alert 1.0\n" in metrics
    assert "\nzibaldone_vectors_pending 2.0\n" in metrics

    assert stopped.runtime.index is not None
    asyncio.run(stopped.runtime.index.drain())
    assert stopped.get("/health").json()["services"]["index"]["alert"] is False
    assert "\nvector_sync_alert 0.0\n" in stopped.get("/metrics").text


@pytest.mark.requirement("000/CC.06", "000/CC.10")
def test_a_failure_is_seen_with_its_reason_and_tried_again_on_demand(stopped: Stopped) -> None:
    stopped.post("/documents", {"path": "bad", "content": "poison"})
    clock = Clock(now_us())
    failing = IndexWorker(stopped.runtime.store, Failing(BAD), clock=clock)
    for _ in range(INDEX_TRIES_MAX):
        asyncio.run(failing.drain())
        clock.pass_seconds(100)
    for view in ("full", "preview"):
        shown = stopped.get(f"/documents/bad?view={view}").json()
        assert (shown["vector_status"], shown["vector_error"]) == ("error", BAD.message)
    assert stopped.post("/kb/audit-sync").json()["failed"] == 1
    health = stopped.get("/health").json()
    index = health["services"]["index"]
    assert (health["status"], index["status"]) == ("degraded", "incomplete")
    assert (index["failed"], index["pending"], index["alert"]) == (1, 0, False)
    assert "\nzibaldone_vectors_failed 1.0\n" in stopped.get("/metrics").text
    found = stopped.get("/search?query=poison").json()
    assert "1 document is found by keyword only" in found["note"]
    assert stopped.post("/kb/reindex-missing").json() == {"queued": 1}
    shown = stopped.get("/documents/bad").json()
    assert shown["vector_status"] == "pending"
    assert "vector_error" not in shown
    assert stopped.runtime.index is not None
    asyncio.run(stopped.runtime.index.drain())
    assert stopped.get("/documents/bad").json()["vector_status"] == "ready"
    assert stopped.get("/health").json()["services"]["index"]["failed"] == 0
    assert stopped.get("/health").json()["status"] == "healthy"
    assert "note" not in stopped.get("/search?query=poison").json()


@pytest.mark.requirement("7.4.c")
def test_no_read_waits_for_a_write(
    stopped: Stopped, monkeypatch: pytest.MonkeyPatch, store_engine: str
) -> None:
    stopped.post("/documents", {"path": "a", "content": "a zebra"})
    stopped.post("/documents", {"path": "b", "content": "a lion"})
    assert stopped.runtime.index is not None
    asyncio.run(stopped.runtime.index.drain())
    stopped.post("/documents", {"path": "c", "content": "waits for its vectors"})
    written: list[object] = []
    writer, method = WRITERS[store_engine]
    write = getattr(writer, method)

    def watched(self: Any, work: Any, *arguments: Any, **more: Any) -> Any:
        written.append(work)
        return write(self, work, *arguments, **more)

    monkeypatch.setattr(writer, method, watched)

    def rag(tool: str, arguments: dict[str, Any]) -> None:
        message = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }  # fmt: skip
        answer = stopped.ask(
            lambda client: client.post(
                "/mcp-rag", json=message, headers={"accept": "application/json"}
            )
        )
        assert answer.json()["result"]["isError"] is False, answer.text

    for path in (
        "/documents", "/documents/a", "/documents/c?view=preview", "/documents/a/revisions",
        "/documents/a/revisions/1", "/search?query=zebra", "/metrics", "/openapi.json",
        "/kb/audit-sync",
    ):  # fmt: skip
        assert stopped.get(path).status_code == 200, path
    assert stopped.post("/batch-read", {"paths": ["a", "b"]}).status_code == 200
    rag("rag.search_fts", {"query": "zebra"})
    rag("rag.search_vector", {"query_text": "zebra"})
    for mode in ("fuse", "fts_then_vec", "convex"):
        rag("rag.search_hybrid", {"query": "zebra", "mode": mode})
    rag("rag.get_chunks", {"chunk_ids": ["a#0"]})
    rag("rag.get_docs", {"doc_ids": ["a"]})
    rag("rag.admin.stats", {})
    assert written == []
    if store_engine == "sqlite":
        stopped.get("/health")  # this one tries the write lock, on purpose
    else:
        stopped.post("/documents", {"path": "d", "content": "a giraffe"})
    assert len(written) == 1


def test_what_is_written_over_stdio_is_indexed_without_a_server(data: Path) -> None:
    with Stdio(data, environment={"ZIBALDONE_EMBEDDER": "hashed"}) as client:
        client.ask("initialize", {"protocolVersion": "2025-11-25"})
        client.call("upload_document", path="a", content="a zebra")
        deadline_s = time.monotonic() + PATIENCE_SECONDS
        while client.call("get_document", path="a")["vector_status"] != "ready":
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        assert client.end() == 0
    assert_in_step(backend_of(data), Hashed())
