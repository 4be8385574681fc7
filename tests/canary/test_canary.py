"""The canary as an operator runs it: against a server, and on a store of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.embedding_server import EmbeddingServer
from tests.drivers.engines import backend_of
from tests.drivers.keys import Key, create_key
from tests.drivers.server import COMMAND, Server, clean_environment, free_port
from tests.store.backends import Backend
from zibaldone.canary import remote

HASHED = {"ZIBALDONE_EMBEDDER": "hashed"}
ALL = ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "K1", "K2", "K3", "K4"]
PATIENT = ("--seconds", "1", "--slack", "20")
"""A busy machine is no reason to fail here."""


@pytest.fixture(scope="module")
def indexing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("canary") / "data", environment=HASHED) as running:
        running.create("kept/note", "a giraffe among acacias")
        yield running


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")


def results(report: dict[str, Any]) -> dict[str, str]:
    return {outcome["name"]: outcome["result"] for outcome in report["outcomes"]}


def details(report: dict[str, Any]) -> dict[str, str]:
    return {outcome["name"]: outcome["detail"] for outcome in report["outcomes"]}


def assert_nothing_left(tables: Backend, *, documents: int) -> None:
    """Of the canary; `documents` of others are there, with one chunk and one vector each."""
    assert tables.query("SELECT count(*) FROM documents WHERE deleted_at_us IS NULL") == [
        (documents,)
    ]
    for table in ("chunks", "vectors", "facets"):
        assert tables.query(f"SELECT count(*) FROM {table}") == [(documents,)], table
    assert tables.query("SELECT tag FROM document_tags") == []
    assert tables.query("SELECT kind, subject FROM jobs WHERE kind = 'vectors'") == []


@pytest.mark.requirement("000/C.08", "C5", "K1")
@pytest.mark.usefixtures("hashed")
def test_on_the_store_of_the_settings_all_checks_pass_and_nothing_stays(
    cli: Commands, store_engine: str
) -> None:
    cli.ok("put", "kept/note", stdin="a giraffe among acacias")
    cli.ok("reindex")
    report = cli.json("canary", *PATIENT)
    assert results(report) == dict.fromkeys(ALL, "passed"), report
    assert report["ok"] is True
    assert report["left_behind"] == []
    assert "served by this process" in report["deployment"]
    if store_engine == "postgres":
        assert "connections cut" in details(report)["C5"]
        assert "connections cut" in details(report)["K1"]
    backend = backend_of(cli.data)
    assert_nothing_left(backend, documents=1)
    written = backend.query("SELECT DISTINCT namespace, principal FROM audit")
    assert sorted(written) == [("default", "local"), ("zibaldone-canary", "canary")]
    assert cli.ids() == ["kept/note"]


@pytest.mark.requirement("000/C.08")
def test_against_a_server_it_keeps_to_its_folder_and_disturbs_nobody(
    indexing: Server, cli: Commands
) -> None:
    report = cli.json("canary", "--url", indexing.url, *PATIENT)
    assert report["ok"] is True, report
    skipped = {name for name, result in results(report).items() if result == "skipped"}
    assert skipped == {"C5", "K1"}
    assert "without --url" in details(report)["C5"]
    assert indexing.url in report["deployment"]
    assert_nothing_left(backend_of(indexing.data), documents=1)
    ids = backend_of(indexing.data).query("SELECT DISTINCT document_id FROM audit")
    assert all("zibaldone-canary/" in one or one == "kept/note" for (one,) in ids)
    assert not cli.data.exists(), "the store of the settings is not touched"


def test_it_prints_a_table(indexing: Server, cli: Commands) -> None:
    result = cli("canary", "--url", indexing.url, "--check", "C2", "--check", "C5", *PATIENT)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"Checked: the server at {indexing.url}"
    assert lines[2].split() == ["check", "outcome", "time"]
    assert [line.split()[0] for line in lines[3:5]] == ["C2", "C5"]
    assert " passed " in lines[3]
    assert " skipped " in lines[4]
    assert lines[6].startswith("C2: point ")


def test_what_earlier_runs_left_is_removed(indexing: Server, cli: Commands) -> None:
    stale = [
        "zibaldone-canary/20200101T000000-abcdef/c6/1",
        "registries/zibaldone-canary/20200101T000000-abcdef/0",
    ]
    kept = ["zibaldone-canary/notes.md", "zibaldone-canary/29990101T000000-abcdef/c6/1"]
    for path in (*stale, *kept):
        indexing.create(path, "x")
    report = cli.json("canary", "--url", indexing.url, "--check", "C2", *PATIENT)
    assert report["ok"] is True
    statuses = {
        path: indexing.client.get(f"/documents/{path}").status_code for path in (*stale, *kept)
    }
    assert statuses == {**dict.fromkeys(stale, 404), **dict.fromkeys(kept, 200)}
    for path in kept:
        indexing.client.delete(f"/documents/{path}").raise_for_status()


def effects(*names: str) -> list[str]:
    return [part for name in names for part in ("--effect", name)]


KEYS = {
    "admin": effects("read", "write", "delete", "admin"),
    "folder": ["--prefix", "team/a", *effects("read", "write", "delete")],
    "no delete": effects("read", "write"),
    "no write": effects("read", "delete"),
}


@dataclass(frozen=True, slots=True)
class Closed:
    server: Server
    keys: dict[str, Key]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    """A server that wants keys."""
    data = tmp_path_factory.mktemp("closed") / "data"
    keys = {name: create_key(data, *options) for name, options in KEYS.items()}
    with Server(data, environment=HASHED) as running:
        yield Closed(running, keys)


class TestKeys:
    def test_without_a_key_it_is_refused(self, closed: Closed, cli: Commands) -> None:
        assert cli.error("canary", "--url", closed.server.url) == (6, "UNAUTHENTICATED")
        assert "CANARY_KEY" in cli("canary", "--url", closed.server.url).stderr

    def test_the_key_comes_from_the_environment(
        self, closed: Closed, cli: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CANARY_KEY", closed.keys["admin"].secret)
        report = cli.json("canary", "--url", closed.server.url, "--check", "C1", *PATIENT)
        assert results(report) == {"C1": "passed"}, report

    def test_a_key_for_a_folder_that_is_no_administrator(
        self, closed: Closed, cli: Commands
    ) -> None:
        key = closed.keys["folder"]
        wanted = [part for name in ("C1", "C2", "C7", "K2", "K4") for part in ("--check", name)]
        report = cli.json(
            "canary", "--url", closed.server.url, "--key", key.secret, *wanted, *PATIENT
        )
        assert results(report) == {
            "C1": "skipped", "C2": "passed", "C7": "skipped", "K2": "skipped", "K4": "passed",
        }, report  # fmt: skip
        assert "lacks the effect admin" in details(report)["C1"]
        assert "one folder only" in details(report)["C7"]
        assert {path.partition("zibaldone-canary/")[0] for path in written_by(closed, key)} == {
            "team/a/"
        }

    @pytest.mark.parametrize("name", ["no write", "no delete"])
    def test_who_may_not_write_or_delete_writes_nothing(
        self, closed: Closed, cli: Commands, name: str
    ) -> None:
        key = closed.keys[name]
        refused = cli.error("canary", "--url", closed.server.url, "--key", key.secret)
        assert refused == (6, "FORBIDDEN")
        assert written_by(closed, key) == []


def written_by(closed: Closed, key: Key) -> list[str]:
    rows = backend_of(closed.server.data).query(
        "SELECT document_id FROM audit WHERE principal = ?", (key.key_id,)
    )
    return [document_id for (document_id,) in rows]


class TestNothingToCheck:
    def test_nobody_is_there(self, cli: Commands) -> None:
        url = f"http://127.0.0.1:{free_port()}"
        result = cli("canary", "--url", url)
        assert result.exit_code == 2
        assert f"There is no Zibaldone at {url}: no answer (Connection refused)" in result.stderr

    @pytest.mark.parametrize(
        "url", ["postgresql://host/db", "127.0.0.1:80", "http://", "http://a:b"]
    )
    def test_no_address_of_a_server(self, cli: Commands, url: str) -> None:
        assert cli.error("canary", "--url", url) == (2, "CONFIGURATION")

    def test_another_program_is_there(self, cli: Commands) -> None:
        with EmbeddingServer() as other:
            assert cli.error("canary", "--url", other.url) == (2, "CONFIGURATION")

    @pytest.mark.engine("sqlite", reason="no store is used")
    @pytest.mark.parametrize("pause_seconds", [0.0, 0.01])
    @pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
    def test_an_answer_without_end(
        self, cli: Commands, monkeypatch: pytest.MonkeyPatch, head: bytes, pause_seconds: float
    ) -> None:
        """At once or byte by byte: it is read up to a size, and for a while."""
        monkeypatch.setattr(remote, "CANARY_ANSWER_BYTES_MAX", 2**20)
        monkeypatch.setattr(remote, "CANARY_ANSWER_SECONDS_MAX", 0.3)
        piece = b"x" if pause_seconds else b"x" * 65536
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer() -> None:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(head or b"HTTP/1.1 100 Continue\r\n\r\n")
                    while True:
                        connection.sendall(piece if head else b"HTTP/1.1 100 x\r\n\r\n")
                        time.sleep(pause_seconds)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            assert cli.error("canary", "--url", url) == (2, "CONFIGURATION")
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "the connection was not closed"

    def test_no_model(self, cli: Commands, server: Server) -> None:
        assert cli.error("canary", "--url", server.url) == (1, "NOT_CONFIGURED")
        assert cli.error("canary") == (1, "NOT_CONFIGURED")

    def test_a_store_that_is_not_indexed_is_left_alone(
        self, cli: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cli.ok("put", "waiting", stdin="words")
        monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")
        result = cli("canary")
        assert result.exit_code == 5
        assert "zibaldone reindex" in result.stderr
        assert cli.json("get", "waiting")["vector_status"] == "pending"


@pytest.mark.engine("sqlite", reason="it waits half a minute for a model, whatever the store")
def test_a_failed_check_is_told_and_nothing_stays(tmp_path: Path, cli: Commands) -> None:
    """The model hangs, so no vector is ever made."""
    with EmbeddingServer() as model:
        model.hold.clear()
        environment = {
            "ZIBALDONE_EMBEDDER": "remote",
            "ZIBALDONE_EMBEDDING_URL": model.url,
            "ZIBALDONE_EMBEDDING_MODEL": "m",
            "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
            "NO_PROXY": "127.0.0.1",
        }
        with Server(tmp_path / "hanging", environment=environment) as running:
            result = cli("canary", "--url", running.url, "--check", "C3", "--check", "C5")
            assert result.exit_code == 1
            lines = result.stdout.splitlines()
            assert " failed " in lines[3]
            assert " skipped " in lines[4]
            assert "C3: not ready after 2." in result.stdout
            assert "c3/note: pending" in result.stdout
            listed = running.client.get("/documents").json()
            assert listed["items"] == []
            model.hold.set()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_still_cleans_up(indexing: Server, how: signal.Signals) -> None:
    arguments = ("canary", "--url", indexing.url, "--check", "C6", "--seconds", "60")
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
        start_new_session=True,
        # A shell ignores SIGINT in what it starts in the background, and its children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        try:
            wait_for_writes(indexing)
            os.kill(process.pid, how)
            output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130, output + errors
    assert errors.split() == ["Interrupted."]
    assert_nothing_left(backend_of(indexing.data), documents=1)


def wait_for_writes(server: Server) -> None:
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while True:
        listed = server.client.get("/documents", params={"prefix": "zibaldone-canary/"}).json()
        if len(listed["items"]) > 5:
            return
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
