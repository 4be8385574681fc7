from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.test_frontmatter import LEARNING
from zibaldone.limits import PUSH_NOTE_BYTES_MAX
from zibaldone.push.note import Note, Source, read_note, split_text
from zibaldone.push.scan import LeftOut

SOURCE = Source("main", "notes")


def note_of(folder: Path, text: str | bytes, path: str = "a.md") -> Note:
    (folder / path).write_bytes(text.encode() if isinstance(text, str) else text)
    note = read_note(folder, path)
    assert isinstance(note, Note), note
    return note


class TestFields:
    @pytest.mark.requirement("SC-38")
    def test_a_note_of_a_hook(self, notes: Path) -> None:
        note = note_of(notes, LEARNING)
        assert note.title == "Read the status first"
        assert note.description == (
            "Markdown note a.md; type LEARNING; rating 8; source explicit; session 0123-abcd; "
            "tags mcp, session id, 42"
        )
        assert note.reference_time == "2026-01-20T10:30:00.000000Z"
        assert note.problem == ""
        (plain,) = note.episodes(SOURCE, part_chars_max=1_000, with_front_matter=False)
        assert plain.body == "\n# Read the status first\n"
        (whole,) = note.episodes(SOURCE, part_chars_max=1_000, with_front_matter=True)
        assert whole.body == LEARNING

    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("---\ntitle: One\n---\n# Two", "One"),
            ("---\nname: One\n---\n# Two", "One"),
            ("---\ntitle: [a]\n---\n# Two #\n", "Two"),
            ("Text\n\n## Three\r\n", "Three"),
            ("# Four # five ##  \n", "Four # five"),
            ("# Six" + " " * 19_000 + "seven", "Six seven"),
            ("no heading", "a"),
        ],
    )
    def test_title(self, notes: Path, text: str, title: str) -> None:
        assert note_of(notes, text).title == title

    @pytest.mark.parametrize(
        ("text", "path", "time"),
        [
            ("---\ndate: 2026-05-03\n---\nx", "a.md", "2026-05-03T00:00:00.000000Z"),
            ("---\ncreated: 2026-05-03T10:00+02:00\n---\nx", "a.md", "2026-05-03T08:00:00.000000Z"),
            ("---\ndate: soon\n---\nx", "2024-02-29-leap.md", "2024-02-29T00:00:00.000000Z"),
            ("x", "2024-02-31.md", "1970-01-01T00:00:01.000000Z"),
            ("x", "a.md", "1970-01-01T00:00:01.000000Z"),
        ],
    )
    def test_time(self, notes: Path, text: str, path: str, time: str) -> None:
        (notes / path).write_text(text)
        os.utime(notes / path, (1, 1))
        note = read_note(notes, path)
        assert isinstance(note, Note)
        assert note.reference_time == time

    def test_windows_line_ends_and_a_byte_order_mark(self, notes: Path) -> None:
        note = note_of(notes, b"\xef\xbb\xbf---\r\ntags: [a, '#b']\r\n---\r\n# T\r\n")
        assert note.title == "T"
        assert note.description.endswith("; tags a, b")
        assert note.text == "---\r\ntags: [a, '#b']\r\n---\r\n# T\r\n"

    def test_broken_front_matter_is_told_and_sent(self, notes: Path) -> None:
        note = note_of(notes, "---\na: b: c\n---\nText")
        assert "not valid YAML" in note.problem
        assert note.body == "---\na: b: c\n---\nText"

    @pytest.mark.parametrize(
        ("data", "reason", "is_empty"),
        [
            (b"", "empty", True),
            (b" \n", "empty", True),
            (b"---\ntitle: a\n---\n\n", "empty", True),
            (b"\xff\xfe", "not UTF-8", False),
            (b"x" * (PUSH_NOTE_BYTES_MAX + 1), f"longer than {PUSH_NOTE_BYTES_MAX} bytes", False),
        ],
    )
    def test_what_is_no_note(self, notes: Path, data: bytes, reason: str, is_empty: bool) -> None:
        (notes / "a.md").write_bytes(data)
        assert read_note(notes, "a.md") == LeftOut("a.md", reason, is_empty)
        assert read_note(notes, "b.md") == LeftOut(
            "b.md", "cannot be read: No such file or directory"
        )


class TestParts:
    def test_are_linked_and_nothing_is_cut(self, notes: Path) -> None:
        text = "# Long\n\n" + "\n\n".join(f"Paragraph {n}. " + "word " * 30 for n in range(40))
        note = note_of(notes, text, "long.md")
        parts = note.episodes(SOURCE, part_chars_max=2_000, with_front_matter=True)
        count = len(parts)
        assert count > 3
        assert len({part.uuid for part in parts}) == count
        assert parts[0].uuid == SOURCE.note_id("long.md")
        assert parts[1].name == f"Long (2/{count})"
        link, _, rest = parts[1].body.partition("\n\n")
        assert link == (
            f"[Part 2 of {count} of long.md: after “Long (1/{count})”, before “Long (3/{count})”]"
        )
        assert all(part.body.count("[Part ") == 1 for part in parts)
        assert "".join(part.body.partition("\n\n")[2] for part in parts) == text
        assert rest.startswith("Paragraph")

    @given(st.text(alphabet="ab# \n", max_size=400), st.integers(2, 50))
    def test_joined_they_are_the_text(self, text: str, chars_max: int) -> None:
        parts = split_text(text, chars_max)
        assert "".join(parts) == text
        assert all(0 < len(part) <= chars_max for part in parts) or text == ""


def test_ids_depend_on_where_a_note_is_and_not_on_what_it_says() -> None:
    ids = {
        Source("main", "notes").note_id("a.md"),
        Source("main", "other").note_id("a.md"),
        Source("more", "notes").note_id("a.md"),
        Source("main", "notes").note_id("b.md"),
    }
    assert len(ids) == 4
    # What was sent once has this id for ever.
    assert Source("main", "notes").note_id("a.md") == "c3b1d154-941c-5e8a-b0b9-4511eb9ab8d1"
