"""ls, search, history, restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.drivers.commands import Commands


@pytest.fixture
def many(cli: Commands) -> Commands:
    """230 documents, more than two pages of the tool behind."""
    with_context = [
        {"key": f"n__{number:03}", "data": {"document_id": f"n/{number:03}", "content": "x"}}
        for number in range(230)
    ]
    dump = cli.data.parent / "dump.jsonl"
    dump.write_text("\n".join(json.dumps(row) for row in with_context))
    cli.ok("import", "agent-data", str(dump))
    return cli


def test_ls_pages_through_all(many: Commands) -> None:
    every = [f"n/{number:03}" for number in range(230)]
    assert many.ids() == every
    assert many.ok("ls", "n/22").splitlines() == every[220:]
    assert many.ok("ls", "N").splitlines() == []
    first = many("ls")
    assert first.stdout.splitlines() == every[:50]
    assert "--all" in first.stderr
    assert many.ok("ls", "--limit", "150").splitlines() == every[:150]
    assert many("ls", "--limit", "0").exit_code == 2


def test_ls_json_is_one_object(many: Commands) -> None:
    page = many.json("ls", "--limit", "120")
    assert page["count"] == len(page["items"]) == 120
    assert set(page["items"][0]) == {"document_id", "parent_id", "title", "tags", "revision"}
    rest = many.json("ls", "--all", "--cursor", page["next_cursor"])
    assert [item["document_id"] for item in rest["items"]] == [
        f"n/{number:03}" for number in range(120, 230)
    ]
    assert (rest["count"], rest["next_cursor"]) == (110, None)
    assert many.json("ls", "none/") == {"items": [], "count": 0, "next_cursor": None}
    assert many.error("ls", "--cursor", "nonsense")[0] == 3


def test_ls_long_is_aligned_and_shows_no_control_characters(cli: Commands) -> None:
    cli.ok("put", "short", "--title", "知識 one", "--tag", "x", stdin="1")
    cli.ok("put", "a/longer/path", "--title", "red\x1b[31m\x07", "--tag", "y", stdin="2")
    assert cli.ok("ls", "--long").splitlines() == [
        "a/longer/path  1  red\ufffd[31m\ufffd  y",
        "short          1  知識 one   x",
    ]


def test_search_finds_words(cli: Commands) -> None:
    cli.ok("put", "notes/deploy", "--title", "Deploying", stdin="Run the migration first.")
    cli.ok("put", "notes/other", stdin="Nothing of the kind.")
    assert cli.ok("search", "migration", "first").splitlines() == [
        "1. notes/deploy  Deploying",
        "   Run the migration first.",
    ]
    answer = cli.json("search", "migration", "--prefix", "notes/")
    assert [hit["document_id"] for hit in answer["results"]] == ["notes/deploy"]
    assert cli.json("search", "migration", "--prefix", "other/")["results"] == []
    nothing = cli("search", "unheardof")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr.splitlines()[0] == "Nothing found."
    assert cli("search", "x", "--limit", "51").exit_code == 2


def test_history_and_restore(cli: Commands) -> None:
    cli.ok("put", "a", "--title", "T", stdin="one\n")
    cli.ok("patch", "a", "--old", "one", "--new", "two")
    cli.ok("rm", "a")
    lines = [line.split() for line in cli.ok("history", "a").splitlines()]
    assert [(line[0], line[2], line[3], line[4]) for line in lines] == [
        ("3", "delete", "local", "4"),
        ("2", "patch", "local", "4"),
        ("1", "create", "local", "4"),
    ]
    assert cli.ok("restore", "a", "1") == "restored a (revision 4)\n"
    assert cli.ok("get", "a") == "one\n"
    diff = cli.ok("history", "a", "--diff", "1", "2").splitlines()
    assert [line for line in diff if line[:1] in "+-" and line[1:2] not in "+-"] == ["-one", "+two"]
    assert cli.json("history", "a", "--diff", "1", "1")["diff"] == ""
    assert cli.error("restore", "a", "9") == (4, "NOT_FOUND")
    assert cli.error("restore", "a", "1", "--if-revision", "3") == (5, "CONFLICT")
    assert cli("restore", "a", "-1").exit_code == 2


def test_a_long_history_is_paged_through(cli: Commands) -> None:
    cli.ok("put", "a", stdin="0")
    edits = [str(number) for number in range(1, 6)]
    for before, after in zip(["0", *edits], edits, strict=False):
        cli.ok("patch", "a", "--old", before, "--new", after)
    some = cli("history", "a", "--limit", "2")
    assert [line.split()[0] for line in some.stdout.splitlines()] == ["6", "5"]
    assert "--all" in some.stderr
    every = cli.json("history", "a", "--all")
    assert [one["revision"] for one in every["revisions"]] == [6, 5, 4, 3, 2, 1]
    assert every["next_before"] is None


def test_ls_recent(cli: Commands) -> None:
    for name in ("b", "a", "c"):
        cli.ok("put", name, "-", stdin=f"text of {name}")
    cli.ok("patch", "b", "--old", "text", "--new", "words")
    lines = cli.ok("ls", "--recent").splitlines()
    assert [line.split()[1] for line in lines] == ["b", "c", "a"]
    listed = cli.json("ls", "--recent", "--limit", "2")
    assert [item["document_id"] for item in listed["items"]] == ["b", "c"]
    assert lines[0].startswith(listed["items"][0]["updated_at"][:19])
    since = listed["items"][1]["updated_at"]
    assert [line.split()[1] for line in cli.ok("ls", "--since", since).splitlines()] == ["b", "c"]
    assert cli("ls", "--since", "lately").exit_code == 3


def test_a_prefix_that_no_path_has_is_told_with_those_near_it(cli: Commands) -> None:
    for path in ("notes/a", "notes/2026/b", "runbooks/c"):
        cli.ok("put", path, stdin="text")
    told = cli("ls", "nots/")
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr == "No path starts with 'nots/'. Near it: 'notes/'.\n"
    assert "Near it: 'notes/2026/'" in cli("ls", "notes/2062/").stderr
    assert "Near it: 'notes/'" in cli("ls", "nots/2026/").stderr
    assert cli("ls", "zebra/").stderr == "No path starts with 'zebra/'.\n"
    assert cli("ls", "notes/", "--since", "2999-01-01").stderr == (
        "Nothing under 'notes/' was written since then.\n"
    )
    assert "No path starts with 'nots/'. Near it: 'notes/'" in (
        cli("search", "text", "--prefix", "nots/").stderr
    )
    assert "--since" in cli("ls", "--since", "yesterday").stderr


def test_deleted_documents_are_listed_and_come_back(cli: Commands) -> None:
    assert cli.error("restore", "notes/a") == (4, "NOT_FOUND")
    for path in ("notes/a", "notes/b", "other/c"):
        cli.ok("put", path, "--title", f"Title of {path}", stdin=path)
    assert cli("ls", "--deleted").stderr == "There are no deleted documents.\n"
    for path in ("notes/b", "other/c", "notes/a"):
        cli.ok("rm", path)
    listed = [line.split()[1] for line in cli.ok("ls", "--deleted").splitlines()]
    assert listed == ["notes/a", "other/c", "notes/b"]
    assert cli.ok("ls", "notes/", "--deleted", "--long").split()[-3:] == ["Title", "of", "notes/b"]
    first = cli("ls", "--deleted", "--limit", "1")
    assert "notes/a" in first.stdout
    assert "--all" in first.stderr
    assert [item["revision"] for item in cli.json("ls", "--deleted")["items"]] == [2, 2, 2]
    assert cli("ls", "--deleted", "--recent").exit_code == 2
    told = cli("get", "notes/a")
    assert told.exit_code == 4
    assert (
        "It was deleted; restore_document (or 'zibaldone restore') brings back its revision 1"
        in (told.stderr)
    )
    assert cli.ok("restore", "notes/a") == "restored notes/a (revision 3)\n"
    assert cli.ok("get", "notes/a") == "notes/a"
    assert cli.error("restore", "notes/a") == (5, "CONFLICT")
    assert "other/" not in cli.ok("ls", "--all")
    assert [line.split()[1] for line in cli.ok("ls", "--deleted", "--all").splitlines()] == [
        "other/c",
        "notes/b",
    ]


def test_a_file_of_the_same_name_is_no_backup(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.md").write_text("a text")
    cli.ok("put", "note.md", "note.md")
    cli.ok("rm", "note.md")
    assert cli.ok("restore", "note.md") == "restored note.md (revision 3)\n"


def test_a_folder_is_told_from_a_document(cli: Commands) -> None:
    cli.ok("put", "notes/a", stdin="text")
    for command in ("get", "rm", "history"):
        assert "It is a folder" in cli(command, "notes").stderr, command
