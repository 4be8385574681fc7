"""The index as clients and operators see it: status, /health, /metrics and the upkeep over REST."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.embedding_server import Answer, EmbeddingServer
from tests.drivers.engines import backend_of
from tests.drivers.index_state import assert_in_step, stored_vectors
from tests.drivers.keys import create_key
from tests.drivers.server import Server
from zibaldone.embed.hashed import Hashed
from zibaldone.embed.minilm import MiniLm
from zibaldone.extras import missing
from zibaldone.model.instant import from_iso

HASHED = {"ZIBALDONE_EMBEDDER": "hashed"}
TELLING = {**HASHED, "ZIBALDONE_LOG_LEVEL": "debug"}
EMBEDDER = Hashed()
ENDED_WELL = (0, -signal.SIGTERM)
"""uvicorn shuts down in order and then lets the signal have its usual effect."""


@pytest.fixture(scope="module")
def indexing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that indexes; each test keeps to paths of its own."""
    with Server(tmp_path_factory.mktemp("indexing") / "data", environment=TELLING) as running:
        yield running


def status_of(server: Server, path: str) -> str:
    return str(server.client.get(f"/documents/{path}").json()["vector_status"])


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def wait_until_ready(server: Server, *paths: str) -> None:
    wait_until(lambda: all(status_of(server, path) == "ready" for path in paths))


def call(server: Server, tool: str, arguments: dict[str, Any]) -> Any:
    message = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }  # fmt: skip
    answer = server.client.post("/mcp-rag", json=message, headers={"accept": "application/json"})
    return json.loads(answer.json()["result"]["content"][0]["text"])


def samples(server: Server) -> dict[str, float]:
    text = server.client.get("/metrics").text
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }


def log_lines(server: Server, logger: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line["logger"] == logger]


@pytest.mark.requirement("C4")
def test_ten_uploads_sampled_go_from_pending_to_ready_and_stay(indexing: Server) -> None:
    paths = [f"c4/{number}" for number in range(10)]
    seen: dict[str, list[str]] = {path: [] for path in paths}
    for path in paths:
        indexing.create(path, f"text of {path} " * 200)
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    still = 0
    while still < 10:
        assert time.monotonic() < deadline_s
        for path in paths:
            seen[path].append(status_of(indexing, path))
        still = still + 1 if all(states[-1] == "ready" for states in seen.values()) else 0
        time.sleep(0.05)  # the seed's interval between samples
    for path, states in seen.items():
        changes = [state for n, state in enumerate(states) if n == 0 or state != states[n - 1]]
        assert changes in (["pending", "ready"], ["ready"]), path


@pytest.mark.requirement("C3")
def test_every_write_has_its_line_in_the_log_soon_after(indexing: Server) -> None:
    indexing.create("c3/a", "first words")
    indexing.create("c3/b", "first words")
    wait_until_ready(indexing, "c3/a", "c3/b")
    indexing.client.put("/documents/c3/a", json={"content": "second words"}).raise_for_status()
    indexing.client.delete("/documents/c3/b").raise_for_status()
    wait_until_ready(indexing, "c3/a")
    outcomes: dict[str, list[str]] = {}
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while len([one for found in outcomes.values() for one in found]) < 4:
        assert time.monotonic() < deadline_s, outcomes
        time.sleep(0.05)
        outcomes = {}
        for line in log_lines(indexing, "zibaldone.index"):
            if found := re.match(r"(c3/\w): (\w+)", line["message"]):
                outcomes.setdefault(found[1], []).append(found[2])
    assert outcomes == {"c3/a": ["ready", "ready"], "c3/b": ["ready", "removed"]}
    consumed = log_lines(indexing, "zibaldone.index")
    assert all(from_iso(line["at"]) for line in consumed)
    assert not any("words" in line["message"] for line in consumed)


