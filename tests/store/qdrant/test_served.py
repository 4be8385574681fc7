"""Qdrant beside a store, as those see it who run a server and those who ask it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.server import Server, parsed, run_cli
from tests.store.backends import BACKENDS, Backend

HANG_SECONDS_MAX = 40.0


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    opened = BACKENDS[request.param](tmp_path)
    yield opened
    opened.close()


def settings(backend: Backend, vectors: str) -> dict[str, str]:
    return {
        "ZIBALDONE_STORE": backend.url,
        "ZIBALDONE_VECTORS": vectors,
        "ZIBALDONE_EMBEDDER": "hashed",
    }


def eventually(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + HANG_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def services(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.client.get("/health").json()["services"]
    return found


def meant(server: Server, text: str) -> dict[str, Any]:
    answer = server.client.post("/rag/search_vector", json={"query_text": text, "k": 3})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_from_nothing_to_a_rebuilt_index(backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / "qdrant"
    environment = settings(backend, f"qdrant:{folder}")
    with Server(tmp_path / "data", environment=environment) as server:
        server.create("zebra", "The zebra has stripes.")
        server.create("ship", "A ship crosses the sea.")
        eventually(lambda: len(meant(server, "zebra stripes")["results"]) == 2)
        answer = meant(server, "the zebra and its stripes")
        assert answer["results"][0]["doc_id"] == "zebra"
        assert services(server)["background"]["status"] == "ok"
        eventually(lambda: services(server)["vectors"]["status"] == "ok")
    assert "Traceback" not in server.log()

    def state(*options: str) -> dict[str, Any]:
        result = run_cli(
            "index", "qdrant", *options, "--json", data=tmp_path / "data", environment=environment
        )
        assert result.returncode == 0, result.stdout + result.stderr
        found: dict[str, Any] = parsed(result)
        return found

    def forget(environment: dict[str, str]) -> Any:
        options = ("index", "qdrant", "--forget", "--json")
        return run_cli(*options, data=tmp_path / "data", environment=environment)

    before = state()
    assert (before["points"], before["pending"], before["problem"]) == (2, 0, None)
    after = state("--rebuild")
    assert (after["points"], after["pending"]) == (2, 0)
    assert after["applied_seq"] > before["applied_seq"]
    shown = run_cli("index", "qdrant", data=tmp_path / "data", environment=environment)
    assert "vectors there           2\n" in shown.stdout
    assert parsed(forget(environment)) == {"forgotten": []}
    del environment["ZIBALDONE_VECTORS"]
    (name,) = parsed(forget(environment))["forgotten"]
    assert name == after["name"]
    assert backend.query("SELECT count(*) FROM vector_mirrors") == [(0,)]


def test_a_qdrant_that_is_not_there(backend: Backend, tmp_path: Path) -> None:
    """Searches go on by the store's vectors, and say so; so does /health."""
    environment = settings(backend, "qdrant://:hidden@127.0.0.1:1")
    with Server(tmp_path / "data", environment=environment) as server:
        server.create("zebra", "The zebra has stripes.")
        eventually(lambda: services(server).get("vectors", {}).get("status") == "error")
        eventually(lambda: bool(meant(server, "zebra stripes")["results"]))
        answer = meant(server, "zebra stripes")
        said = "Qdrant at http://127.0.0.1:1 cannot be used"
        assert said in answer["note"]
        knowledge = server.client.get("/search", params={"query": "zebra"}).json()
        assert knowledge["results"][0]["document_id"] == "zebra"
        assert said in knowledge["note"]
        health = server.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
        assert "are searched instead" in health.json()["services"]["vectors"]["message"]
    assert "hidden" not in server.log()
    assert "Traceback" not in server.log()
    told = run_cli("index", "qdrant", data=tmp_path / "data", environment=environment)
    assert told.returncode == 1
    assert "cannot be used" in told.stderr
    assert "hidden" not in told.stdout + told.stderr


def test_what_the_commands_say_where_it_is_not_set_up(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run_cli("put", "any", data=data, stdin="x").returncode == 0
    none = run_cli("index", "qdrant", data=data)
    assert none.returncode != 0
    assert "set vectors" in none.stderr
    wrong = run_cli(
        "--vectors",
        "qdrant://h:port",
        "ls",
        data=data,
        environment={"ZIBALDONE_EMBEDDER": "hashed"},
    )
    assert wrong.returncode != 0
    assert "vectors: the URL is not well formed" in wrong.stderr
