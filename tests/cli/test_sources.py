"""sources: what there is, and how each cuts its documents; beside a server, and after a kill."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.engines import backend_of
from tests.drivers.index_state import assert_in_step
from tests.drivers.rag import HASHED, rag, wait_until_indexed
from tests.drivers.server import COMMAND, Server, clean_environment, parsed, run_cli
from zibaldone.embed.hashed import Hashed
from zibaldone.text.chunk import chunk_by_size, chunk_document

GERMAN = "Der Fährmann überquert die Förde bei Sturmböen 🚣🏽‍♀️. " * 60
SIZES = ("--by", "size", "--chars", "300", "--overlap", "60", "--min", "100")
CHUNKING = {"by": "size", "size_chars": 300, "overlap_chars": 60, "minimum_chars": 100}


def by_size(body: str) -> list[tuple[int, str]]:
    return [(chunk.start, chunk.text) for chunk in chunk_by_size(body, 300, 60, 100)]


def by_structure(body: str) -> list[tuple[int, str]]:
    return [(chunk.start, chunk.text) for chunk in chunk_document(body)]


def passages(server: Server, path: str) -> list[tuple[int, str]]:
    """Start and text of each passage, as a client is shown them."""
    ids = [f"{path}#{number}" for number in range(200)]
    found = rag(server).call("rag.get_chunks", chunk_ids=ids)
    return [(chunk["chunk_metadata"]["start"], chunk["body"]) for chunk in found["chunks"]]


def test_the_list_and_what_is_shown_of_one(cli: Commands) -> None:
    cli.ok("put", "a", stdin="text")
    assert cli.ok("sources").splitlines() == [
        "name  namespace  kind     documents  chunks  chunking",
        "kb    *          builtin          1       1  by structure",
    ]
    assert cli.json("sources")["sources"] == [
        {
            "source": "kb", "namespace": "*", "source_id": 1, "kind": "builtin", "enabled": True,
            "documents": 1, "chunks": 1, "chunking": {"by": "structure"}, "is_cut": True,
            "problem": None,
        }
    ]  # fmt: skip
    assert cli.ok("sources", "chunking", "kb") == "kb: by structure\n"
    assert cli.json("sources", "chunking", "kb") == {
        "source": "kb", "namespace": "*", "chunking": {"by": "structure"}, "is_cut": True,
    }  # fmt: skip


def test_a_change_is_told_and_kept(cli: Commands) -> None:
    cli.ok("put", "long", stdin=GERMAN)
    cli.ok("put", "short", stdin="text")
    found = cli.json("sources", "chunking", "kb", *SIZES)
    assert found.pop("seconds") >= 0
    assert found == {
        "source": "kb", "namespace": "*", "chunking": CHUNKING, "is_cut": True,
        "documents": 2, "changed": 1, "new_chunks": len(by_size(GERMAN)),
    }  # fmt: skip
    assert cli.json("sources", "chunking", "kb")["chunking"] == CHUNKING
    assert cli.ok("sources", "chunking", "kb", *SIZES).splitlines() == [
        "kb: by size, 300 characters, overlap 60, at least 100",
        "2 documents chunked again, 0 changed, 0 new chunks",
    ]
    # What is not said stays, but sizes that go with the size follow it.
    changed = cli.json("sources", "chunking", "kb", "--overlap", "30")["chunking"]
    assert changed == {**CHUNKING, "overlap_chars": 30}
    changed = cli.json("sources", "chunking", "kb", "--chars", "1000")["chunking"]
    assert changed == {
        "by": "size", "size_chars": 1000, "overlap_chars": 100, "minimum_chars": 200,
    }  # fmt: skip
    cli.ok("sources", "chunking", "kb", "--by", "structure")
    changed = cli.json("sources", "chunking", "kb", "--by", "size")["chunking"]
    assert changed == {
        "by": "size", "size_chars": 4000, "overlap_chars": 400, "minimum_chars": 800,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--by", "size", "--chars", "99"), (3, "INVALID_ARGUMENT")),
        (("--by", "size", "--chars", "8001"), (3, "INVALID_ARGUMENT")),
        (("--by", "size", "--chars", "-5"), (3, "INVALID_ARGUMENT")),
        (("--by", "size", "--overlap", "2001"), (3, "INVALID_ARGUMENT")),
        (("--by", "size", "--overlap", "-1"), (3, "INVALID_ARGUMENT")),
        (("--by", "size", "--min", "4001"), (3, "INVALID_ARGUMENT")),
        (("--chars", "1000"), (3, "INVALID_ARGUMENT")),
        (("--by", "structure", "--min", "10"), (3, "INVALID_ARGUMENT")),
        (("--namespace", "other"), (4, "NOT_FOUND")),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    cli: Commands, arguments: tuple[str, ...], code: tuple[int, str]
) -> None:
    cli.ok("put", "long", stdin=GERMAN)
    assert cli.error("sources", "chunking", "kb", *arguments) == code
    assert cli.json("sources", "chunking", "kb")["chunking"] == {"by": "structure"}


def test_names_that_are_unknown_or_not_enough(cli: Commands, data: Path) -> None:
    cli.ok("put", "any", stdin="x")
    assert cli.error("sources", "chunking", "nothing") == (4, "NOT_FOUND")
    assert cli("sources", "chunking", "kb", "--by", "words").exit_code == 2
    backend_of(data).execute(
        "INSERT INTO sources (namespace, name, kind, enabled, created_at_us) VALUES"
        " ('one', 'posts', 'database', 1, 0), ('two', 'posts', 'database', 0, 0)"
    )
    assert cli.error("sources", "chunking", "posts", *SIZES) == (5, "AMBIGUOUS")
    cli.ok("sources", "chunking", "posts", "--namespace", "two", *SIZES)
    found = {
        (source["source"], source["namespace"]): source["chunking"]["by"]
        for source in cli.json("sources")["sources"]
    }
    assert found == {
        ("kb", "*"): "structure", ("posts", "one"): "structure", ("posts", "two"): "size",
    }  # fmt: skip
    assert "database (disabled)" in cli.ok("sources")


def test_a_definition_that_cannot_be_used_is_named_and_mended(cli: Commands, data: Path) -> None:
    cli.ok("put", "a", stdin="text")
    bad = '{"chunking": {"by": "tokens"}}'
    backend_of(data).execute(f"UPDATE sources SET definition = '{bad}'")
    assert "invalid: by must be structure or size, not 'tokens'." in cli.ok("sources")
    (listed,) = cli.json("sources")["sources"]
    assert (listed["chunking"], "'tokens'" in listed["problem"]) == (None, True)
    for command in (["sources", "chunking", "kb"], ["put", "b"]):
        assert cli.error(*command, stdin="text") == (7, "STORAGE_CORRUPT")
    cli.ok("sources", "chunking", "kb", "--by", "structure")
    cli.ok("put", "b", stdin="text")


@pytest.mark.requirement("RAG-04", "RAG-63")
def test_a_running_server_cuts_and_finds_as_the_source_says(data: Path) -> None:
    with Server(data, environment=HASHED) as server:
        server.create("before", GERMAN)
        head = server.client.get("/documents/before").json()
        wait_until_indexed(server)
        assert passages(server, "before") == by_structure(GERMAN)
        changed = run_cli("sources", "chunking", "kb", *SIZES, data=data, environment=HASHED)
        assert changed.returncode == 0, changed.stderr
        assert passages(server, "before") == by_size(GERMAN)
        server.create("after", GERMAN)
        assert passages(server, "after") == by_size(GERMAN)
        wait_until_indexed(server)
        assert _hits(server, "before") == dict(enumerate(by_size(GERMAN)))
        same = ("revision", "updated_at", "created_at")
        after = server.client.get("/documents/before").json()
        assert [after[key] for key in same] == [head[key] for key in same]
        assert after["vector_status"] == "ready"
        changed = run_cli("sources", "chunking", "kb", "--by", "structure", data=data)
        assert changed.returncode == 0, changed.stderr
        assert passages(server, "after") == by_structure(GERMAN)
        wait_until_indexed(server)
    assert_in_step(backend_of(data), Hashed())


def _hits(server: Server, path: str) -> dict[int, tuple[int, str]]:
    """Passages that a keyword search finds in a document, by number."""
    found = rag(server).call("rag.search_fts", query="fährmann", k=50, filters={"doc_ids": [path]})
    known = dict(enumerate(passages(server, path)))
    numbers = {int(hit["chunk_id"].rpartition("#")[2]) for hit in found["results"]}
    return {number: known[number] for number in sorted(numbers)}


def test_a_run_that_was_killed_is_completed_by_another(cli: Commands, data: Path) -> None:
    folder = data.parent / "files"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number:03}.md").write_text(f"{number}. {GERMAN}")
    cli.ok("import", str(folder))
    before = cli.json("history", "000.md")
    tables = backend_of(data)
    begun = subprocess.Popen(
        [*COMMAND, "--data", str(data), "sources", "chunking", "kb", *SIZES],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment(data=data),
    )  # fmt: skip
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while not tables.query("SELECT 1 FROM chunks WHERE body LIKE '0. %' AND end_char = 300"):
        assert time.monotonic() < deadline_s
        assert begun.poll() is None, "it ended before it could be killed"
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    assert tables.broken_invariants() == {}
    shown = cli.json("sources", "chunking", "kb")
    assert (shown["chunking"], shown["is_cut"]) == (CHUNKING, False)
    assert "(not all documents yet)" in cli.ok("sources")
    found: dict[str, Any] = cli.json("sources", "chunking", "kb", *SIZES)
    assert found["documents"] == 600
    assert 0 < found["changed"] < 600
    assert cli.json("sources", "chunking", "kb", *SIZES)["changed"] == 0
    assert cli.json("sources", "chunking", "kb")["is_cut"] is True
    assert tables.broken_invariants() == {}
    assert cli.json("history", "000.md") == before
    rows = tables.query(
        "SELECT c.start_char, c.body FROM chunks c JOIN documents USING (document_key)"
        " WHERE document_id = '599.md' ORDER BY chunk_index"
    )
    assert rows == by_size(f"599. {GERMAN}")


def test_a_bar_is_shown_on_a_terminal(cli: Commands, data: Path) -> None:
    cli.ok("put", "long", stdin=GERMAN)
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [*COMMAND, "--data", str(data), "sources", "chunking", "kb", *SIZES],
        stdout=subprocess.PIPE, stderr=theirs, env=clean_environment(data=data), check=True,
        timeout=60,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "Chunking" in shown
    assert "100%" in shown
    assert b"Chunking" not in result.stdout


def test_a_server_goes_on_writing_meanwhile(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(400):
        (folder / f"{number:03}.md").write_text(f"{number}. {GERMAN}")
    assert run_cli("import", str(folder), data=server.data).returncode == 0
    cutting = subprocess.Popen(
        [*COMMAND, "--data", str(server.data), "sources", "chunking", "kb", *SIZES, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=clean_environment(data=server.data),
    )  # fmt: skip
    written = 0
    while cutting.poll() is None or not written:
        path = f"{399 - written % 400:03}.md"
        answer = server.client.put(f"/documents/{path}", json={"content": f"new {GERMAN}"})
        assert answer.status_code == 200, answer.text
        written += 1
    output, complaint = cutting.communicate(timeout=60)
    assert cutting.returncode == 0, output + complaint
    assert passages(server, "000.md")[0][1].startswith("new " if written >= 400 else "0. ")
    assert passages(server, "399.md") == by_size(f"new {GERMAN}")
    listed = parsed(run_cli("sources", "--json", data=server.data))["sources"]
    assert [source["is_cut"] for source in listed] == [True]
    assert backend_of(server.data).broken_invariants() == {}
