"""import DIR: a folder of files."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import docx
import pytest
from fpdf import FPDF

from tests.drivers import hostile
from tests.drivers.commands import Commands


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    (made / "sub" / "deep").mkdir(parents=True)
    (made / "one.md").write_text("# One\n\nText of one.\n")
    (made / "sub" / "two.txt").write_text("two\n")
    (made / "sub" / "deep" / "three.py").write_text("print(3)\n")
    return made


def counts(summary: dict[str, object]) -> tuple[object, ...]:
    return tuple(summary[name] for name in ("created", "updated", "unchanged", "skipped", "failed"))


def reasons(summary: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {problem["path"]: problem["reason"] for problem in summary["problems"]}


def test_paths_become_ids_and_a_second_run_changes_nothing(cli: Commands, folder: Path) -> None:
    printed = cli.ok("import", str(folder))
    assert printed == "3 created, 0 updated, 0 unchanged, 0 skipped, 0 failed\n"
    assert cli.ids() == ["one.md", "sub/deep/three.py", "sub/two.txt"]
    document = cli.json("get", "one.md")
    assert (document["title"], document["mime"]) == ("One", "text/markdown")
    assert document["content"] == "# One\n\nText of one.\n"
    assert cli.json("get", "sub/deep/three.py")["mime"] == "text/x-python"
    assert counts(cli.json("import", str(folder))) == (0, 0, 3, 0, 0)
    assert cli.json("get", "one.md") == document


def test_a_changed_file_is_the_next_revision_and_labels_stay(cli: Commands, folder: Path) -> None:
    cli.ok("import", str(folder))
    (folder / "one.md").write_text("# Uno\n")
    assert counts(cli.json("import", str(folder))) == (0, 1, 2, 0, 0)
    document = cli.json("get", "one.md")
    assert (document["revision"], document["title"]) == (2, "Uno")
    assert cli.ok("get", "one.md", "--revision", "1").startswith("# One")


def test_what_was_changed_here_is_kept_unless_told(cli: Commands, folder: Path) -> None:
    cli.ok("import", str(folder))
    cli.ok("put", "one.md", "--upsert", "--title", "Mine", "--tag", "kept", stdin="mine")
    cli.ok("rm", "sub/two.txt")
    kept = cli.json("import", str(folder))
    assert counts(kept) == (0, 0, 1, 2, 0)
    assert reasons(kept) == {
        "one.md": "it was changed here",
        "sub/two.txt": "it was deleted here",
    }
    assert counts(cli.json("import", str(folder), "--skip-existing")) == (0, 0, 1, 2, 0)
    assert counts(cli.json("import", str(folder), "--update")) == (1, 1, 1, 0, 0)
    document = cli.json("get", "one.md")
    assert document["content"].startswith("# One")
    assert (document["title"], document["tags"]) == ("Mine", ["kept"])
    assert [one["revision"] for one in cli.json("history", "one.md")["revisions"]] == [3, 2, 1]


def test_prefix_and_glob(cli: Commands, folder: Path) -> None:
    cli.ok("import", "--prefix", "team/docs", "--glob", "*.md", str(folder))
    cli.ok("import", str(folder), "--glob", "sub/**/*.txt", "--glob", "deep/*")
    assert cli.ids() == ["sub/two.txt", "team/docs/one.md"]


def test_dry_run_writes_nothing(cli: Commands, folder: Path) -> None:
    summary = cli.json("import", str(folder), "--dry-run")
    assert counts(summary) == (3, 0, 0, 0, 0)
    assert summary["dry_run"] is True
    cli.ok("put", "there.md", stdin="a store to look into")
    assert cli.ids() == ["there.md"]


def test_hidden_files_links_out_and_odd_files_are_left_out(cli: Commands, folder: Path) -> None:
    outside = folder.parent / "secret.txt"
    outside.write_text("secret")
    (folder / ".hidden").write_text("hidden")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    (folder / "out.txt").symlink_to(outside)
    (folder / "gone.txt").symlink_to(folder / "missing")
    (folder / "again.md").symlink_to("one.md")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    os.mkfifo(folder / "pipe")
    summary = cli.json("import", str(folder))
    assert counts(summary) == (4, 0, 0, 4, 0)
    assert reasons(summary) == {
        "gone.txt": "a link that leads nowhere",
        "loop": "a link to a folder",
        "out.txt": "a link that leaves the folder",
        "pipe": "not a regular file",
    }
    assert cli.ids() == ["again.md", "one.md", "sub/deep/three.py", "sub/two.txt"]


def test_files_that_are_no_text(cli: Commands, folder: Path) -> None:
    """A picture is not a failure; a text file that is none, and a broken PDF, are."""
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    (folder / "program").write_bytes(b"\x7fELF\x00\x01")
    (folder / "noise.txt").write_bytes(bytes(range(256)))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    cli.ok("put", "there.md", stdin="so that the store is there")
    result = cli("import", str(folder))
    assert result.exit_code == 1
    assert result.stdout == "3 created, 0 updated, 0 unchanged, 2 skipped, 2 failed\n"
    assert [line.split(":")[:2] for line in result.stderr.splitlines()] == [
        ["failed", " broken.pdf"],
        ["failed", " noise.txt"],
        ["skipped", " photo.png"],
        ["skipped", " program"],
    ]


def test_html_pdf_and_docx_become_text(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "page.html").write_text("<title>Page</title><h1>Hello</h1><p>world</p>")
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="printed words")
    pdf.output(str(folder / "paper.pdf"))
    word = docx.Document()
    word.add_paragraph("typed words")
    word.save(str(folder / "letter.docx"))
    cli.ok("import", str(folder / "paper.pdf"), "--prefix", "alone")
    assert cli.ok("get", "alone/paper.pdf") == "printed words"
    cli.ok("import", str(folder))
    assert cli.ok("get", "page.html") == "# Hello\n\nworld"
    assert cli.ok("get", "paper.pdf") == "printed words"
    assert cli.ok("get", "letter.docx") == "typed words"


def test_many_files_in_several_batches(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for number in range(430):
        file = folder / f"{number % 7}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text {number}")
    (folder / "large-1.txt").write_text("word " * 430_000)
    (folder / "large-2.txt").write_text("word " * 430_000)
    (folder / "too-large.txt").write_text("x" * (10 * 1024 * 1024 + 1))
    summary = cli.json("import", str(folder))
    assert counts(summary) == (432, 0, 0, 0, 1)
    assert "10485760" in reasons(summary)["too-large.txt"]
    assert len(cli.ids()) == 432
    assert cli.ok("get", "3/10.txt") == "text 10"


def test_an_address_is_not_taken_for_a_file(cli: Commands) -> None:
    result = cli("import", "https://example.org/page.html")
    assert result.exit_code == 2
    assert "ingest_document" in result.stderr


def test_a_name_that_is_not_utf8_is_said(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("text")
    result = cli("import", str(folder))
    assert result.stdout.startswith("0 created")
    assert "1 failed" in result.stdout
    assert "the name of the file is not UTF-8; rename it" in result.stderr


def test_names_that_come_to_one_id_are_said(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    composed = "caf\u00e9.txt"
    decomposed = unicodedata.normalize("NFD", composed)
    (folder / composed).write_text("one")
    (folder / decomposed).write_text("two")
    (folder / unicodedata.normalize("NFD", "th\u00e9.txt")).write_text("alone")
    for _ in range(2):
        summary = cli.json("import", str(folder))
        assert summary["failed"] == 1
        assert reasons(summary) == {decomposed: f"another file has the same path {composed!r}"}
        assert cli.ok("get", composed) == "one"
        assert cli.ok("get", "th\u00e9.txt") == "alone"


def test_a_file_name_that_is_no_text(cli: Commands, folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("x")
    summary = cli.json("import", str(folder))
    assert counts(summary) == (3, 0, 0, 0, 1)
    assert list(reasons(summary)) == ["caf\\udce9.md"]


def test_the_word_after_import(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, unless it is agent-data; ./agent-data is a folder again."""
    monkeypatch.chdir(tmp_path)
    for name in ("agent-data", "DIR"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"in-{name}.txt").write_text("x")
    assert cli("import", "agent-data").exit_code == 2
    cli.ok("import", "./agent-data")
    cli.ok("import", "DIR")
    assert cli.ids() == ["in-DIR.txt", "in-agent-data.txt"]
    assert cli("import", "missing").exit_code == 2
    assert cli("import", "--dry-run").exit_code == 2
    assert "agent-data" in cli.ok("import", "--help")
    assert "--glob" in cli.ok("import", "DIR", "--help")


