"""export DIR, and the way back."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.commands import Commands
from zibaldone.errors import InvalidArgument
from zibaldone.exchange.names import FileNames
from zibaldone.text import normalize

ODD_IDS = (
    "a",
    "a/b",
    "a/b/c",
    "A",
    "Readme.md",
    "readme.md",
    "README.MD/part",
    "documents.jsonl",
    "DOCUMENTS.jsonl/x",
    ".hidden/.file",
    "back\\slash",
    "100%",
    "100%25",
    "tilde~",
    "what?.md",
    "con",
    "Nul.txt",
    "trailing./dot.",
    "kiến-thức/ghi chú.md",
    "x" * 300 + ".md",
    "x" * 300 + "y.md",
    "/".join(["deep"] * 200),
)


@pytest.fixture
def filled(cli: Commands) -> Commands:
    for document_id in ODD_IDS:
        cli.ok("put", document_id, "--title", f"T {document_id[:20]}", stdin=f"{document_id}\r\n")
    labels = [
        "--tag",
        "x",
        "--tag",
        "ü",
        "--meta",
        'deep={"a": [1, 2.5, "é"]}',
        "--mime",
        "text/plain",
    ]
    cli.ok("put", "labelled", *labels, "--title", "Full", stdin="first")
    cli.ok("put", "labelled", "--upsert", "--tag", "z", "--meta", "more=true", stdin="second")
    cli.ok("patch", "labelled", "--old", "second", "--new", "third \U0001f40d")
    cli.ok("put", "empty", stdin="")
    cli.ok("put", "plain.md", stdin="plain\r\n")
    cli.ok("put", "reborn", stdin="before")
    cli.ok("rm", "reborn")
    cli.ok("put", "reborn", stdin="after")
    cli.ok("put", "gone", stdin="x")
    cli.ok("rm", "gone")
    return cli


def test_everything_comes_back(filled: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = filled.json("export", str(out))
    assert (summary["documents"], summary["failed"]) == (len(ODD_IDS) + 4, 0)
    assert summary["revisions"] == 4
    other = Commands(tmp_path / "other")
    imported = other.json("import", str(out))
    assert (imported["created"], imported["problems"]) == (len(ODD_IDS) + 4, [])
    assert other.everything() == filled.everything()
    assert other.json("import", str(out))["unchanged"] == len(ODD_IDS) + 4
    assert other("doctor", "--thorough").exit_code == 0
    again = tmp_path / "again"
    other.ok("export", str(again))
    assert files(again) == files(out)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_plain_id_is_the_file_name(filled: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out"
    filled.ok("export", str(out))
    written = files(out)
    assert written["labelled"] == "third \U0001f40d".encode()
    assert written["plain.md"] == b"plain\r\n"
    assert written["kiến-thức/ghi chú.md"].startswith("kiến".encode())
    assert len({name.casefold() for name in written}) == len(written) == len(ODD_IDS) + 5
    assert not any(part.startswith(".") for name in written for part in name.split("/"))


def test_every_field_is_in_the_manifest(filled: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out"
    filled.ok("export", str(out), "--prefix", "label")
    header, line = (out / "documents.jsonl").read_text().splitlines()
    assert json.loads(header) == {"format": "zibaldone-documents", "version": 1}
    entry = json.loads(line)
    document = filled.json("get", "labelled")
    for name in ("parent_id", "title", "tags", "mime", "metadata", "revision", "created_at"):
        assert entry[name] == document[name]
    assert entry["content"] == document["content"]
    assert (entry["operation"], entry["file"]) == ("patch", "labelled")
    assert [one["content"] for one in entry["revisions"]] == ["first", "second"]


def test_edited_files_are_newer(filled: Commands, tmp_path: Path) -> None:
    """Export, edit, import: the way to change many documents with an editor."""
    out = tmp_path / "out"
    filled.ok("export", str(out))
    (out / "labelled").write_text("edited")
    (out / "plain.md").write_text("edited too")
    (out / "new.md").write_text("# New")
    (out / "empty").unlink()
    filled.ok("patch", "plain.md", "--old", "plain", "--new", "changed here")
    summary = filled.json("import", str(out))
    assert (summary["created"], summary["updated"], summary["skipped"]) == (1, 1, 1)
    assert summary["problems"][0]["path"] == "plain.md"
    document = filled.json("get", "labelled")
    assert (document["content"], document["revision"], document["title"]) == ("edited", 4, "Full")
    assert document["tags"] == ["z"]
    fresh = Commands(tmp_path / "fresh")
    fresh.ok("import", str(out))
    assert fresh.ok("get", "labelled") == "edited"
    assert fresh.ok("get", "labelled", "--revision", "3") == "third \U0001f40d"
    assert fresh.ok("get", "empty") == ""
    assert fresh("doctor", "--thorough").exit_code == 0


def test_a_change_of_metadata_alone_is_imported(filled: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out"
    filled.ok("export", str(out))
    before = filled.json("get", "labelled")
    manifest = out / "documents.jsonl"
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    for line in lines:
        if line.get("document_id") == "labelled":
            line["metadata"] = {**line["metadata"], "more": False}
        if "created_at" in line:
            line["created_at"] = "2001-01-01T00:00:00Z"
    manifest.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    summary = filled.json("import", str(out), "--update")
    assert (summary["updated"], summary["unchanged"]) == (1, len(ODD_IDS) + 3)
    after = filled.json("get", "labelled")
    assert after["metadata"] == {**before["metadata"], "more": False}
    assert after["created_at"] == before["created_at"]
    assert after["revision"] == before["revision"] + 1


def test_an_export_can_be_imported_elsewhere(filled: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out"
    filled.ok("export", str(out), "--prefix", "a")
    other = Commands(tmp_path / "other")
    other.ok("import", str(out), "--prefix", "old")
    assert other.ids() == ["old/a", "old/a/b", "old/a/b/c"]
    assert other.json("get", "old/a/b")["parent_id"] == "old/a"


def test_a_folder_with_files_is_refused(cli: Commands, tmp_path: Path) -> None:
    cli.ok("put", "a", stdin="x")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert cli.error("export", str(out)) == (5, "CONFLICT")
    assert list(files(out)) == ["mine.txt"]
    cli.ok("export", str(out), "--force")
    assert files(out)["mine.txt"] == b"mine"
    assert files(out)["a"] == b"x"
    cli.ok("patch", "a", "--old", "x", "--new", "y")
    cli.ok("export", str(out), "--force")
    assert files(out)["a"] == b"y"
    assert cli.error("export", str(out / "a")) == (7, "STORAGE_UNAVAILABLE")


def test_links_do_not_lead_an_export_out(cli: Commands, tmp_path: Path) -> None:
    cli.ok("put", "linked/a", stdin="x")
    cli.ok("put", "file", stdin="x")
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()
    (outside / "target").write_text("precious")
    (out / "linked").symlink_to(outside, target_is_directory=True)
    (out / "file").symlink_to(outside / "target")
    result = cli("export", str(out), "--force")
    assert result.exit_code == 1
    assert "linked/a" in result.stderr
    assert files(outside) == {"target": b"precious"}


def test_a_manifest_does_not_lead_an_import_out(cli: Commands, tmp_path: Path) -> None:
    cli.ok("put", "a", stdin="x")
    out = tmp_path / "out"
    cli.ok("export", str(out))
    (tmp_path / "secret").write_text("secret")
    manifest = out / "documents.jsonl"
    manifest.write_text(manifest.read_text().replace('"file":"a"', '"file":"../secret"'))
    other = Commands(tmp_path / "other")
    other.ok("import", str(out), "--glob", "../secret")
    assert other.ok("get", "a") == "x"


def test_a_damaged_manifest_is_told_line_by_line(cli: Commands, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d", "e"):
        cli.ok("put", name, stdin=name)
    out = tmp_path / "out"
    cli.ok("export", str(out))
    manifest = out / "documents.jsonl"
    lines = manifest.read_text().splitlines()
    lines[1] = lines[1][:-5]
    lines[2] = lines[2].replace('"title"', '"titel"')
    lines[3] = lines[3].replace('"revision":1', '"revision":3')
    lines[4] = lines[4].replace("Z", "?")
    manifest.write_text("\n".join(lines))
    other = Commands(tmp_path / "other")
    result = other.json("import", str(out), "--glob", "[c-e]")
    assert [problem["path"] for problem in result["problems"]] == [
        "documents.jsonl, line 2",
        "documents.jsonl, line 3",
        "documents.jsonl, line 5",
    ]
    assert (result["created"], result["failed"]) == (3, 3)
    assert other.json("get", "c")["revision"] == 3
    manifest.write_text(lines[0].replace(":1", ":9"))
    assert other.error("import", str(out)) == (3, "INVALID_ARGUMENT")


def test_a_file_of_the_manifests_name_may_be_anybodys(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "documents.jsonl").write_text('{"some": "thing"}\n')
    cli.ok("import", str(folder))
    assert cli.ids() == ["documents.jsonl"]


SEGMENT = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="/"),
    min_size=1,
    max_size=12,
) | st.sampled_from(["a", "A", "a~", "con", "CON.md", "x.", ".x", "a.md", "ß", "SS", "x" * 220])
IDS = st.lists(st.lists(SEGMENT, min_size=1, max_size=4).map("/".join), max_size=12)


@given(IDS)
def test_names_are_safe_and_never_clash(raw_ids: list[str]) -> None:
    ids = set()
    for raw in raw_ids:
        try:
            ids.add(normalize.document_id(raw))
        except InvalidArgument:
            continue
    names = FileNames("documents.jsonl")
    given_names = [names.name_for(document_id) for document_id in sorted(ids)]
    folded = [name.casefold() for name in [*given_names, "documents.jsonl"]]
    assert len(set(folded)) == len(folded)
    parents = {str(parent) for name in folded for parent in PurePosixPath(name).parents}
    assert parents.isdisjoint(folded)
    for name in given_names:
        for part in name.split("/"):
            assert part
            assert part[0] != "."
            assert part[-1] not in ". "
            assert not set(part) & set('<>:"\\|?*')
            assert len(part.encode()) <= 255
            assert part.partition(".")[0].lower() not in ("con", "nul", "com1")