@pytest.mark.requirement("7.1.f", "000/CC.02")
def test_an_upload_is_read_at_once_and_found_by_meaning_when_it_is_ready(indexing: Server) -> None:
    indexing.create("found/a", "a giraffe among acacias")
    assert indexing.client.get("/documents/found/a").json()["content"]
    wanted = {"query": "giraffe", "prefix": "found/"}
    by_word = indexing.client.get("/search", params=wanted).json()
    assert [hit["document_id"] for hit in by_word["results"]] == ["found/a"]
    wait_until_ready(indexing, "found/a")
    meant = {"query_text": "a giraffe among acacias", "k": 1}
    (hit,) = call(indexing, "rag.search_vector", meant)["results"]
    assert (hit["doc_id"], hit["score_vec"]) == ("found/a", pytest.approx(1.0, abs=0.01))


@pytest.mark.requirement("7.1.j")
def test_a_deleted_document_is_gone_from_list_search_and_vectors(indexing: Server) -> None:
    indexing.create("deleted/a", "an okapi in the forest")
    wait_until_ready(indexing, "deleted/a")
    tables = backend_of(indexing.data)
    (key,) = tables.query(
        "SELECT chunk_key FROM chunks JOIN documents USING (document_key) "
        "WHERE document_id = 'deleted/a'"
    )
    assert key[0] in stored_vectors(tables, EMBEDDER.identity)
    indexing.client.delete("/documents/deleted/a").raise_for_status()
    listed = indexing.client.get("/documents", params={"prefix": "deleted/"}).json()
    assert listed["items"] == []
    assert indexing.client.get("/documents/deleted/a").status_code == 404
    found = indexing.client.get("/search", params={"query": "okapi", "prefix": "deleted/"}).json()
    assert found["results"] == []
    assert key[0] not in stored_vectors(tables, EMBEDDER.identity)


@pytest.mark.requirement("001/LG.2", "000/CC.08")
def test_health_tells_of_store_embedder_and_index(indexing: Server) -> None:
    indexing.create("health/a", "text")
    wait_until_ready(indexing, "health/a")
    answer = indexing.client.get("/health")
    assert answer.status_code == 200
    health = answer.json()
    assert health["status"] == "healthy"
    services = health["services"]
    services.pop("loop")  # a crowded machine makes it slow
    assert {name: service["status"] for name, service in services.items()} == {
        "store": "ok", "readers": "ok", "writes": "ok", "embedder": "ok", "index": "ok",
        "background": "ok", "sources": "off",
    }  # fmt: skip
    assert services["embedder"]["identity"] == EMBEDDER.identity
    assert services["embedder"]["is_used"] is True
    assert services["index"]["pending"] == 0
    assert services["index"]["vector_sync_lag_seconds"] == 0
    assert services["index"]["alert"] is False


@pytest.mark.requirement("000/CC.08")
def test_metrics_have_the_lag_and_what_was_embedded(indexing: Server) -> None:
    before = samples(indexing)
    indexing.create("metrics/a", "text")
    wait_until_ready(indexing, "metrics/a")
    after = samples(indexing)
    assert after["vector_sync_lag_seconds"] == 0
    assert after["vector_sync_lag_youngest_seconds"] == 0
    assert after["vector_sync_alert"] == 0
    assert after["zibaldone_vectors_pending"] == 0
    more = "zibaldone_embedded_chunks_total"
    assert after[more] - before[more] == 1


