"""Without a server, a command makes the vectors of what it wrote, and no note promises others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.rag import wait_until_indexed
from tests.drivers.server import Server
from tests.drivers.terminal import Terminal
from tests.embed.built_in import needs

HASHED = {"ZIBALDONE_EMBEDDER": "hashed"}


@pytest.fixture
def hashed(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The commands with a model, and no server."""
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")
    return cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(20):  # more than one batch
        (folder / f"{number}.md").write_text(f"# File {number}\n\nSome words about {number}.")
    return folder


def status(cli: Commands, path: str) -> str:
    found: str = cli.json("get", path)["vector_status"]
    return found


def test_a_command_that_writes_a_document_indexes_it(hashed: Commands) -> None:
    for arguments in (
        ("put", "a"),
        ("put", "a", "--upsert"),
        ("patch", "a", "--old", "zebra", "--new", "giraffe"),
        ("restore", "a", "1"),
        ("call", "update_document", json.dumps({"path": "a", "content": "an okapi"})),
    ):
        done = hashed(*arguments, stdin="a zebra among acacias")
        assert done.exit_code == 0, done.output
        assert status(hashed, "a") == "ready", arguments
        assert "keyword" not in done.stderr
    assert hashed.json("index", "status")["missing"] == 0


@needs("fast")
def test_a_search_with_another_model_says_that_its_vectors_are_missing(
    hashed: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed.ok("put", "a", stdin="a zebra among acacias")
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "fast")
    assert "'zibaldone reindex' makes those of this model" in hashed("search", "zebra").stderr
    hashed.ok("reindex")
    assert hashed("search", "zebra").stderr == ""


def test_an_import_finishes_its_vectors(hashed: Commands, folder: Path) -> None:
    done = hashed.json("import", str(folder))
    assert done["created"] == 20
    assert done["vectors"] == {"embedded": 20, "pending": 0}
    assert hashed.json("index", "status")["ready"] == 20
    again = hashed("import", str(folder))
    assert (again.exit_code, again.stderr) == (0, "")


def test_without_vectors_the_note_says_who_makes_them(hashed: Commands, folder: Path) -> None:
    done = hashed("import", str(folder), "--no-vectors")
    assert done.exit_code == 0
    assert "20 changes have no vectors yet. 'zibaldone reindex' makes them" in done.stderr
    assert status(hashed, "1.md") == "pending"
    found = hashed("search", "words")
    assert "No server runs; 'zibaldone reindex' makes the vectors." in found.stderr
    hashed.ok("reindex")
    assert status(hashed, "1.md") == "ready"
    assert hashed("search", "words").stderr == ""


def test_another_note_does_not_speak_of_vectors_that_are_there(hashed: Commands) -> None:
    hashed.ok("put", "a", stdin="a zebra among acacias, seen from afar")
    weak = hashed("search", "zebra crossings in the rules of road traffic")
    assert "nothing found matches the query well" in weak.stderr.lower()
    assert "reindex" not in weak.stderr


def test_what_healing_queues_is_made(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("put", "a", stdin="words")
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")
    cli.ok("index", "audit", "--heal")
    assert status(cli, "a") == "ready"


def test_a_model_that_cannot_be_reached(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is kept, and the command says what is missing."""
    for name, value in (
        ("EMBEDDER", "remote"),
        ("EMBEDDING_URL", "http://127.0.0.1:9/v1"),
        ("EMBEDDING_MODEL", "none"),
        ("EMBEDDING_DIMENSIONS", "8"),
    ):
        monkeypatch.setenv(f"ZIBALDONE_{name}", value)
    done = cli("put", "a", stdin="words")
    assert (done.exit_code, done.stdout) == (0, "created a (revision 1)\n")
    assert "Vectors were not made: " in done.stderr
    assert "1 change has no vectors yet" in done.stderr
    assert cli.ok("get", "a") == "words"


def test_a_running_server_does_it(
    data: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")
    with Server(data, environment=HASHED) as server:
        server.create("first", "so that the server is at work")
        wait_until_indexed(server)
        cli = Commands(data)
        done = cli.json("import", str(folder))
        assert done["vectors"] == {"embedded": 0, "pending": 0}
        wait_until_indexed(server)
        assert status(cli, "1.md") == "ready"


@pytest.mark.engine("sqlite", reason="it is about the terminal")
def test_a_terminal_shows_the_progress(data: Path, folder: Path) -> None:
    with Terminal("import", str(folder), data=data, environment=HASHED) as terminal:
        assert terminal.end() == 0
        assert "Importing  [####" in terminal.shown
        assert "Embedding  [####" in terminal.shown
        assert terminal.shown.splitlines()[-1].startswith("20 created")
