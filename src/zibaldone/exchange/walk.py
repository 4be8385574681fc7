"""The files of a folder that are imported: none that is hidden, ignored or outside the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zibaldone.text import ignore

_WILDCARD = re.compile(r"[*?\[\]!\\]")


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: Path
    """Where it really is: links are resolved."""
    name: str
    """Its path inside the folder, with `/` on every system."""
    reason: str = ""
    """Why it is left out; empty if it is not."""


class Selection:
    """Which files are wanted. Patterns are written as in .gitignore, from the folder on."""

    def __init__(
        self,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        *,
        ignores: bool = True,
    ) -> None:
        """`include`: only these; a pattern that spells the name of a hidden or ignored file or
        folder asks for it. `ignores`: ignore files and the built-in patterns count."""
        self._include = ignore.patterns_of(include, "include") if include else None
        self._exclude = ignore.patterns_of(exclude, "exclude") if exclude else None
        self._asked = frozenset(
            part for pattern in include for part in pattern.split("/") if not _WILDCARD.search(part)
        )
        self.ignores = ignores

    def takes_file(self, name: str) -> bool:
        return (self._include is None or self._include.match_file(name)) and not (
            self._exclude is not None and self._exclude.match_file(name)
        )

    def takes_folder(self, name: str) -> bool:
        return self._exclude is None or not self._exclude.match_file(name + "/")

    def asks_for(self, name: str) -> bool:
        """Whether a hidden or ignored file or folder is wanted; its last name decides."""
        return name.rpartition("/")[2] in self._asked


EVERYTHING = Selection()


class FolderWalk:
    """Files in the order of their names; holds the names of one folder at a time."""

    def __init__(self, root: Path, selection: Selection = EVERYTHING) -> None:
        self.ignored = 0
        """Files and folders that ignore files or the built-in patterns left out, so far."""
        self._root = root
        self._real_root = root.resolve()
        self._selection = selection

    def __iter__(self) -> Iterator[FoundFile]:
        self.ignored = 0
        waiting = [("", self._first_rules())]
        while waiting:
            folder, rules = waiting.pop()
            try:
                with os.scandir(self._root / folder) as scanned:
                    entries = sorted(scanned, key=lambda entry: entry.name)
            except OSError as problem:
                reason = f"cannot be read: {problem.strerror}"
                yield FoundFile(self._root / folder, folder, reason)
                continue
            names = {entry.name for entry in entries}
            if rules is not None and names & ignore.FILES:
                rules = ignore.folder_rules(os.fspath(self._real_root / folder), rules)
                for problem_text in rules.problems:
                    place = f"{folder}/" if folder else ""
                    yield FoundFile(self._root, f"{place}ignore file", problem_text)
            folders = []
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if self._selection.takes_folder(name):
                        folders += self._folder(name, rules)
                elif self._selection.takes_file(name) and self._takes(name, rules):
                    yield _inspect(entry, name, self._real_root)
            waiting.extend(reversed(folders))

    def _first_rules(self) -> ignore.Rules | None:
        return ignore.named_rules(os.fspath(self._real_root)) if self._selection.ignores else None

    def _takes(self, name: str, rules: ignore.Rules | None) -> bool:
        if self._selection.asks_for(name):
            return True
        if _is_hidden(name):
            return False
        is_ignored = self._is_ignored(name, rules, is_folder=False)
        self.ignored += is_ignored
        return not is_ignored

    def _folder(
        self, name: str, rules: ignore.Rules | None
    ) -> list[tuple[str, ignore.Rules | None]]:
        """The folder with the rules that hold above it, if it is to be walked."""
        is_ignored = self._is_ignored(name, rules, is_folder=True)
        if not is_ignored and not _is_hidden(name):
            return [(name, rules)]
        if self._selection.asks_for(name):
            # What leaves out the folder leaves out all that is in it.
            inner = None if rules is None else ignore.root_rules(os.fspath(self._real_root / name))
            return [(name, inner)]
        self.ignored += is_ignored and not _is_hidden(name)
        return []

    def _is_ignored(self, name: str, rules: ignore.Rules | None, *, is_folder: bool) -> bool:
        if rules is None:
            return False
        return bool(rules.reason(os.fspath(self._real_root / name), is_folder=is_folder))


def _is_hidden(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".")


def _inspect(entry: os.DirEntry[str], name: str, real_root: Path) -> FoundFile:
    path = Path(entry.path)
    if entry.is_symlink():
        try:
            path = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return FoundFile(path, name, "a link that leads nowhere")
        if not path.is_relative_to(real_root):
            return FoundFile(path, name, "a link that leaves the folder")
        if path.is_dir():
            return FoundFile(path, name, "a link to a folder")
    # A pipe or a device would be waited for, perhaps for ever.
    return FoundFile(path, name, "" if path.is_file() else "not a regular file")