def test_reindex_audit_and_cleanup_over_rest(tmp_path: Path) -> None:
    """What is broken behind the server's back is found and mended on demand."""
    data = tmp_path / "mended"
    tables = backend_of(data)
    with Server(data, environment=HASHED) as running:
        client = running.client
        for number in range(4):
            running.create(f"d/{number}", f"text {number}")
        wait_until_ready(running, *(f"d/{number}" for number in range(4)))
        tables.execute("DELETE FROM vectors WHERE chunk_key = 1")
        tables.add_orphans(99)

        looked = client.get("/kb/audit-sync").json()
        assert (looked["orphans"], looked["ghosts"], looked["consistent"]) == (1, 1, False)
        assert looked["ghost_documents"] == ["d/0"]
        refused = client.get("/kb/audit-sync", params={"heal": "true"})
        assert (refused.status_code, refused.json()["code"]) == (400, "BAD_REQUEST")

        dry = client.post("/kb/cleanup-orphans").json()
        assert dry == {"dry_run": True, "found": 1, "removed": 0, "truncated": False}
        done = client.post("/kb/cleanup-orphans", json={"dry_run": False}).json()
        assert (done["removed"], client.get("/kb/audit-sync").json()["orphans"]) == (1, 0)

        assert client.post("/kb/reindex-missing").json() == {"queued": 1}
        wait_until_ready(running, "d/0")
        assert client.post("/kb/reindex-missing").json() == {"queued": 0}

        tables.execute("DELETE FROM vectors WHERE chunk_key IN (2, 3)")
        healed = client.post("/kb/audit-sync", json={"heal": True}).json()["healed"]
        assert healed == {"vectors_removed": 0, "documents_queued": 2}
        wait_until_ready(running, "d/1", "d/2")
        assert client.get("/kb/audit-sync").json()["consistent"]
        for path in ("/kb/reindex-missing", "/kb/cleanup-orphans"):
            assert client.get(path).status_code == 405
        assert client.delete("/kb/audit-sync").status_code == 405
    assert_in_step(tables, EMBEDDER)


