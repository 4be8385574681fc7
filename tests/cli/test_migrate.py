"""zibaldone migrate as an operator runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.server import Server, clean_environment
from tests.store.backends import BACKENDS, Backend

pytestmark = pytest.mark.engine("sqlite", reason="each test names its engines itself")

HASHED = {"ZIBALDONE_EMBEDDER": "hashed"}
METADATA = {"z": 1, "a": 1.0, "huge": 2**53 + 1, "list": [1, 2.5, None, {"y": 0, "x": -0.5}]}


@pytest.fixture(autouse=True)
def hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Backend]]:
    made: list[Backend] = []

    def make_one(engine: str) -> Backend:
        folder = tmp_path / f"{engine}{len(made)}"
        folder.mkdir()
        made.append(BACKENDS[engine](folder))
        return made[-1]

    yield make_one
    for backend in made:
        backend.close()


class Place:
    """The commands on one store."""

    def __init__(self, cli: Commands, backend: Backend) -> None:
        self._cli = cli
        self.url = backend.url

    def ok(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cli.ok("--store", self.url, *arguments, stdin=stdin)

    def json(self, *arguments: str) -> Any:
        return self._cli.json("--store", self.url, *arguments)

    def call(self, tool: str, **arguments: Any) -> Any:
        return json.loads(self.ok("call", tool, json.dumps(arguments)))


def fill(place: Place) -> None:
    place.call("upload_document", path="notes/a", content="# A\n\nA giraffe.", metadata=METADATA)
    place.ok("patch", "notes/a", "--old", "giraffe", "--new", "zebra")
    place.call("upload_document", path="notes/b", content="llamas, ünïcode", tags=["Red"])
    for number in range(8):
        place.ok("put", f"many/{number}", stdin=f"document {number} about alpacas " * 30)
    place.ok("put", "gone", stdin="deleted and still there to be restored")
    place.ok("rm", "gone")
    place.ok("put", "brought-back", stdin="first")
    place.ok("rm", "brought-back")
    place.ok("restore", "brought-back", "1")
    place.ok("sources", "chunking", "kb", "--by", "size", "--chars", "1000")
    place.ok("reindex")
    place.ok("key", "create", "--label", "kept", "--prefix", "notes/", "--effect", "read")
    revoked = place.json("key", "create", "--label", "revoked")["key_id"]
    place.ok("key", "revoke", revoked)


def picture(place: Place) -> dict[str, Any]:
    """All that the tools tell of a store, apart from times that a call takes."""
    ids = place.ok("ls", "--all").splitlines()
    return {
        "documents": [place.json("get", name) for name in ids],
        "histories": {
            name: [
                place.json("get", name, "--revision", str(head["revision"]))
                for head in place.json("history", name, "--all")["revisions"]
            ]
            for name in ids
        },
        "deleted": place.json("history", "gone", "--all"),
        "keys": place.json("key", "list"),
        "sources": place.json("sources"),
        "usage": place.json("usage"),
        "jobs": place.json("jobs"),
        "index": {
            name: value for name, value in place.json("index", "status").items() if name != "models"
        },
    }


def scores(place: Place) -> dict[str, float]:
    """What searches find, with scores. Engines round vectors differently, to 0.01 at most."""
    by_words = place.call("rag.search_fts", query="alpacas", k=20)["results"]
    by_meaning = place.call("rag.search_vector", query_text="about alpacas", k=20)["results"]
    by_both = place.json("search", "alpacas and llamas")["results"]
    return {
        **{f"words {hit['chunk_id']}": hit["score_fts"] for hit in by_words},
        **{f"meaning {hit['chunk_id']}": hit["score_vec"] for hit in by_meaning},
        **{f"both {hit['document_id']}": hit["score"] for hit in by_both},
    }


def assert_same(one: Place, two: Place) -> None:
    assert picture(one) == picture(two)
    assert scores(one) == pytest.approx(scores(two), abs=0.01)


def test_to_postgresql_and_back_everything_reads_the_same(
    cli: Commands, make: Callable[[str], Backend]
) -> None:
    first, middle, last = (Place(cli, make(engine)) for engine in ("sqlite", "postgres", "sqlite"))
    fill(first)
    printed = cli.ok("migrate", "--from", first.url, "--to", middle.url)
    lines = printed.splitlines()
    assert lines[0].startswith("Moving from the SQLite file ")
    assert lines[1].split() == ["table", "rows", "hash", "in", "both", "stores"]
    assert [line.split()[0] for line in lines[2:6]] == [
        "sources", "documents", "bodies", "revisions",
    ]  # fmt: skip
    assert "rows moved and verified." in printed
    assert "PostgreSQL database" in lines[0]
    assert lines[-1] == "Now set store to what you gave with --to, and start the server."
    assert_same(middle, first)
    answer = cli.json("migrate", "--from", middle.url, "--to", last.url)
    assert {table["name"] for table in answer["tables"]} >= {"documents", "vectors", "audit"}
    assert picture(last) == picture(first)
    assert scores(last) == scores(first)
    assert first.json("doctor", "--thorough")["ok"] is True
    assert middle.json("doctor", "--thorough")["ok"] is True
    assert last.json("doctor", "--thorough")["ok"] is True


KILLED = """
import os, signal, sys
from zibaldone.cli.main import main
from zibaldone.exchange import migrate
from zibaldone.store.{engine}.transfer import TransferUpkeep

