"""Tokens of files, counted once for each (path, size, mtime).

Counts stay with the files that the walk remembers. For a command, whose process ends, they are
also kept in a file of the data folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from zibaldone.limits import MIB, PACK_CACHE_FILES_MAX
from zibaldone.pack.files import Counted, FoundFile, LeftOut, read_text
from zibaldone.pack.prompt import file_body, file_head
from zibaldone.pack.tokens import TokenCounter
from zibaldone.pack.walk import FolderCache
from zibaldone.text.secrets import redact

CACHE_FILE = "pack-counts.json"

_VERSION = 1
_BYTES_MAX = 64 * MIB
_Stored = tuple[int, int, Mapping[str, list[Any]]]


class Counts:
    """The tokens of files, for all calls of a process."""

    def __init__(self, file: Path | None = None) -> None:
        self.folders = FolderCache()
        self.reads = 0
        """Files read to count them."""
        self._file = file
        self._stored: dict[str, _Stored] | None = {} if file is None else None
        self._is_changed = False

    def of(self, file: FoundFile, counter: TokenCounter, *, is_redacted: bool) -> Counted:
        """What the file holds. It is read unless that is known for its size and mtime."""
        key = counting_key(counter, is_redacted=is_redacted)
        counted = file.counted.get(key)
        if counted is None:
            counted = self._known(file, key, counter) or self._count(
                file, key, counter, is_redacted
            )
        return counted

    def save(self) -> None:
        """Write the counts to the file, if there is one and anything is new."""
        if self._file is None or not self._is_changed:
            return
        stored: dict[str, _Stored] = {}
        for file in self.folders.files():
            if file.is_settled and file.counted:
                counted = {key: _stored(value) for key, value in file.counted.items()}
                stored[file.path] = (file.size, file.mtime_ns, counted)
        for path, value in (self._stored or {}).items():
            if len(stored) >= PACK_CACHE_FILES_MAX:
                break
            stored.setdefault(path, value)
        _save(self._file, stored)
        self._is_changed = False

    def _known(self, file: FoundFile, key: str, counter: TokenCounter) -> Counted | None:
        if self._stored is None:
            self._stored = {} if self._file is None else _load(self._file)
        stored = self._stored.get(file.path)
        if stored is None or not file.is_settled or stored[:2] != (file.size, file.mtime_ns):
            return None
        values = stored[2].get(key)
        if values is None:
            return None
        tokens, redacted, reason, note = values
        head = 0 if reason else counter.count(file_head(file.shown))
        counted = file.counted[key] = Counted(tokens + head, redacted, reason, note, head)
        return counted

    def _count(
        self, file: FoundFile, key: str, counter: TokenCounter, is_redacted: bool
    ) -> Counted:
        self.reads += 1
        try:
            read = read_text(file.path)
        except LeftOut as why:
            counted = Counted(0, reason=str(why))
        except OSError as problem:
            return Counted(0, reason=f"cannot be read: {problem.strerror}")
        else:
            shown = redact(read.text) if is_redacted else None
            text = read.text if shown is None else shown.text
            removed = 0 if shown is None else shown.count
            head = counter.count(file_head(file.shown))
            tokens = head + counter.count(file_body(text))
            counted = Counted(tokens, removed, "", read.note, head)
            if (read.size, read.mtime_ns) != (file.size, file.mtime_ns):
                return counted
        file.counted[key] = counted
        self._is_changed = True
        return counted


def counting_key(counter: TokenCounter, *, is_redacted: bool) -> str:
    """The way of counting, in `FoundFile.counted`."""
    return f"{counter.encoding}-redacted" if is_redacted else counter.encoding


def _stored(counted: Counted) -> list[Any]:
    return [
        counted.tokens - counted.head_tokens,
        counted.redacted,
        counted.reason,
        counted.note,
    ]


def _load(file: Path) -> dict[str, _Stored]:
    """What the file holds; nothing if there is none or it cannot be used."""
    try:
        if file.stat().st_size > _BYTES_MAX:
            return {}
        value = orjson.loads(file.read_bytes())
        if value["version"] != _VERSION:
            return {}
        return {
            os.path.join(folder, name): (int(size), int(mtime_ns), dict(counted))
            for folder, names in value["folders"].items()
            for name, (size, mtime_ns, counted) in names.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _save(file: Path, stored: Mapping[str, _Stored]) -> None:
    """Replace the file; a cache that cannot be written is no error."""
    folders: dict[str, dict[str, _Stored]] = {}
    for path, value in stored.items():
        folder, name = os.path.split(path)
        with contextlib.suppress(UnicodeEncodeError):
            path.encode()
            folders.setdefault(folder, {})[name] = value
    made = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(orjson.dumps({"version": _VERSION, "folders": folders}))
        made.replace(file)
