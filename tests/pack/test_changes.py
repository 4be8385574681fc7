"""How a change is noticed: by stat alone, and by content only in doubt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pack.project import LONG_AGO_S, O200K, Project, Session, at, files_in, new_text
from zibaldone.pack.changes import still_sent
from zibaldone.pack.counts import CACHE_FILE, Counts
from zibaldone.pack.files import FoundFile
from zibaldone.pack.walk import SETTLE_NS, FolderCache, Walker


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_an_edit_of_the_same_size_in_the_same_tick_is_noticed(project: Project) -> None:
    chat = Session(project.assistant())
    project.write("a.txt", "one\n")
    now_ns = LONG_AGO_S * 10**9 + 5 * 10**8
    project.set_time("a.txt", LONG_AGO_S)
    first = chat.turn(".", now_ns=now_ns)
    assert first.state.sent["project/a.txt"].digest is not None
    (project.root / "a.txt").write_text("two\n")
    project.set_time("a.txt", LONG_AGO_S)
    second = chat.turn(".", now_ns=now_ns)
    assert files_in(new_text(second, first)) == {"a.txt": "two\n"}


def test_once_a_file_is_old_enough_its_stat_is_enough(project: Project) -> None:
    chat = Session(project.assistant())
    project.write("a.txt", "one\n")
    project.set_time("a.txt", LONG_AGO_S)
    chat.turn(".", now_ns=LONG_AGO_S * 10**9)
    later = chat.turn(".", now_ns=LONG_AGO_S * 10**9 + SETTLE_NS + 1)
    assert at(later, "unchanged") == {"a.txt"}
    assert later.state.sent["project/a.txt"].digest is None


def test_a_time_in_the_future_is_never_trusted(project: Project) -> None:
    chat = Session(project.assistant())
    project.write("a.txt", "one\n")
    project.set_time("a.txt", LONG_AGO_S + 10**6)
    now_ns = LONG_AGO_S * 10**9
    chat.turn(".", now_ns=now_ns)
    assert at(chat.turn(".", now_ns=now_ns), "unchanged") == {"a.txt"}
    (project.root / "a.txt").write_text("two\n")
    project.set_time("a.txt", LONG_AGO_S + 10**6)
    assert at(chat.turn(".", now_ns=now_ns), "inline") == {"a.txt"}


@pytest.mark.requirement("X-33")
def test_times_are_compared_in_nanoseconds(project: Project) -> None:
    chat = Session(project.assistant())
    path = project.write("a.txt", "one\n")
    ns = LONG_AGO_S * 10**9 + 123_456_789
    os.utime(path, ns=(ns, ns))
    first = chat.turn(".")
    assert first.state.sent["project/a.txt"].mtime_ns == ns
    assert at(chat.turn("."), "unchanged") == {"a.txt"}
    os.utime(path, ns=(ns + 1, ns + 1))
    assert at(chat.turn("."), "inline") == {"a.txt"}


def test_a_file_that_is_gone_while_it_is_compared_counts_as_changed(tmp_path: Path) -> None:
    file = FoundFile(str(tmp_path / "gone"), "x/gone", 3, 5, is_settled=False)
    from zibaldone.model.consult import SentFile

    assert still_sent(file, SentFile(3, 5, "00")) is None


class TestCounts:
    def test_a_file_is_counted_once(self, project: Project) -> None:
        for number in range(5):
            project.words(f"{number}.txt", 5)
        chat = Session(project.assistant())
        chat.turn(".")
        assert chat.counts.reads == 5
        project.words("3.txt", 6)
        chat.turn(".")
        assert chat.counts.reads == 6
        # Another way of counting is another count.
        chat.assistant = project.assistant(encoding="cl100k")
        chat.turn(".")
        assert chat.counts.reads == 11

    def test_counts_outlive_a_process(self, project: Project, tmp_path: Path) -> None:
        cache = tmp_path / "data" / CACHE_FILE
        cache.parent.mkdir()
        for number in range(5):
            project.words(f"sub/{number}.txt", 5)
        project.write("logo.png", b"\0")
        first = Session(project.assistant())
        first.counts = Counts(cache)
        expected = first.turn(".").placed
        first.counts.save()
        second = Session(project.assistant())
        second.counts = Counts(cache)
        project.words("sub/3.txt", 9)
        packed = second.turn(".")
        assert second.counts.reads == 1
        assert [file for file in packed.placed if "3.txt" not in file.path] == [
            file for file in expected if "3.txt" not in file.path
        ]

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":1,"folders":{"/":3}}'])
    def test_a_cache_that_cannot_be_read_is_ignored(self, tmp_path: Path, content: bytes) -> None:
        cache = tmp_path / CACHE_FILE
        cache.write_bytes(content)
        project = Project(tmp_path)
        project.words("a.txt", 5)
        walker = Walker([str(project.root)], FolderCache())
        file = walker.scan([walker.locate("a.txt")]).files["project/a.txt"]
        counts = Counts(cache)
        assert counts.of(file, O200K, is_redacted=True).tokens > 5
