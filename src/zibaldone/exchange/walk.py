"""The files of a folder that are imported: none that is hidden or outside the folder."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: Path
    """Where it really is: links are resolved."""
    name: str
    """Its path inside the folder, with `/` on every system."""
    reason: str = ""
    """Why it is left out; empty if it is not."""


def walk(root: Path, patterns: Sequence[str] = ()) -> Iterator[FoundFile]:
    """Files in the order of their names; holds the names of one folder at a time."""
    real_root = root.resolve()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError as problem:
            yield FoundFile(root / folder, folder, f"cannot be read: {problem.strerror}")
            continue
        folders = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif matches(name, patterns):
                yield _inspect(entry, name, real_root)
        waiting.extend(reversed(folders))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """A pattern with `/` is matched against the whole path, any other against the file's name."""
    if not patterns:
        return True
    last = name.rpartition("/")[2]
    return any(
        fnmatch.fnmatchcase(name if "/" in pattern else last, pattern.replace("**/", "*"))
        for pattern in patterns
    )


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
