"""Which files the walk finds: below the roots, in a fixed order, bounded."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pack.project import O200K, Project, Session, at, files_in, places
from zibaldone.errors import LimitExceeded
from zibaldone.limits import PACK_FILE_BYTES_MAX
from zibaldone.pack.build import Ask, build
from zibaldone.pack.counts import Counts
from zibaldone.pack.walk import FolderCache, Walker, name_roots


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def found(project: Project, *paths: str) -> set[str]:
    """Files that a first turn sends."""
    return at(Session(project.assistant()).turn(*(paths or (".",))), "inline")


def reasons(project: Project) -> dict[str, str]:
    packed = Session(project.assistant()).turn(".")
    return {
        file.path.removeprefix("project/"): file.why
        for file in packed.placed
        if file.place == "left_out"
    }


def test_a_walk_can_be_stopped_within_a_folder(project: Project) -> None:
    """Where an ignore file has thousands of lines, one large folder would take minutes."""
    names = {f"{number}.py" for number in range(20)}
    for name in names:
        project.write(name, "x\n")
    checks = 0

    class Stopped(Exception):
        pass

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == len(names) // 2:
            raise Stopped

    walker = Walker([str(project.root)], FolderCache(), check=check)
    with pytest.raises(Stopped):
        walker.scan([walker.locate(".")])


class TestIgnored:
    def test_nested_negated_and_anchored_patterns(self, project: Project) -> None:
        project.write(".gitignore", "*.log\n!keep.log\n/build/\ndocs/*.tmp\n")
        project.write("src/.gitignore", "generated.py\n!important.log\n")
        for name in (
            "a.log",
            "keep.log",
            "build/x.py",
            "src/build/y.py",
            "src/important.log",
            "src/other.log",
            "src/generated.py",
            "docs/a.tmp",
            "docs/deep/b.tmp",
            "generated.py",
        ):
            project.write(name, "x\n")
        assert found(project) == {
            ".gitignore",
            "src/.gitignore",
            "keep.log",
            "src/build/y.py",
            "src/important.log",
            "docs/deep/b.tmp",
            "generated.py",
        }

    def test_the_walk_agrees_with_git(self, project: Project) -> None:
        git = shutil.which("git")
        if git is None:
            pytest.skip("there is no git")
        generator = random.Random(11)
        folders = ["", "src/", "src/deep/", "build/", "docs/api/"]
        stems = ["a", "b", "keep", "test_a"]
        for folder in folders:
            for stem in stems:
                for suffix in (".py", ".log", ".tmp"):
                    project.write(f"{folder}{stem}{suffix}", "x\n")
        patterns = ["*.log", "!keep.log", "build/", "/a.py", "src/**/b.py", "test_*", "*.tmp"]
        patterns += ["!src/deep/", "docs/*", "!docs/api", "deep", "a.*", "!a.py", "# no", ""]
        for folder in folders[:3]:
            lines = generator.sample(patterns, 6)
            project.write(f"{folder}.gitignore", "\n".join(lines) + "\n")
            subprocess.run([git, "init", "-q"], cwd=project.root, check=True)
            listed = subprocess.run(
                [git, "ls-files", "--others", "--exclude-standard"],
                cwd=project.root,
                capture_output=True,
                text=True,
                check=True,
            )
            assert found(project) == set(listed.stdout.split())

    def test_zibaldoneignore_wins_over_gitignore(self, project: Project) -> None:
        project.write(".gitignore", "data/\n")
        project.write(".zibaldoneignore", "!data/\n*.secret\n")
        project.write("data/a.txt", "x\n")
        project.write("b.secret", "x\n")
        assert found(project) == {".gitignore", ".zibaldoneignore", "data/a.txt"}

    def test_a_named_path_is_not_left_out_by_gitignore(self, project: Project) -> None:
        project.write(".gitignore", "build/\n*.log\n")
        project.write("build/.gitignore", "skip.py\n")
        project.write("build/x.py", "x\n")
        project.write("build/skip.py", "x\n")
        project.write("a.log", "x\n")
        assert found(project, "build", "a.log") == {"build/.gitignore", "build/x.py", "a.log"}

    def test_zibaldoneignore_holds_for_a_named_path_too(self, project: Project) -> None:
        project.write(".zibaldoneignore", "private/\n")
        project.write("private/a.txt", "x\n")
        project.write("b.txt", "x\n")
        (project.root / "link.txt").symlink_to(project.root / "private" / "a.txt")
        packed = Session(project.assistant()).turn("private/a.txt", "private", ".")
        assert at(packed, "inline") == {"b.txt", ".zibaldoneignore"}
        assert places(packed)["private/a.txt"] == "left_out"
        assert "private/a" not in packed.messages[0].text

    def test_version_control_and_built_in_patterns(self, project: Project) -> None:
        for name in (".git/config", "node_modules/x.js", "__pycache__/a.pyc", "src/a.py"):
            project.write(name, "x\n")
        assert found(project) == {"src/a.py"}
        packed = Session(project.assistant()).turn(".git/config", "src")
        assert places(packed)[".git/config"] == "left_out"

    def test_a_changed_ignore_file_counts_at_once(self, project: Project) -> None:
        project.write("a.txt", "a\n")
        project.write("b.txt", "b\n")
        chat = Session(project.assistant())
        chat.turn(".")
        project.write(".gitignore", "b.txt\n")
        packed = chat.turn(".")
        assert places(packed)["b.txt"] == "left_out"
        project.write(".gitignore", "a.txt\n")
        assert places(chat.turn("."))["b.txt"] == "unchanged"

    def test_patterns_with_many_wildcards_take_no_time(self, project: Project) -> None:
        project.write(
            ".gitignore",
            "\n".join(("*a" * 9 + "b", "a**" * 9 + "b", "*a*a*a/" * 4 + "b", "**/a/" * 9 + "b"))
            + "\n*.log\n"
            + "x" * 2_000,
        )
        project.write("a" * 200, "x\n")
        project.write("/".join(("a" * 60,) * 4) + "/c", "x\n")
        project.write("a/" * 60 + "c", "x\n")
        project.write("x.log", "x\n")
        packed = Session(project.assistant()).turn(".")
        assert places(packed)["a" * 200] == "inline"
        assert places(packed)["a/" * 60 + "c"] == "inline"
        assert "x.log" not in places(packed)
        assert [problem for problem in packed.problems if "too long" in problem.reason]


class TestLeftOut:
    def test_binary_large_and_odd_files_are_reported(self, project: Project) -> None:
        project.write("ok.txt", "ok\n")
        project.write("image.png", b"\x89PNG\r\n\0\0\0")
        project.write("noise.bin", bytes(range(128, 256)) * 10)
        with (project.root / "huge.txt").open("wb") as file:
            file.truncate(1 << 30)
        with (project.root / "large.txt").open("wb") as file:
            file.truncate(PACK_FILE_BYTES_MAX + 1)
        os.mkfifo(project.root / "pipe")
        listening = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        try:
            os.chdir(project.root)
            listening.bind("socket")
        finally:
            os.chdir(here)
            listening.close()
        assert reasons(project) == {
            "image.png": "binary",
            "noise.bin": "binary",
            "huge.txt": "larger than 2097152 bytes",
            "large.txt": "larger than 2097152 bytes",
            "pipe": "not a regular file",
            "socket": "not a regular file",
        }
        assert found(project) == {"ok.txt"}

    def test_a_device_is_not_read(self) -> None:
        walker = Walker(["/dev"], FolderCache())
        scan = walker.scan([walker.locate("/dev/zero")])
        assert scan.files["dev/zero"].reason == "not a regular file"

    def test_links(self, project: Project, tmp_path: Path) -> None:
        (tmp_path / "outside.txt").write_text("outside\n")
        project.write("a.txt", "a\n")
        project.write("folder/b.txt", "b\n")
        for name, target in (
            ("out.txt", tmp_path / "outside.txt"),
            ("nowhere.txt", project.root / "missing"),
            ("again", project.root / "folder"),
            ("loop", project.root / "loop"),
            ("up", project.root),
            ("same.txt", project.root / "a.txt"),
        ):
            (project.root / name).symlink_to(target)
        assert reasons(project) == {
            "out.txt": "a link that leaves the roots",
            "nowhere.txt": "a link that leads nowhere",
            "again": "a link to a folder",
            "loop": "a link that leads nowhere",
            "up": "a link to a folder",
        }
        assert found(project) == {"a.txt", "folder/b.txt"}

    def test_a_folder_that_becomes_a_link_between_walk_and_read(
        self, project: Project, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret"
        secret.mkdir()
        (secret / "a.txt").write_text("secret\n")
        project.write("folder/a.txt", "public\n")
        counts = Counts()
        walker = Walker([str(project.root)], counts.folders)
        file = walker.scan([walker.locate("folder")]).files["project/folder/a.txt"]
        shutil.rmtree(project.root / "folder")
        (project.root / "folder").symlink_to(secret)
        assert counts.of(file, O200K, is_redacted=True).reason

    def test_names_that_cannot_be_shown(self, project: Project) -> None:
        project.write("good.txt", "x\n")
        (project.root / "two\nlines.txt").write_text("x\n")
        bad = os.fsencode(project.root) + b"/not-utf8-\xff.txt"
        with open(bad, "w") as file:  # noqa: PTH123 - no Path of bytes
            file.write("x\n")
        packed = Session(project.assistant()).turn(".")
        assert at(packed, "inline") == {"good.txt"}
        named = [file for file in packed.placed if file.why == "its name cannot be shown"]
        assert len(named) == 2
        assert all(file.path.isprintable() for file in named)

    def test_other_encodings(self, project: Project) -> None:
        project.write("latin.txt", ("Zibaldone " * 20 + "caffè\n").encode("latin-1"))
        project.write("utf16.txt", "Zibaldone\n".encode("utf-16"))
        project.write("mark.txt", b"\xef\xbb\xbfZibaldone\n")
        packed = Session(project.assistant()).turn(".")
        shown = files_in(packed.messages[0].text)
        assert shown["latin.txt"].endswith("caff\ufffd\n")
        assert shown["utf16.txt"] == shown["mark.txt"] == "Zibaldone\n"
        assert {file.path: file.why for file in packed.placed if file.why} == {
            "project/latin.txt": "1 bytes are not UTF-8 and shown as \ufffd"
        }

    @pytest.mark.requirement("SI-29", "X-30")
    def test_what_cannot_be_read_is_left_out_and_reported(self, project: Project) -> None:
        project.write("a.txt", "a\n")
        project.write("closed.txt", "b\n").chmod(0)
        project.write("shut/c.txt", "c\n")
        (project.root / "shut").chmod(0)
        code = (
            "import sys; from tests.pack.project import *; "
            "from pathlib import Path; "
            "p = Project.__new__(Project); p.root = Path(sys.argv[1]); "
            "packed = Session(p.assistant()).turn('.'); "
            "print(*(f'{f.path}|{f.place}|{f.why}' for f in packed.placed), sep='\\n')"
        )
        # Root may read everything, unless it gives the right away.
        rights = "-dac_override,-dac_read_search"
        prefix = ["setpriv", "--bounding-set", rights, "--inh-caps", rights]
        if os.geteuid() != 0:
            prefix = []
        elif shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to be refused anything")
        command = [*prefix, sys.executable, "-c", code, str(project.root)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        finally:
            (project.root / "shut").chmod(0o700)
        assert done.stdout.split("\n")[:-1] == [
            "project/a.txt|inline|",
            "project/closed.txt|left_out|cannot be read: Permission denied",
            "project/shut|left_out|cannot be read: Permission denied",
        ]


class TestBounds:
    def test_too_many_entries_and_files(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(30):
            project.write(f"{number}.txt", "x\n")
        monkeypatch.setattr("zibaldone.pack.walk.PACK_FILES_MAX", 29)
        with pytest.raises(LimitExceeded, match="more than 29 files"):
            Session(project.assistant()).turn(".")
        project.write(".zibaldoneignore", "1*.txt\n")
        assert len(found(project)) == 20
        monkeypatch.setattr("zibaldone.pack.walk.PACK_ENTRIES_MAX", 30)
        with pytest.raises(LimitExceeded, match="more than 30 files and folders"):
            Session(project.assistant()).turn(".")

    def test_too_many_bytes(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        project.words("a.txt", 100)
        monkeypatch.setattr("zibaldone.pack.build.PACK_BYTES_MAX", 100)
        with pytest.raises(LimitExceeded, match="more than 100 bytes"):
            Session(project.assistant()).turn(".")

    def test_what_is_remembered_is_bounded(self, project: Project) -> None:
        cache = FolderCache(files_max=10)
        for number in range(40):
            project.write(f"{number % 8}/{number}.txt", "x\n")
        walker = Walker([str(project.root)], cache)
        assert len(walker.scan([walker.locate(".")]).files) == 40
        assert 0 < len(cache.files()) <= 10


class TestRoots:
    def test_names_of_roots_are_different(self, tmp_path: Path) -> None:
        roots = [tmp_path / "a" / "src", tmp_path / "b" / "src"]
        for root in roots:
            root.mkdir(parents=True)
            (root / "x.py").write_text("x\n")
        named = name_roots([str(root) for root in roots])
        assert [root.name for root in named] == ["src", "src-2"]
        project = Project(tmp_path)
        assistant = project.assistant(roots=tuple(map(str, roots)))
        packed = build(assistant, None, Ask(context=tuple(map(str, roots))))
        assert [file.path for file in packed.placed] == ["src-2/x.py", "src/x.py"]
        again = build(assistant, None, Ask(context=("src-2/x.py",)))
        assert [file.path for file in again.placed] == ["src-2/x.py"]

    def test_a_root_in_a_root_has_one_name_for_each_file(self, project: Project) -> None:
        project.write("inner/a.txt", "a\n")
        project.write("b.txt", "b\n")
        roots = (str(project.root), str(project.root / "inner"))
        packed = build(project.assistant(roots=roots), None, Ask(context=roots))
        assert [file.path for file in packed.placed] == ["inner/a.txt", "project/b.txt"]

    def test_the_order_of_the_file_system_does_not_matter(self, tmp_path: Path) -> None:
        texts = []
        for seed in range(3):
            project = Project(_folder(tmp_path / str(seed)))
            names = [f"{a}/{b}.txt" for a in "xyz" for b in "abc"]
            random.Random(seed).shuffle(names)
            for name in names:
                project.write(name, name)
                project.set_time(name, 1_700_000_000)
            texts.append(Session(project.assistant()).turn(".").messages[0].text)
        assert texts[0] == texts[1] == texts[2]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