def test_a_file_that_cannot_be_converted_in_time_does_not_stop_the_others(
    cli: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZIBALDONE_INGEST_SECONDS_MAX", "5")
    (folder / "hostile.html").write_bytes(hostile.COMMENTS)
    (folder / "page.html").write_text("<title>Page</title><p>words")
    summary = cli.json("import", str(folder))
    assert counts(summary) == (4, 0, 0, 0, 1)
    assert "5 seconds" in reasons(summary)["hostile.html"]  # of time, or of computing
    assert cli.json("get", "page.html")["title"] == "Page"


def write_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}")


def test_one_file_and_several(cli: Commands, folder: Path) -> None:
    assert cli.ok("import", str(folder / "one.md"), "--prefix", "team").startswith("1 created")
    assert cli.json("get", "team/one.md")["title"] == "One"
    two, three = folder / "sub" / "two.txt", folder / "sub" / "deep" / "three.py"
    assert counts(cli.json("import", str(two), str(three), "--prefix", "team")) == (2, 0, 0, 0, 0)
    assert cli.ids() == ["team/one.md", "team/three.py", "team/two.txt"]
    assert counts(cli.json("import", str(folder / "one.md"), "--prefix", "team")) == (0, 0, 1, 0, 0)
    # Two files of one name would overwrite one another.
    write_files(folder, "other/one.md")
    summary = cli.json("import", str(folder / "one.md"), str(folder / "other"), "--prefix", "x")
    assert counts(summary) == (1, 0, 0, 0, 1)
    assert reasons(summary) == {"one.md": "another file has the same path 'x/one.md'"}
    picture = folder / "photo.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    assert counts(cli.json("import", str(picture))) == (0, 0, 0, 1, 0)


