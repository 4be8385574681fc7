"""The files that a caller's paths stand for: below allowed roots only, and bounded.

What a path is comes from the file system, what it is called from the roots: `<root>/relative`. The
result does not depend on the order in which a file system lists names. Links are not followed
into folders; a link to a file stands for that file, if it is below a root and not ignored.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from zibaldone.errors import Forbidden, InvalidArgument, LimitExceeded
from zibaldone.limits import (
    ECHO_CHARS_MAX,
    PACK_CACHE_FILES_MAX,
    PACK_ENTRIES_MAX,
    PACK_FILE_BYTES_MAX,
    PACK_FILES_MAX,
    PACK_PATH_CHARS_MAX,
    PACK_SETTLE_SECONDS,
)
from zibaldone.pack.files import NOT_REGULAR, TOO_LARGE, FoundFile
from zibaldone.text import ignore

SETTLE_NS = int(PACK_SETTLE_SECONDS * 1e9)


class Problem(NamedTuple):
    """Something that was asked for and is not there."""

    path: str
    reason: str


class Root(NamedTuple):
    path: str
    """Absolute, without symbolic links."""
    name: str


class Place(NamedTuple):
    """A path of the caller, found to be below a root."""

    path: str
    shown: str
    root: Root


@dataclass(slots=True)
class Scan:
    files: dict[str, FoundFile] = field(default_factory=dict)
    """By the name that is shown."""
    problems: list[Problem] = field(default_factory=list)
    missing: list[Place] = field(default_factory=list)
    """Named, and not there."""
    entries: int = 0


@dataclass(slots=True)
class _Folder:
    """What is remembered of a folder."""

    rules: ignore.Rules
    files: dict[str, FoundFile]
    ignored_files: set[str]
    folders: dict[str, bool]
    """Names of folders, and whether they are walked."""


class FolderCache:
    """Remembers folders between walks: the ignore rules that were matched, and the files."""

    def __init__(self, files_max: int = PACK_CACHE_FILES_MAX) -> None:
        self._files_max = files_max
        self._files = 0
        self._folders: OrderedDict[tuple[str, str], _Folder] = OrderedDict()
        self._roots: dict[str, ignore.Rules] = {}
        self._rules: dict[tuple[str, int], ignore.Rules] = {}
        self._lock = threading.Lock()

    def get(self, path: str, shown: str) -> _Folder | None:
        return self._folders.get((path, shown))

    def put(self, path: str, shown: str, folder: _Folder) -> None:
        with self._lock:
            old = self._folders.pop((path, shown), None)
            self._files += len(folder.files) - (0 if old is None else len(old.files))
            self._folders[path, shown] = folder
            while self._folders and (
                self._files > self._files_max or len(self._folders) > self._files_max
            ):
                _, dropped = self._folders.popitem(last=False)
                self._files -= len(dropped.files)

    def files(self) -> list[FoundFile]:
        """Those remembered now."""
        with self._lock:
            return [file for folder in self._folders.values() for file in folder.files.values()]

    def root_rules(self, root: str) -> ignore.Rules:
        with self._lock:
            return self._roots.setdefault(root, ignore.root_rules(root))

    def folder_rules(
        self, path: str, parent: ignore.Rules, names: Iterable[str], now_ns: int
    ) -> ignore.Rules:
        """The rules of a folder, which has the ignore files `names`; read if they changed."""
        stamp: list[object] = []
        is_settled = True
        for name in sorted(names):
            try:
                found = os.lstat(os.path.join(path, name))
            except OSError:
                continue
            stamp += [name, found.st_size, found.st_mtime_ns, found.st_ino]
            is_settled &= found.st_mtime_ns < now_ns - SETTLE_NS
        if not stamp:
            return parent
        key = (path, id(parent))
        known = self._rules.get(key)
        if known is not None and known.parent is parent and known.stamp == (*stamp,):
            return known
        rules = ignore.folder_rules(path, parent, (*stamp,) if is_settled else ("young",))
        with self._lock:
            if len(self._rules) >= PACK_FILES_MAX:
                self._rules.clear()
            self._rules[key] = rules
        return rules


def name_roots(roots: Sequence[str]) -> tuple[Root, ...]:
    """The roots with the names they are shown by: the last part of each, told apart by numbers."""
    named: list[Root] = []
    taken: set[str] = set()
    for given in roots:
        path = os.path.realpath(given)
        stem = os.path.basename(path) or "root"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        named.append(Root(path, name))
    return (*named,)


class Walker:
    """Walks once for one call."""

    def __init__(
        self,
        roots: Sequence[str],
        cache: FolderCache,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.roots = name_roots(roots)
        # Of two roots in one another, the inner one names a file.
        self._by_length = sorted(self.roots, key=lambda root: -len(root.path))
        self._by_path = {root.path: root for root in reversed(self.roots)}
        self._cache = cache
        self._now_ns = now_ns()
        self._settled_ns = self._now_ns - SETTLE_NS
        self._check = check

    def locate(self, given: str) -> Place:
        """The place of a path: absolute, below the first root, or as it is shown.

        Forbidden if it is outside of all roots, whether or not there is such a file.
        """
        if not given or len(given) > PACK_PATH_CHARS_MAX or "\0" in given:
            raise InvalidArgument(
                f"A path must have 1 to {PACK_PATH_CHARS_MAX} characters and no NUL.", field="path"
            )
        place = self._place(self._resolve(given))
        if place is None:
            allowed = ", ".join(root.path for root in self.roots) or "none"
            raise Forbidden(
                f"The path {given[:ECHO_CHARS_MAX]!r} is outside of the folders that this "
                f"assistant may read: {allowed}. Add its folder to roots in the settings.",
                path=given[:ECHO_CHARS_MAX],
            )
        return place

    def scan(self, places: Iterable[Place]) -> Scan:
        """All files at and below the places; each once."""
        scan = Scan()
        walked: set[str] = set()
        for place in dict.fromkeys(places):
            self._check()
            self._scan_named(place, scan, walked)
        return scan

    def look(self, shown: str) -> FoundFile | None:
        """One file by the name that it was shown by; None if it is gone or ignored now."""
        name, _, relative = shown.partition("/")
        for root in self.roots:
            if root.name == name and relative:
                path = os.path.join(root.path, relative)
                place = self._place(os.path.realpath(path))
                if place is None or place.shown != shown:
                    return None
                scan = Scan()
                self._scan_named(place, scan, set())
                return scan.files.get(shown)
        return None

    def _resolve(self, given: str) -> str:
        if os.path.isabs(given):
            return os.path.realpath(given)
        if not self.roots:
            return os.path.realpath(os.path.join(os.sep, given))
        path = os.path.join(self.roots[0].path, given)
        if not os.path.lexists(path):
            name, _, relative = os.path.normpath(given).replace(os.sep, "/").partition("/")
            for root in self.roots:
                if root.name == name:
                    return os.path.realpath(os.path.join(root.path, relative))
        return os.path.realpath(path)

    def _place(self, path: str) -> Place | None:
        for root in self._by_length:
            if path == root.path:
                return Place(path, root.name, root)
            prefix = root.path.rstrip(os.sep) + os.sep
            if path.startswith(prefix):
                relative = path[len(prefix) :].replace(os.sep, "/")
                return Place(path, f"{root.name}/{relative}", root)
        return None

    def _scan_named(self, place: Place, scan: Scan, walked: set[str]) -> None:
        """A path that the caller names: .gitignore does not leave it out, .zibaldoneignore does."""
        try:
            found = os.lstat(place.path)
        except FileNotFoundError:
            scan.missing.append(place)
            return
        except OSError as problem:
            scan.problems.append(Problem(place.shown, f"cannot be read: {problem.strerror}"))
            return
        is_folder = stat.S_ISDIR(found.st_mode)
        rules, reason, is_git_ignored = self._rules_above(place, is_folder=is_folder)
        if reason:
            scan.problems.append(Problem(place.shown, f"ignored by {reason}"))
        elif is_folder:
            if is_git_ignored:
                rules = rules.without_git()
            self._walk(place.path, place.shown, rules, scan, walked)
        elif place.shown not in scan.files:
            self._add(self._file(place.path, place.shown, found), scan)

    def _rules_above(self, place: Place, *, is_folder: bool) -> tuple[ignore.Rules, str, bool]:
        """The rules that hold for a named path; by which file it is ignored for good; and whether
        .gitignore leaves it out."""
        root = place.root.path
        rules = self._cache.root_rules(root)
        parts = [part for part in place.path[len(root) :].split(os.sep) if part]
        is_git_ignored = False
        folder = root
        for number, part in enumerate(parts):
            rules = self._cache.folder_rules(folder, rules, ignore.FILES, self._now_ns)
            folder = os.path.join(folder, part)
            if part in ignore.NEVER:
                return rules, "version control", False
            is_last = number == len(parts) - 1
            part_is_folder = is_folder or not is_last
            own = rules.reason_of_own(folder, is_folder=part_is_folder)
            if own:
                return rules, own, False
            if own is None and rules.reason(folder, is_folder=part_is_folder):
                is_git_ignored = True
        return rules, "", is_git_ignored

    def _walk(
        self, path: str, shown: str, rules: ignore.Rules, scan: Scan, walked: set[str]
    ) -> None:
        waiting = [(path, shown, rules)]
        while waiting:
            path, shown, rules = waiting.pop()
            if path in walked:
                continue
            walked.add(path)
            self._check()
            try:
                with _opened(path) as folder:
                    waiting += self._walk_folder(folder, path, shown, rules, scan)
            except OSError as problem:
                scan.problems.append(Problem(shown, f"cannot be read: {problem.strerror}"))

    def _walk_folder(
        self, folder: int | str, path: str, shown: str, above: ignore.Rules, scan: Scan
    ) -> list[tuple[str, str, ignore.Rules]]:
        """Take the files of one open folder; the folders in it, to be walked next."""
        with os.scandir(folder) as scanned:
            entries: list[os.DirEntry[str]] = [*scanned]
        scan.entries += len(entries)
        if scan.entries > PACK_ENTRIES_MAX:
            raise LimitExceeded(
                f"The paths hold more than {PACK_ENTRIES_MAX} files and folders. Name smaller "
                f"folders, or leave some out with {ignore.OWN_FILE}.",
                limit=PACK_ENTRIES_MAX,
            )
        names = [entry.name for entry in entries if entry.name in ignore.FILES]
        rules = self._cache.folder_rules(path, above, names, self._now_ns) if names else above
        if rules is not above:
            scan.problems += [Problem(f"{shown}: ignore file", text) for text in rules.problems]
        known = self._cache.get(path, shown)
        if known is None or known.rules is not rules:
            known = _Folder(rules, {}, set(), {})
        taken = scan.files
        same, others = _compare(entries, known.files, taken)
        deeper: list[tuple[str, str, ignore.Rules]] = []
        fresh: dict[str, FoundFile] = {}
        is_same = len(same) == len(known.files)
        for entry in others:
            if not self._is_known_other(entry, path, shown, known, deeper):
                is_same = False
                self._check()  # thousands of patterns take milliseconds for each name
                self._look_at(entry, path, shown, known, fresh, deeper, scan)
        if not is_same:
            fresh.update((name, known.files[name]) for name in same)
            changed = _Folder(rules, fresh, known.ignored_files, known.folders)
            self._cache.put(path, shown, changed)
        if len(taken) > PACK_FILES_MAX:
            raise LimitExceeded(
                f"The paths hold more than {PACK_FILES_MAX} files. Name smaller folders, or leave "
                f"some out with {ignore.OWN_FILE}.",
                limit=PACK_FILES_MAX,
            )
        return deeper

    def _is_known_other(
        self,
        entry: os.DirEntry[str],
        path: str,
        shown: str,
        folder: _Folder,
        deeper: list[tuple[str, str, ignore.Rules]],
    ) -> bool:
        """Whether an entry is a folder or an ignored file that is known; notes a folder to walk."""
        name = entry.name
        is_walked = folder.folders.get(name)
        if is_walked is None:
            return name in folder.ignored_files and not entry.is_dir(follow_symlinks=False)
        if not entry.is_dir(follow_symlinks=False):
            return False
        if is_walked:
            deeper.append(self._below(path, shown, name, folder.rules))
        return True

    def _look_at(
        self,
        entry: os.DirEntry[str],
        path: str,
        shown: str,
        folder: _Folder,
        fresh: dict[str, FoundFile],
        deeper: list[tuple[str, str, ignore.Rules]],
        scan: Scan,
    ) -> None:
        """An entry that is new, or not what it was."""
        name = entry.name
        rules = folder.rules
        place = os.path.join(path, name)
        if entry.is_dir(follow_symlinks=False):
            is_walked = name not in ignore.NEVER and not rules.reason(place, is_folder=True)
            folder.folders[name] = is_walked
            if is_walked:
                deeper.append(self._below(path, shown, name, rules))
            return
        folder.folders.pop(name, None)
        if rules.reason(place, is_folder=False):
            folder.ignored_files.add(name)
            return
        if entry.is_symlink():
            self._follow(place, f"{shown}/{name}", scan)
            return
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError as problem:
            scan.problems.append(Problem(f"{shown}/{name}", f"is gone: {problem.strerror}"))
            return
        file = self._file(place, f"{shown}/{name}", found)
        if self._add(file, scan):
            fresh[name] = file

    def _below(
        self, path: str, shown: str, name: str, rules: ignore.Rules
    ) -> tuple[str, str, ignore.Rules]:
        below = os.path.join(path, name)
        inner = self._by_path.get(below)
        return below, f"{shown}/{name}" if inner is None else inner.name, rules

    def _follow(self, path: str, shown: str, scan: Scan) -> None:
        """A link stands for the file that it leads to."""
        try:
            real = os.path.realpath(path, strict=True)
            found = os.lstat(real)
        except OSError:
            scan.problems.append(Problem(shown, "a link that leads nowhere"))
            return
        place = self._place(real)
        if place is None:
            scan.problems.append(Problem(shown, "a link that leaves the roots"))
            return
        if stat.S_ISDIR(found.st_mode):
            scan.problems.append(Problem(shown, "a link to a folder"))
            return
        if place.shown in scan.files:
            return
        _, reason, is_git_ignored = self._rules_above(place, is_folder=False)
        if not reason and not is_git_ignored:
            self._add(self._file(place.path, place.shown, found), scan)

    def _file(self, path: str, shown: str, found: os.stat_result) -> FoundFile:
        reason = ""
        if not stat.S_ISREG(found.st_mode):
            reason = NOT_REGULAR
        elif found.st_size > PACK_FILE_BYTES_MAX:
            reason = TOO_LARGE
        return FoundFile(
            path,
            shown,
            found.st_size,
            found.st_mtime_ns,
            found.st_ino,
            found.st_mtime_ns < self._settled_ns,
            reason,
        )

    @staticmethod
    def _add(file: FoundFile, scan: Scan) -> bool:
        """Take a file, unless its name cannot be shown."""
        if file.shown.isprintable():
            scan.files[file.shown] = file
            return True
        readable = file.shown.encode("utf-8", "backslashreplace").decode()
        readable = "".join(char if char.isprintable() else "\ufffd" for char in readable)
        scan.problems.append(Problem(readable, "its name cannot be shown"))
        return False


@contextmanager
def _opened(path: str) -> Iterator[int | str]:
    """A folder to list. Where the system can, it is open meanwhile: it cannot be exchanged for a
    link, and a stat by name within it is quicker."""
    if os.scandir not in os.supports_fd:
        yield path
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield folder
    finally:
        os.close(folder)


def _compare(
    entries: list[os.DirEntry[str]], files: dict[str, FoundFile], taken: dict[str, FoundFile]
) -> tuple[list[str], list[os.DirEntry[str]]]:
    """Take the files that are as they were; their names, and the entries that are left.

    In most turns this is where the time of a walk goes, so it does little else than stat.
    """
    same: list[str] = []
    others: list[os.DirEntry[str]] = []
    for entry in entries:
        name = entry.name
        file = files.get(name)
        if file is not None and file.is_settled:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                others.append(entry)
                continue
            if (
                found.st_mtime_ns == file.mtime_ns
                and found.st_size == file.size
                and found.st_ino == file.inode
            ):
                taken[file.shown] = file
                same.append(name)
                continue
        others.append(entry)
    return same, others
