"""The Markdown files of a folder, as a walk sees them: nothing is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".md", ".markdown")


class LocalFile(NamedTuple):
    """A tuple, because ten thousand of them are made in a run that finds nothing to do."""

    path: str
    """Inside the folder, with `/` on every system."""
    size: int
    mtime_ns: int
    ctime_ns: int


class LeftOut(NamedTuple):
    path: str
    """That of a folder ends in `/`."""
    reason: str
    is_empty: bool = False
    """There is nothing to send, as if it were not there; any other may come back as it was."""


def scan(root: Path) -> tuple[list[LocalFile], list[LeftOut]]:
    """The notes of a folder in no order, and what is left out of it. Hidden files are no notes."""
    files: list[LocalFile] = []
    left_out: list[LeftOut] = []
    waiting = [(os.fspath(root), "")]
    while waiting:
        folder, prefix = waiting.pop()
        try:
            entries = os.scandir(folder)
        except OSError as problem:
            left_out.append(LeftOut(_shown(prefix or "./"), f"cannot be read: {problem.strerror}"))
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{prefix}{name}/"))
                elif name.lower().endswith(SUFFIXES):
                    seen = _look_at(entry, prefix + name)
                    if isinstance(seen, LocalFile):
                        files.append(seen)
                    else:
                        left_out.append(seen)
    return files, left_out


def _look_at(entry: os.DirEntry[str], path: str) -> LocalFile | LeftOut:
    if not path.isascii() and not _is_utf8(path):
        return LeftOut(_shown(path), "its name is not UTF-8")
    if not entry.is_file(follow_symlinks=False):
        # A link may lead out of the folder, a pipe would be waited for.
        kind = "a link" if entry.is_symlink() else "not a regular file"
        return LeftOut(path, kind)
    try:
        stat = entry.stat(follow_symlinks=False)
    except OSError as problem:
        return LeftOut(path, f"cannot be read: {problem.strerror}")
    return LocalFile(path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: str) -> str:
    return path.encode("utf-8", "replace").decode()