migrate.TRANSFER_ROWS = 4
left = int(sys.argv.pop(1))
note = TransferUpkeep.note

def note_and_die(self, *arguments):
    global left
    left -= 1
    note(self, *arguments)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

TransferUpkeep.note = note_and_die
main(sys.argv[1:])
"""


@pytest.mark.parametrize("engine", BACKENDS)
def test_killed_in_the_middle_it_goes_on(
    cli: Commands, make: Callable[[str], Backend], engine: str
) -> None:
    source, destination = Place(cli, make("sqlite")), Place(cli, make(engine))
    fill(source)
    arguments = ["migrate", "--from", source.url, "--to", destination.url]
    script = KILLED.format(engine=engine)
    for writes in (2, 7, 15):
        killed = subprocess.run(
            [sys.executable, "-c", script, str(writes), *arguments],
            env=clean_environment(HASHED),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert killed.returncode == -9, killed.stderr
        refused = cli("--store", destination.url, "ls")
        assert refused.exit_code == 2
        assert "is being filled by 'zibaldone migrate' and is not complete" in refused.stderr
    printed = cli.ok(*arguments)
    assert printed.startswith("Going on from ")
    assert_same(destination, source)


def test_a_server_does_not_start_on_half_a_store(
    cli: Commands, make: Callable[[str], Backend]
) -> None:
    source, backend = Place(cli, make("sqlite")), make("sqlite")
    fill(source)
    script = KILLED.format(engine="sqlite")
    subprocess.run(
        [sys.executable, "-c", script, "6", "migrate", "--from", source.url, "--to", backend.url],
        env=clean_environment(HASHED),
        capture_output=True,
        check=False,
        timeout=60,
    )
    server = Server(cli.data, environment={"ZIBALDONE_STORE": backend.url})
    with pytest.raises(RuntimeError, match="not complete"):
        server.start()
    server.client.close()


class TestRefused:
    def test_there_is_nothing_to_move(self, cli: Commands, tmp_path: Path) -> None:
        missing = tmp_path / "missing.db"
        result = cli("migrate", "--from", str(missing), "--to", str(tmp_path / "new.db"))
        assert result.exit_code == 2
        assert f"the SQLite file {missing} does not exist" in result.stderr
        assert not missing.exists()
        assert not (tmp_path / "new.db").exists()

    @pytest.mark.parametrize(
        ("url", "code"),
        [
            ("mysql://host/db", (2, "CONFIGURATION")),
            ("sqlite:", (2, "CONFIGURATION")),
            ("postgresql://nobody@127.0.0.1:1/none", (7, "STORAGE_UNAVAILABLE")),
        ],
    )
    def test_a_wrong_url(
        self, cli: Commands, tmp_path: Path, url: str, code: tuple[int, str]
    ) -> None:
        cli.ok("put", "a", stdin="words")
        assert cli.error("migrate", "--to", url) == code
        source = cli.error("migrate", "--from", url, "--to", str(tmp_path / "new.db"))
        assert source == (2, "CONFIGURATION")

    def test_the_destination_is_required(self, cli: Commands) -> None:
        assert cli("migrate").exit_code == 2

    def test_a_destination_with_documents(self, cli: Commands, tmp_path: Path) -> None:
        """By default the source is the store of the settings."""
        other = str(tmp_path / "other.db")
        cli.ok("put", "a", stdin="words")
        cli.ok("--store", other, "put", "b", stdin="others")
        assert cli.error("migrate", "--to", other) == (5, "CONFLICT")
        assert cli.ok("--store", other, "ls") == "b\n"

    def test_a_store_that_a_server_uses(self, cli: Commands, tmp_path: Path) -> None:
        with Server(cli.data, environment=HASHED) as server:
            server.create("a", "words")
            while server.client.get("/documents/a").json()["vector_status"] != "ready":
                pass
            result = cli("migrate", "--to", str(tmp_path / "new.db"))
        assert result.exit_code == 5
        assert "is being served, so it cannot be read from. Stop every process" in result.stderr
        cli.ok("migrate", "--to", str(tmp_path / "new.db"))