def test_ignore_files_and_built_in_patterns(cli: Commands, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    folder = repository / "docs"
    write_files(
        folder,
        "kept.md",
        "draft.md",
        "secret.txt",
        "node_modules/left-pad/readme.md",
        "src/__pycache__/cached.txt",
        "src/main.py",
        "build/page.md",
        "sub/local.md",
        "sub/kept.log",
        "a.log",
        ".hidden.md",
    )
    (repository / ".git").mkdir()
    (repository / ".gitignore").write_text("build/\n*.log\n")
    (folder / ".gitignore").write_text("draft.*\n")
    (folder / ".zibaldoneignore").write_text("secret.txt\n")
    (folder / "sub" / ".gitignore").write_text("local.md\n!kept.log\n")
    result = cli("import", str(folder))
    assert cli.ids() == ["kept.md", "src/main.py", "sub/kept.log"]
    assert "7 ignored files or folders were left out" in result.stderr
    # A folder that is named is wanted, even if the repository ignores it.
    cli.ok("import", str(folder / "build"), "--prefix", "named")
    assert cli.ids()[1] == "named/page.md"
    everything = cli.json("import", str(folder), "--no-ignore", "--dry-run")
    assert (everything["created"], everything["ignored"]) == (7, 0)


def test_zibaldoneignore_alone_and_against_gitignore(cli: Commands, tmp_path: Path) -> None:
    write_files(tmp_path / "alone", "kept.md", "secret.md")
    (tmp_path / "alone" / ".zibaldoneignore").write_text("secret.md\n")
    write_files(tmp_path / "both", "built.md", "draft.md")
    (tmp_path / "both" / ".gitignore").write_text("built.md\n")
    (tmp_path / "both" / ".zibaldoneignore").write_text("!built.md\ndraft.md\n")
    cli.ok("import", str(tmp_path / "alone"), str(tmp_path / "both"))
    assert cli.ids() == ["built.md", "kept.md"]


def test_include_and_exclude(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    write_files(
        folder,
        "a.md",
        "b.txt",
        "drafts/c.md",
        "node_modules/x/d.md",
        "node_modules/x/__pycache__/e.md",
        ".github/f.md",
    )
    cli.ok("import", str(folder), "--exclude", "drafts/", "--exclude", "*.txt")
    assert cli.ids() == ["a.md"]
    cli.ok("import", str(folder), "--include", "*.md", "--prefix", "only")
    assert cli.ids()[1:] == ["only/a.md", "only/drafts/c.md"]
    cli.ok("import", str(folder), "--include", "node_modules/**", "--include", ".github/*.md")
    assert cli.ids()[:3] == [".github/f.md", "a.md", "node_modules/x/d.md"]
    assert cli.error("import", str(folder), "--exclude", "a" * 2_000) == (3, "INVALID_ARGUMENT")


def test_a_line_that_is_no_pattern_is_reported(cli: Commands, folder: Path) -> None:
    (folder / ".gitignore").write_text("!\n*.py\n")
    summary = cli.json("import", str(folder))
    assert counts(summary) == (2, 0, 0, 1, 0)
    assert reasons(summary) == {"ignore file": "a line is no pattern: !"}


FRONT = """\
---
title: "Deploying: the guide"
tags: [ops, web]
date: 2026-01-02
aliases:
  - rollout
draft: false
---
# Heading

Text.
"""


def labels(document: dict[str, Any]) -> tuple[Any, ...]:
    return document["title"], document["tags"], document["metadata"]


def test_front_matter_becomes_title_tags_and_metadata(cli: Commands, tmp_path: Path) -> None:
    file = tmp_path / "deploy.md"
    file.write_text(FRONT)
    cli.ok("import", str(file))
    document = cli.json("get", "deploy.md")
    metadata = {"date": "2026-01-02", "aliases": ["rollout"], "draft": False}
    assert labels(document) == ("Deploying: the guide", ["ops", "web"], metadata)
    assert document["content"] == FRONT
    assert counts(cli.json("import", str(file))) == (0, 0, 1, 0, 0)
    # A change of nothing but the front matter.
    file.write_text(FRONT.replace("[ops, web]", "ops").replace("draft: false\n", "stage: beta\n"))
    assert counts(cli.json("import", str(file))) == (0, 1, 0, 0, 0)
    metadata = {"date": "2026-01-02", "aliases": ["rollout"], "stage": "beta"}
    assert labels(cli.json("get", "deploy.md")) == ("Deploying: the guide", ["ops"], metadata)
    (tmp_path / "one.md").write_text("---\ntag: alone\nmodified: 2026-02-03\n---\n# One\n")
    cli.ok("import", str(tmp_path / "one.md"))
    assert labels(cli.json("get", "one.md")) == ("One", ["alone"], {"modified": "2026-02-03"})


def test_what_was_added_here_stays_beside_the_front_matter(cli: Commands, tmp_path: Path) -> None:
    file = tmp_path / "deploy.md"
    file.write_text(FRONT)
    cli.ok("import", str(file))
    added = json.dumps({"owner": "me", "date": "2025-12-31"})
    cli.ok("call", "update_document", f'{{"path": "deploy.md", "metadata": {added}}}')
    cli.ok("call", "update_document", '{"path": "deploy.md", "tags": ["ops", "web", "mine"]}')
    assert counts(cli.json("import", str(file))) == (0, 0, 1, 0, 0)
    file.write_text(FRONT.replace("[ops, web]", "[web, new]").replace("rollout", "release"))
    assert counts(cli.json("import", str(file))) == (0, 0, 0, 1, 0)
    assert counts(cli.json("import", str(file), "--update")) == (0, 1, 0, 0, 0)
    document = cli.json("get", "deploy.md")
    assert document["tags"] == ["web", "new", "mine"]
    assert document["metadata"] == {
        "date": "2025-12-31",
        "aliases": ["release"],
        "draft": False,
        "owner": "me",
    }


def test_front_matter_that_cannot_be_kept_is_text(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "broken.md").write_text("---\na: [1\n---\n# Broken\n")
    (folder / "large.md").write_text(f"---\na: {'x' * 40_000}\nb: 1\n---\n# Large\n")
    (folder / "tags.md").write_text(f"---\ntags: [{'x' * 500}, ok]\n---\n# Tags\n")
    assert counts(cli.json("import", str(folder))) == (3, 0, 0, 0, 0)
    assert labels(cli.json("get", "broken.md")) == ("Broken", [], {})
    assert labels(cli.json("get", "large.md"))[1:] == ([], {"b": 1})
    assert labels(cli.json("get", "tags.md")) == ("Tags", ["ok"], {})


def test_front_matter_edited_in_an_export(cli: Commands, tmp_path: Path) -> None:
    (tmp_path / "deploy.md").write_text(FRONT)
    cli.ok("import", str(tmp_path / "deploy.md"))
    cli.ok("export", str(tmp_path / "out"))
    (tmp_path / "out" / "deploy.md").write_text(FRONT.replace("the guide", "a guide"))
    assert counts(cli.json("import", str(tmp_path / "out"))) == (0, 1, 0, 0, 0)
    assert cli.json("get", "deploy.md")["title"] == "Deploying: a guide"


class TestPrune:
    def test_it_removes_what_vanished_and_nothing_else(self, cli: Commands, folder: Path) -> None:
        cli.ok("put", "team/by-hand.md", stdin="mine")
        cli.ok("import", str(folder), "--prefix", "other")
        cli.ok("import", str(folder), "--prefix", "team")
        (folder / "one.md").unlink()
        (folder / "sub" / "two.txt").unlink()
        dry = cli.json("import", str(folder), "--prefix", "team", "--prune", "--dry-run")
        assert (dry["removed"], dry["removed_paths"]) == (2, ["team/one.md", "team/sub/two.txt"])
        assert len(cli.ids()) == 7
        result = cli("import", str(folder), "--prefix", "team", "--prune")
        last = "0 created, 0 updated, 1 unchanged, 0 skipped, 0 failed, 2 removed\n"
        assert result.stdout == last
        assert result.stderr == "removed: team/one.md\nremoved: team/sub/two.txt\n"
        assert cli.ids() == [
            "other/one.md",
            "other/sub/deep/three.py",
            "other/sub/two.txt",
            "team/by-hand.md",
            "team/sub/deep/three.py",
        ]
        assert cli.json("import", str(folder), "--prefix", "team", "--prune")["removed"] == 0
        cli.ok("restore", "team/one.md", "1")
        assert cli.json("import", str(folder), "--prefix", "team", "--prune")["removed"] == 0
        assert "team/one.md" in cli.ids()

    def test_a_file_that_comes_back_is_imported_again(self, cli: Commands, folder: Path) -> None:
        cli.ok("import", str(folder))
        text = (folder / "one.md").read_text()
        (folder / "one.md").unlink()
        assert cli.json("import", str(folder), "--prune")["removed"] == 1
        (folder / "one.md").write_text(text)
        assert counts(cli.json("import", str(folder), "--prune")) == (1, 0, 2, 0, 0)
        (folder / "one.md").unlink()
        assert cli.json("import", str(folder), "--prune")["removed"] == 1

    def test_what_was_changed_here_stays(self, cli: Commands, folder: Path) -> None:
        cli.ok("import", str(folder))
        cli.ok("put", "one.md", "--upsert", stdin="mine")
        (folder / "one.md").unlink()
        summary = cli.json("import", str(folder), "--prune")
        assert (summary["removed"], summary["skipped"]) == (0, 1)
        assert reasons(summary) == {"one.md": "its file is gone, but it was changed here"}

    def test_files_that_are_not_selected_are_not_gone(self, cli: Commands, folder: Path) -> None:
        cli.ok("import", str(folder))
        (folder / ".gitignore").write_text("sub/\n")
        assert cli.json("import", str(folder), "--prune", "--include", "*.txt")["removed"] == 0
        assert cli.json("import", str(folder / "sub"), "--prune")["removed"] == 0
        assert cli.json("import", str(folder), "--prune", "--exclude", "*.md")["removed"] == 0
        assert len(cli.ids()) == 5

    def test_an_empty_folder_removes_nothing(self, cli: Commands, folder: Path) -> None:
        cli.ok("import", str(folder))
        folder.rename(folder.parent / "away")
        assert cli("import", str(folder), "--prune").exit_code == 2
        folder.mkdir()
        assert cli.error("import", str(folder), "--prune") == (5, "CONFLICT")
        assert len(cli.ids()) == 3
        assert cli("import", str(folder / ".." / "away" / "one.md"), "--prune").exit_code == 2


def test_nothing_to_import_is_said(cli: Commands, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = cli("import", str(tmp_path / "empty"))
    assert (result.exit_code, result.stderr.count("no file to import")) == (0, 1)
    result = cli("import", str(folder), "--include", "*.pdf")
    assert (result.exit_code, result.stderr.count("No file matched --include")) == (0, 1)
    result = cli("import", str(folder), "--include", "*.md")
    assert "file" not in result.stderr


@pytest.mark.engine("sqlite", reason="the store is a file")
@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_folders_that_an_import_makes_are_private(folder: Path, tmp_path: Path) -> None:
    """Also those above the data folder, and where the store is elsewhere."""
    data = tmp_path / "home" / "share" / "zibaldone"
    store = tmp_path / "store" / "kb.db"
    Commands(data).ok("--store", str(store), "import", str(folder))
    made = [data / "imports", data, *data.parents[:2], store.parent]
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in made} == {
        path.name: "0o700" for path in made
    }
