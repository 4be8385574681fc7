"""reindex and index: vectors for everything, beside a server, resumable; and how they stand."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.embedding_server import Answer, Asked, EmbeddingServer
from tests.drivers.engines import backend_of
from tests.drivers.index_state import assert_in_step, stored_vectors
from tests.drivers.server import COMMAND, Server, clean_environment, parsed, run_cli
from tests.store.backends import Backend
from zibaldone.embed.hashed import Hashed

HASHED = {"ZIBALDONE_EMBEDDER": "hashed"}
EMBEDDER = Hashed()
REMOTE = "remote/m/8"


@pytest.fixture(autouse=True)
def _hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")


@pytest.fixture
def tables(data: Path) -> Backend:
    return backend_of(data)


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        for name, value in remote_environment(running).items():
            monkeypatch.setenv(name, value)
        yield running


def remote_environment(server: EmbeddingServer) -> dict[str, str]:
    return {"ZIBALDONE_EMBEDDING_URL": server.url, "NO_PROXY": "127.0.0.1"}


TO_REMOTE = ("--embedder", "remote", "--model", "m", "--dimensions", "8")


def use_remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the settings would: the same model as TO_REMOTE, in use."""
    for name, value in (
        ("EMBEDDER", "remote"),
        ("EMBEDDING_MODEL", "m"),
        ("EMBEDDING_DIMENSIONS", "8"),
    ):
        monkeypatch.setenv(f"ZIBALDONE_{name}", value)


