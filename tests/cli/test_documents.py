"""put, get, patch, rm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.drivers.commands import Commands

EXACT = "\ufeffTitle\r\nŻółw 知識 ไทย \u2028 end without newline"


def test_a_body_comes_back_byte_for_byte(cli: Commands, tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_bytes(EXACT.encode())
    assert cli.ok("put", "from/file", str(file)) == "created from/file (revision 1)\n"
    cli.ok("put", "from/stdin", stdin=EXACT.encode())
    cli.ok("put", "from/dash", "-", stdin=EXACT.encode())
    for path in ("from/file", "from/stdin", "from/dash"):
        assert cli("get", path).stdout_bytes == EXACT.encode()


def test_labels_are_kept(cli: Commands) -> None:
    meta = ["--meta", "year=2024", "--meta", "who=Zoë", "--meta", 'nested={"a": [1, null]}']
    tags = ["--tag", "red", "--tag", "dark blue"]
    cli.ok("put", "a", "--title", "Ein Titel", *tags, *meta, "--mime", "text/plain", stdin="x")
    document = cli.json("get", "a")
    assert document["title"] == "Ein Titel"
    assert document["tags"] == ["red", "dark blue"]
    assert document["metadata"] == {"year": 2024, "who": "Zoë", "nested": {"a": [1, None]}}
    assert (document["mime"], document["revision"], document["content"]) == ("text/plain", 1, "x")


def test_put_overwrites_only_when_told(cli: Commands) -> None:
    cli.ok("put", "a", "--title", "First", stdin="one")
    assert cli.error("put", "a", stdin="two") == (5, "CONFLICT")
    assert "--upsert overwrites it" in cli("put", "a", stdin="two").stderr
    assert cli.ok("get", "a") == "one"
    assert cli.json("put", "a", "--upsert", stdin="two") == {
        "id": "a",
        "status": "updated",
        "revision": 2,
    }
    assert cli.json("get", "a")["title"] == "First"


def test_put_if_revision_refuses_a_changed_document(cli: Commands) -> None:
    cli.ok("put", "a", "--title", "First", stdin="one")
    cli.ok("put", "a", "--if-revision", "1", "--title", "", stdin="two")
    answer = cli.json("put", "a", "--if-revision", "1", stdin="three")
    assert answer["error"]["details"] == {"document_id": "a", "expected": 1, "actual": 2}
    document = cli.json("get", "a")
    assert (document["content"], document["title"]) == ("two", "")
    assert cli.error("put", "nowhere", "--if-revision", "1", stdin="x") == (4, "NOT_FOUND")


def test_what_cannot_be_put_is_said(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.error("put", "a", stdin=b"caf\xe9") == (3, "INVALID_ARGUMENT")
    assert cli.error("put", "a", stdin="nul\0") == (3, "INVALID_ARGUMENT")
    assert cli.error("put", "a/../b", stdin="x") == (3, "INVALID_ARGUMENT")
    assert cli.error("put", "a", str(tmp_path / "missing.md")) == (4, "NOT_FOUND")
    assert cli.error("put", "a", str(tmp_path)) == (3, "INVALID_ARGUMENT")
    assert cli("put", "a", "--meta", "novalue", stdin="x").exit_code == 2
    monkeypatch.setenv("ZIBALDONE_DOCUMENT_BODY_BYTES_MAX", "10")
    assert cli.error("put", "a", stdin="x" * 11) == (3, "PAYLOAD_TOO_LARGE")
    cli.ok("put", "a", stdin="x" * 10)
    assert cli.ids() == ["a"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("2", "two\n"),
        ("2-3", "two\nthree\n"),
        ("3-", "three\nfour"),
        ("-2", "one\ntwo\n"),
        ("4", "four"),
        ("2-99", "two\nthree\nfour"),
        ("9", ""),
    ],
)
def test_get_lines(cli: Commands, lines: str, expected: str) -> None:
    cli.ok("put", "a", stdin="one\ntwo\nthree\nfour")
    assert cli.ok("get", "a", "--lines", lines) == expected
    assert cli.json("get", "a", "--lines", lines)["content"] == expected


@pytest.mark.parametrize("lines", ["", "-", "0", "3-2", "a-b", "1-2-3", "1,2", "٣"])
def test_get_lines_that_make_no_sense(cli: Commands, lines: str) -> None:
    cli.ok("put", "a", stdin="one")
    assert cli("get", "a", "--lines", lines).exit_code == 2


def test_get_an_earlier_revision(cli: Commands) -> None:
    cli.ok("put", "a", stdin="old")
    cli.ok("put", "a", "--upsert", stdin="new")
    assert cli.ok("get", "a", "--revision", "1") == "old"
    assert cli.error("get", "a", "--revision", "7") == (4, "NOT_FOUND")


def test_patch_one_place(cli: Commands) -> None:
    cli.ok("put", "a", stdin="one two one")
    patched = cli.ok("patch", "a", "--old", "two", "--new", "2")
    assert patched == "patched a in 1 place (revision 2)\n"
    assert cli.error("patch", "a", "--old", "one", "--new", "1") == (5, "AMBIGUOUS")
    assert cli.error("patch", "a", "--old", "zwei", "--new", "") == (5, "NOT_FOUND_IN_CONTENT")
    assert cli.json("patch", "a", "--old", "one", "--new", "1", "--all")["replaced"] == 2
    assert cli.error("patch", "a", "--old", "1", "--new", "0", "--if-revision", "1") == (
        5,
        "CONFLICT",
    )
    assert cli.ok("get", "a") == "1 2 1"


def test_patch_from_files(cli: Commands, tmp_path: Path) -> None:
    cli.ok("put", "a", stdin="first\nsecond\nthird\n")
    (tmp_path / "old").write_text("second\n")
    (tmp_path / "new").write_text("")
    cli.ok("patch", "a", "--old-file", str(tmp_path / "old"), "--new-file", str(tmp_path / "new"))
    assert cli.ok("get", "a") == "first\nthird\n"


def test_edits_are_made_all_or_none(cli: Commands, tmp_path: Path) -> None:
    cli.ok("put", "a", stdin="one two two")
    edits = [{"old_str": "one", "new_str": "1"}, {"old_str": "two", "new_str": "2"}]
    assert cli.error("patch", "a", "--edits", "-", stdin=json.dumps(edits)) == (5, "AMBIGUOUS")
    assert cli.ok("get", "a") == "one two two"
    edits[1]["replace_all"] = True  # type: ignore[assignment]
    file = tmp_path / "edits.json"
    file.write_text(json.dumps(edits))
    assert cli.json("patch", "a", "--edits", str(file)) == {
        "id": "a",
        "status": "patched",
        "revision": 2,
        "replaced": 3,
    }
    assert cli.ok("get", "a") == "1 2 2"
    assert cli.error("patch", "a", "--edits", "-", stdin="{") == (3, "INVALID_ARGUMENT")
    assert cli.error("patch", "a", "--edits", "-", stdin='[{"old": "x"}]') == (
        3,
        "INVALID_ARGUMENT",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--old", "x"],
        ["--old", "x", "--old-file", "y", "--new", "z"],
        ["--edits", "-", "--old", "x"],
        ["--edits", "-", "--all"],
    ],
)
def test_patch_wants_one_way_of_saying_it(cli: Commands, arguments: list[str]) -> None:
    cli.ok("put", "a", stdin="one")
    assert cli("patch", "a", *arguments, stdin="[]").exit_code == 2


def test_rm_goes_on_after_a_failure(cli: Commands) -> None:
    for path in ("a", "b", "c"):
        cli.ok("put", path, stdin="x")
    result = cli("rm", "a", "missing", "b")
    assert result.exit_code == 4
    assert result.stdout == "deleted a (revision 2)\ndeleted b (revision 2)\n"
    assert "missing" in result.stderr
    assert cli.ids() == ["c"]


def test_rm_in_json(cli: Commands) -> None:
    cli.ok("put", "a", stdin="x")
    cli.ok("put", "b", stdin="x")
    assert cli.error("rm", "a", "--if-revision", "9") == (5, "CONFLICT")
    assert cli.json("rm", "a", "--if-revision", "1")["status"] == "deleted"
    assert cli.error("rm", "a") == (4, "NOT_FOUND")
    items = cli.json("rm", "a", "b")["items"]
    assert [item["status"] for item in items] == ["error", "deleted"]
    assert items[0]["error"]["code"] == "NOT_FOUND"
    assert cli("rm", "a", "b", "--if-revision", "1").exit_code == 2
    assert cli("rm").exit_code == 2