@pytest.mark.requirement("000/CC.10")
def test_only_an_administrator_may_sweep(tmp_path: Path) -> None:
    data = tmp_path / "closed"
    writer = create_key(data, "--label", "writer")
    admin = create_key(data, "--effect", "read", "--effect", "admin")
    with Server(data, environment=HASHED) as running:
        for method, path in (
            ("POST", "/kb/reindex-missing"),
            ("GET", "/kb/audit-sync"),
            ("POST", "/kb/audit-sync"),
            ("POST", "/kb/cleanup-orphans"),
        ):
            assert running.client.request(method, path).status_code == 401
            refused = running.client.request(method, path, headers=writer.headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
            allowed = running.client.request(method, path, headers=admin.headers)
            assert allowed.status_code == 200, allowed.text


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("plain") / "data"
    with Server(data, environment={"ZIBALDONE_EMBEDDER": "none"}) as running:
        running.create("a", "a zebra")
        yield running


class TestWithoutAModel:
    @pytest.mark.requirement("001/LG.2")
    def test_health_says_that_there_is_none_and_is_healthy(self, plain: Server) -> None:
        answer = plain.client.get("/health")
        assert answer.status_code == 200
        assert answer.json()["status"] == "healthy"
        services = answer.json()["services"]
        assert services["embedder"] == {
            "status": "off", "message": "No embedding model: keyword search only.",
        }  # fmt: skip
        assert services["index"] == {"status": "off"}

    def test_answers_say_so_and_find_by_keyword(self, plain: Server) -> None:
        answer = plain.client.get("/search", params={"query": "zebra"}).json()
        assert [hit["document_id"] for hit in answer["results"]] == ["a"]
        assert "The setting embedder is none" in answer["note"]

    def test_sweeps_say_that_nothing_is_configured(self, plain: Server) -> None:
        for path in ("/kb/reindex-missing", "/kb/audit-sync"):
            answer = plain.client.post(path)
            assert (answer.status_code, answer.json()["code"]) == (501, "NOT_CONFIGURED")


def test_a_remote_model_that_is_away_is_told_and_search_goes_on(tmp_path: Path) -> None:
    """Nothing listens at the address; writes, reads and keywords do not notice."""
    away = {
        "ZIBALDONE_EMBEDDER": "remote",
        "ZIBALDONE_EMBEDDING_URL": "http://127.0.0.1:9/v1",
        "ZIBALDONE_EMBEDDING_MODEL": "m",
        "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
    }
    with Server(tmp_path / "away", environment=away) as running:
        running.create("a", "a zebra")
        wait_until(lambda: running.client.get("/health").json()["status"] != "healthy")
        answer = running.client.get("/health")
        assert answer.status_code == 200, "it can be used, so it stays in service"
        embedder = answer.json()["services"]["embedder"]
        assert (embedder["status"], answer.json()["status"]) == ("error", "degraded")
        assert "m: cannot reach the embedding server (ConnectError)." in embedder["message"]
        found = running.client.get("/search", params={"query": "zebra"}).json()
        assert [hit["document_id"] for hit in found["results"]] == ["a"]
        assert re.search("(?i)keywords only", found["note"])
        assert status_of(running, "a") == "pending"


def remote_model(model: EmbeddingServer) -> dict[str, str]:
    return {
        "ZIBALDONE_EMBEDDER": "remote",
        "ZIBALDONE_EMBEDDING_URL": model.url,
        "ZIBALDONE_EMBEDDING_MODEL": "m",
        "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
        "NO_PROXY": "127.0.0.1",
    }


def test_documents_become_ready_soon_after_a_remote_model_is_back(tmp_path: Path) -> None:
    with EmbeddingServer() as model:
        model.behaviour = lambda asked: Answer(401)
        with Server(tmp_path / "back", environment=remote_model(model)) as running:
            for number in range(20):
                running.create(f"d/{number}", f"text {number}")
            wait_until(lambda: len(model.asked) > 1)
            index = running.client.get("/health").json()["services"]["index"]
            assert (index["pending"], index["failed"]) == (20, 0)
            model.behaviour = lambda asked: None
            wait_until_ready(running, *(f"d/{number}" for number in range(20)))
            assert running.client.get("/health").json()["status"] == "healthy"


def test_a_server_ends_though_its_model_hangs(tmp_path: Path) -> None:
    with EmbeddingServer() as model:
        model.hold.clear()
        data = tmp_path / "hanging"
        with Server(data, environment=remote_model(model)) as server:
            server.create("a", "a zebra")
            wait_until(lambda: bool(model.asked))
            server.stop()  # kills it after a while, which its exit code would tell
        assert server.process.returncode in ENDED_WELL
        assert "Traceback" not in server.log()
        # It gave back what it had begun: the next start does not have to wait for it.
        assert backend_of(data).query("SELECT state, attempts, crashes FROM jobs") == [(0, 0, 0)]


@pytest.mark.skipif(bool(missing(MiniLm.packages)), reason="minilm is not installed")
def test_a_server_ends_well_in_the_middle_of_embedding(tmp_path: Path) -> None:
    with Server(tmp_path / "data", environment={"ZIBALDONE_EMBEDDER": "minilm"}) as server:
        for number in range(60):
            server.create(f"d/{number}", "some words to embed, and some more of them. " * 20)
        wait_until(lambda: status_of(server, "d/0") == "ready")
        server.stop()
    assert server.process.returncode in ENDED_WELL
    assert "Traceback" not in server.log()


def test_a_restart_under_writes_loses_no_document(tmp_path: Path) -> None:
    data = tmp_path / "restarted"
    server = Server(data, environment=HASHED)
    count = 0
    for _ in range(3):
        server.start()
        for _ in range(25):
            server.create(f"d/{count}", f"text {count}")
            count += 1
        server.stop()
    with server:
        wait_until_ready(server, *(f"d/{number}" for number in range(count)))
    assert_in_step(backend_of(data), EMBEDDER)


@pytest.mark.requirement("C2")
def test_a_passage_tells_its_point_id(indexing: Server) -> None:
    indexing.create("points/a", "one passage")
    wait_until_ready(indexing, "points/a")

    def point() -> str:
        (chunk,) = call(indexing, "rag.get_chunks", {"chunk_ids": ["points/a#0"]})["chunks"]
        return str(chunk["chunk_metadata"]["point_id"])

    first = point()
    assert first == "de194c96-1ba2-58a3-951e-5000ca7d51c5"
    indexing.client.put("/documents/points/a", json={"content": "one passage"})
    assert point() == first