def put(cli: Commands, *paths: str) -> None:
    """Without a model, so that vectors are left to be made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZIBALDONE_EMBEDDER", "none")
        for path in paths:
            cli.ok("put", path, stdin=f"text of {path}")


def test_everything_that_lacks_a_vector_gets_one(cli: Commands, tables: Backend) -> None:
    put(cli, "a", "b", "registries/x")
    before = cli.json("index", "status")
    assert (before["model"], before["pending"], before["missing"]) == (EMBEDDER.identity, 2, 2)
    found = cli.json("reindex")
    assert found.pop("seconds") >= 0
    assert found == {
        "model": EMBEDDER.identity, "embedded": 2, "missing": 0, "failures": [], "dropped": 0,
        "kept": None,
    }  # fmt: skip
    assert_in_step(tables, EMBEDDER)
    assert cli.json("reindex")["embedded"] == 0
    assert "0 chunks embedded with hashed/64" in cli.ok("reindex")


def test_status_tells_how_the_index_stands(cli: Commands, tables: Backend) -> None:
    put(cli, "a", "b", "registries/x")
    cli.ok("reindex")
    put(cli, "c")
    found = cli.json("index", "status")
    assert found.pop("vector_sync_lag_seconds") > 0
    assert found.pop("youngest_pending_seconds") > 0
    assert found == {
        "model": EMBEDDER.identity,
        "documents": 4, "ready": 2, "pending": 1, "skipped": 1, "failed": 0,
        "chunks": 4, "vectors": 2, "missing": 1, "queued": 1, "parked": 0, "alert": False,
        "indexed_by": None, "failures": [],
        "models": [
            {"identity": EMBEDDER.identity, "dimensions": 64, "vectors": 2, "in_use": True}
        ],
    }  # fmt: skip
    shown = cli.ok("index", "status")
    assert "model: hashed/64" in shown
    assert "without a vector" in shown
    tables.execute(
        "UPDATE documents SET vector_status = 'error', vector_error = 'why' WHERE document_id = 'c'"
    )
    assert cli.json("index", "status")["failures"] == [{"document_id": "c", "reason": "why"}]
    assert "failed: c: why" in cli("index", "status").stderr


def test_without_a_model_it_says_so(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "none")
    put(cli, "a")
    assert cli.json("index", "status")["model"] is None
    assert "keyword search only" in cli.ok("index", "status")
    assert cli.error("reindex") == (1, "NOT_CONFIGURED")
    assert cli.error("index", "audit") == (1, "NOT_CONFIGURED")


class TestAnotherModel:
    def test_its_vectors_are_made_beside_those_in_use(
        self, cli: Commands, tables: Backend, remote: EmbeddingServer
    ) -> None:
        put(cli, "a", "b")
        cli.ok("reindex")
        put(cli, "c")
        found = cli.json("reindex", *TO_REMOTE)
        assert (found["model"], found["embedded"], found["missing"]) == (REMOTE, 3, 0)
        assert len(stored_vectors(tables, REMOTE)) == 3
        assert len(stored_vectors(tables, EMBEDDER.identity)) == 2
        # What waits for the model in use still does: its queue is not this command's to empty.
        assert cli.json("index", "status")["pending"] == 1
        cli.ok("reindex")
        assert_in_step(tables, EMBEDDER)
        assert "not in use: 3 vectors of remote/m/8" in cli.ok("index", "status")

    def test_the_others_are_dropped_on_request(
        self, cli: Commands, tables: Backend, remote: EmbeddingServer
    ) -> None:
        put(cli, "a", "b")
        cli.ok("reindex")
        found = cli.json("reindex", *TO_REMOTE, "--drop-others")
        assert (found["embedded"], found["dropped"]) == (2, 2)
        assert stored_vectors(tables, EMBEDDER.identity) == {}
        assert len(stored_vectors(tables, REMOTE)) == 2

    def test_nothing_is_dropped_while_something_is_missing(
        self, cli: Commands, tables: Backend, remote: EmbeddingServer
    ) -> None:
        def picky(asked: Asked) -> Answer | None:
            return Answer(413) if any("of b" in text for text in asked.texts) else None

        put(cli, "a", "b", "c")
        cli.ok("reindex")
        remote.behaviour = picky
        result = cli("reindex", *TO_REMOTE, "--drop-others")
        assert result.exit_code == 1
        assert "failed: b: m: the embedding server answered 413." in result.stderr
        assert "1 chunks still have no vector" in result.stdout
        assert_in_step(tables, EMBEDDER)
        assert len(stored_vectors(tables, REMOTE)) == 2

    def test_a_model_that_cannot_be_had_ends_it_with_what_to_do(
        self, cli: Commands, remote: EmbeddingServer
    ) -> None:
        put(cli, "a")
        remote.behaviour = lambda asked: Answer(401)
        result = cli("reindex", *TO_REMOTE)
        assert result.exit_code == 7
        assert "answered 401" in result.stderr
        assert "the same command goes on" in result.stderr
        assert cli.error("reindex", "--embedder", "remote")[0] == 2  # no name, no length


def test_settings_that_a_running_server_does_not_have_yet(
    data: Path, tables: Backend, remote: EmbeddingServer
) -> None:
    """The settings name the new model, the server still has the old one: it keeps its queue."""
    count = 60
    changed = {
        **remote_environment(remote),
        "ZIBALDONE_EMBEDDER": "remote",
        "ZIBALDONE_EMBEDDING_MODEL": "m",
        "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
    }
    with Server(data, environment=HASHED) as server:
        for number in range(count):
            server.create(f"d/{number}", f"text number {number}")
        wait_for(lambda: len(stored_vectors(tables, EMBEDDER.identity)) == count)
        result = run_cli("reindex", "--drop-others", "--json", data=data, environment=changed)
        assert result.returncode == 0, result.stderr
        done = parsed(result)
        assert (done["embedded"], done["missing"], done["dropped"]) == (count, 0, 0)
        assert done["kept"] == EMBEDDER.identity  # the server would make them all again
        shown = run_cli("index", "status", data=data, environment=changed).stdout
        assert "a running process indexes with another model: hashed/64" in shown
    assert len(stored_vectors(tables, REMOTE)) == count
    assert_in_step(tables, EMBEDDER)
    with Server(data, environment=changed):
        wait_for(lambda: tables.query("SELECT * FROM index_workers") != [])
        last = run_cli("reindex", "--drop-others", "--json", data=data, environment=changed)
        assert (parsed(last)["dropped"], parsed(last)["kept"]) == (count, None)
    assert stored_vectors(tables, EMBEDDER.identity) == {}
    assert len(stored_vectors(tables, REMOTE)) == count


def test_a_run_that_was_killed_goes_on(
    cli: Commands, tables: Backend, remote: EmbeddingServer, data: Path
) -> None:
    count = 120
    folder = data.parent / "files"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}.md").write_text(f"text number {number}")
    cli.ok("import", str(folder), "--no-vectors")
    environment = clean_environment({**HASHED, **remote_environment(remote)}, data=data)
    begun = subprocess.Popen(
        [*COMMAND, "--data", str(data), "reindex", *TO_REMOTE],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    wait_for(lambda: len(stored_vectors(tables, REMOTE)) > 0)
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    done = len(stored_vectors(tables, REMOTE))
    remote.asked.clear()
    found = cli.json("reindex", *TO_REMOTE)
    assert found["embedded"] == count - done
    assert sum(map(len, remote.texts)) == count - done
    assert len(stored_vectors(tables, REMOTE)) == count


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_server_and_the_command_share_the_work(
    cli: Commands, tables: Backend, remote: EmbeddingServer, data: Path
) -> None:
    """Both use the model of the settings; each passage is asked for once."""
    count = 150
    folder = data.parent / "files"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}.md").write_text(f"text number {number}")
    cli.ok("import", str(folder), "--no-vectors")
    same = {
        **remote_environment(remote),
        "ZIBALDONE_EMBEDDER": "remote",
        "ZIBALDONE_EMBEDDING_MODEL": "m",
        "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
    }

    def slowly(asked: Asked) -> None:
        time.sleep(0.02)  # so that both get a share

    remote.behaviour = slowly
    with Server(data, environment=same) as server:
        result = run_cli("reindex", "--json", data=data, environment=same)
        assert result.returncode == 0, result.stderr
        assert parsed(result)["missing"] == 0
        server.create("later", "text")  # and the server still serves
    asked = Counter(text for texts in remote.texts for text in texts if "number" in text)
    assert len(asked) == count
    assert set(asked.values()) == {1}
    assert len(stored_vectors(tables, REMOTE)) >= count


def test_a_bar_is_shown_on_a_terminal(cli: Commands, data: Path) -> None:
    put(cli, "a", "b")
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [*COMMAND, "--data", str(data), "reindex"],
        stdout=subprocess.PIPE, stderr=theirs, env=clean_environment(HASHED, data=data), check=True,
        timeout=60,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "Embedding" in shown
    assert "100%" in shown
    assert b"Embedding" not in result.stdout


def test_audit_and_cleanup(cli: Commands, tables: Backend) -> None:
    put(cli, "a", "b")
    cli.ok("reindex")
    assert cli.ok("index", "audit").splitlines() == [
        "0 vectors without a chunk", "0 documents without their vectors",
    ]  # fmt: skip
    tables.execute("DELETE FROM vectors WHERE chunk_key = 1")
    tables.add_orphans(99)
    found = cli("index", "audit")
    assert found.exit_code == 1
    assert "1 vectors without a chunk" in found.stdout
    assert cli.ok("index", "cleanup").strip() == "1 found; use --yes to remove them"
    assert cli.json("index", "cleanup") == {
        "dry_run": True, "found": 1, "removed": 0, "truncated": False,
    }  # fmt: skip
    assert cli.ok("index", "cleanup", "--yes").strip() == "1 removed"
    healed = cli.ok("index", "audit", "--heal")
    assert "repaired: 0 vectors removed, 1 documents queued" in healed
    cli.ok("reindex")
    assert cli.json("index", "audit")["consistent"] is True
    assert_in_step(tables, EMBEDDER)


def test_a_document_that_fails_for_good_is_named(
    cli: Commands, tables: Backend, remote: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the model in use: it has the worker's tries, and then it is an error of the document."""
    use_remote(monkeypatch)
    monkeypatch.setattr("zibaldone.index.worker.INDEX_TRIES_MAX", 1)
    remote.behaviour = lambda asked: (
        Answer(413) if any("of bad" in text for text in asked.texts) else None
    )
    put(cli, "good", "bad")
    result = cli("reindex")
    assert result.exit_code == 1
    assert "failed: bad: m: the embedding server answered 413." in result.stderr
    shown = cli.json("get", "bad")
    assert shown["vector_status"] == "error"
    assert "413" in shown["vector_error"]
    assert cli.json("get", "good")["vector_status"] == "ready"


def test_a_model_in_use_that_cannot_be_had_ends_it_too(
    cli: Commands, tables: Backend, remote: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_remote(monkeypatch)
    put(cli, "a", "b")
    remote.behaviour = lambda asked: Answer(401)
    result = cli("reindex")
    assert result.exit_code == 7
    assert "the same command goes on" in result.stderr
    assert cli.json("get", "a")["vector_status"] == "pending"
    remote.behaviour = lambda asked: None
    assert cli.json("reindex")["missing"] == 0
    assert tables.query("SELECT count(*) FROM jobs WHERE state = 2") == [(0,)]
