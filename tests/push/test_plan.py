from __future__ import annotations

import os
from pathlib import Path

import pytest

from zibaldone.limits import PUSH_RACY_NS
from zibaldone.push.plan import Action, Plan, files_to_read, make_plan
from zibaldone.push.scan import LeftOut, LocalFile, scan
from zibaldone.push.state import SavedNote

LONG_AGO = 1_000_000_000_000_000_000
READ_NS = LONG_AGO + 2 * PUSH_RACY_NS


def local(path: str, size: int = 1, mtime_ns: int = LONG_AGO) -> LocalFile:
    return LocalFile(path, size, mtime_ns, LONG_AGO)


def saved(path: str, digest: str = "same") -> SavedNote:
    return SavedNote(path, 1, LONG_AGO, LONG_AGO, READ_NS, digest, 1, 1, 0)


def plan_of(
    files: list[LocalFile],
    notes: list[SavedNote],
    digests: dict[str, str | LeftOut] | None = None,
    left_out: tuple[LeftOut, ...] = (),
    **options: object,
) -> Plan:
    known = {note.path: note for note in notes}
    read = files_to_read(files, known, resend_all=bool(options.get("resend_all")))
    given = {file.path: (digests or {}).get(file.path, "same") for file in read}
    return make_plan(files, left_out, given, known, **options)  # type: ignore[arg-type]


def steps(plan: Plan) -> list[tuple[str, str]]:
    return [(step.action.value, step.path) for step in plan.steps]


class TestPlan:
    def test_new_changed_and_unchanged(self) -> None:
        files = [local("new.md"), local("changed.md", 2), local("touched.md", 1, 7), local("a.md")]
        notes = [saved("changed.md"), saved("touched.md"), saved("a.md")]
        plan = plan_of(files, notes, {"changed.md": "other"})
        assert steps(plan) == [("update", "changed.md"), ("add", "new.md")]
        assert [file.path for file in plan.touched] == ["touched.md"]
        assert plan.unchanged == 2
        assert plan.count(Action.ADD) == 1

    def test_what_is_gone_is_deleted_only_if_asked(self) -> None:
        files, notes = [local("a.md")], [saved("a.md"), saved("b.md")]
        assert plan_of(files, notes).gone == ["b.md"]
        assert steps(plan_of(files, notes)) == []
        plan = plan_of(files, notes, delete=True)
        assert (steps(plan), plan.gone) == ([("delete", "b.md")], [])

    def test_all_sends_all(self) -> None:
        plan = plan_of([local("a.md")], [saved("a.md")], resend_all=True)
        assert steps(plan) == [("check", "a.md")]

    def test_interrupted_notes_are_sent_again_or_deleted(self) -> None:
        plan = plan_of(
            [local("a.md"), local("b.md")],
            [saved("a.md")],
            interrupted=["a.md", "b.md", "c.md"],
            delete=True,
        )
        assert steps(plan) == [("update", "a.md"), ("add", "b.md"), ("delete", "c.md")]

    def test_a_change_within_the_resolution_of_the_clock_is_seen(self) -> None:
        racy = READ_NS - PUSH_RACY_NS + 1
        file = LocalFile("a.md", 1, racy, LONG_AGO)
        note = saved("a.md")._replace(mtime_ns=racy)
        assert files_to_read([file], {"a.md": note}) == [file]
        calm = LocalFile("a.md", 1, racy - 1, LONG_AGO)
        assert files_to_read([calm], {"a.md": note._replace(mtime_ns=racy - 1)}) == []

    def test_what_cannot_be_sent_now_is_not_gone(self) -> None:
        notes = [saved("a.md"), saved("dir/b.md"), saved("c.md"), saved("d.md")]
        plan = plan_of(
            [local("a.md", 2), local("c.md", 0), local("e.md")],
            notes,
            {"a.md": LeftOut("a.md", "not UTF-8"), "c.md": LeftOut("c.md", "empty", True)},
            left_out=(LeftOut("dir/", "cannot be read"), LeftOut("d.md", "a link")),
            delete=True,
        )
        assert steps(plan) == [("add", "e.md"), ("delete", "c.md")]
        assert [one.path for one in plan.skipped] == ["a.md", "c.md", "d.md", "dir/"]

    def test_nothing_is_deleted_for_a_folder_without_notes(self) -> None:
        """It is rather a disk that is not mounted."""
        plan = plan_of([], [saved("a.md")], delete=True)
        assert (steps(plan), plan.gone) == ([], ["a.md"])
        unreadable = (LeftOut("./", "cannot be read"),)
        assert plan_of([], [saved("a.md")], left_out=unreadable, delete=True).gone == []


class TestScan:
    def test_what_is_a_note(self, notes: Path) -> None:
        for path in ("a.md", "deep/er/B.MD", "c.markdown", "d.txt", ".hidden.md", ".git/e.md"):
            (notes / path).parent.mkdir(parents=True, exist_ok=True)
            (notes / path).write_text("x")
        (notes / "link.md").symlink_to(notes / "a.md")
        (notes / "folder-link").symlink_to(notes / "deep")
        os.mkfifo(notes / "pipe.md")
        files, left_out = scan(notes)
        assert sorted(file.path for file in files) == ["a.md", "c.markdown", "deep/er/B.MD"]
        assert sorted(left_out) == [
            LeftOut("link.md", "a link"),
            LeftOut("pipe.md", "not a regular file"),
        ]

    def test_a_name_that_is_no_text(self, notes: Path) -> None:
        try:
            (notes / os.fsdecode(b"\xff.md")).write_text("x")
        except OSError:
            pytest.skip("this file system takes no such name")
        assert scan(notes) == ([], [LeftOut("?.md", "its name is not UTF-8")])
