"""Put one server into a client's configuration file, and leave everything else as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from zibaldone.cli.clients import Client, Entry
from zibaldone.errors import Conflict

Status = Literal["created", "updated", "unchanged"]

_INDENT_DEFAULT = 2
_FIRST_INDENT = re.compile(r"^[\[{]\s*?\n([ \t]+)\S")
_TABLE = re.compile(r"^\s*\[")


@dataclass(frozen=True, slots=True)
class Written:
    status: Status
    file: Path
    backup: Path | None = None


def snippet(client: Client, name: str, entry: Entry) -> str:
    """The entry as text, in the form of the client's file."""
    if client.format == "toml":
        return _toml_table(client.key, name, entry)
    return json.dumps({client.key: {name: entry}}, indent=2, ensure_ascii=False) + "\n"


def write(client: Client, file: Path, name: str, entry: Entry) -> Written:
    """Merge the entry into the file; what was there before is kept as a backup beside it.

    Conflict: the file cannot be read as what it should be. It is then left alone.
    """
    target = file.resolve()  # a link stays a link
    before = _read(target)
    merged = _merged(client, before or "", name, entry, target)
    if merged == before:
        return Written("unchanged", file)
    try:
        backup = None if before is None else _back_up(target)
        _replace(target, merged)
    except OSError as problem:
        raise Conflict(f"Cannot write {file}: {problem.strerror}.", file=str(file)) from None
    return Written("created" if before is None else "updated", file, backup)


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise Conflict(f"Cannot read {file}: {problem.strerror}.", file=str(file)) from None
    except UnicodeDecodeError:
        raise _unreadable(file, "it is not UTF-8") from None


def _merged(client: Client, text: str, name: str, entry: Entry, file: Path) -> str:
    if client.format == "toml":
        return _merged_toml(client.key, text, name, entry, file)
    return _merged_json(client.key, text, name, entry, file)


def _merged_json(key: str, text: str, name: str, entry: Entry, file: Path) -> str:
    content: Any = {}
    if text.strip():
        try:
            content = json.loads(text, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as problem:
            raise _unreadable(file, f"it is not plain JSON: {problem}") from None
    servers = content.setdefault(key, {}) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise _unreadable(file, f"it has no object {key!r} where one should be")
    if servers.get(name) == entry:
        return text
    servers[name] = entry
    indent = _FIRST_INDENT.match(text)
    return (
        json.dumps(content, indent=indent[1] if indent else _INDENT_DEFAULT, ensure_ascii=False)
        + "\n"
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that is there twice would be lost by writing it."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name is there twice")
    return content


def _merged_toml(key: str, text: str, name: str, entry: Entry, file: Path) -> str:
    """The text with its table of this name replaced, or added at the end.

    Whatever was found by looking at lines is only believed if the parser agrees that this one
    entry changed and nothing else did.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise _unreadable(file, f"it is not TOML: {problem}") from None
    servers = content.setdefault(key, {})
    if not isinstance(servers, dict):
        raise _unreadable(file, f"{key} is not a table")
    if servers.get(name) == entry:
        return text
    servers[name] = entry
    rest = _without_table(text, key, name).rstrip()
    merged = (f"{rest}\n\n" if rest else "") + _toml_table(key, name, entry)
    try:
        is_right = tomllib.loads(merged) == content
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise _unreadable(file, f"{key}.{name} is there already, in a form that is not understood")
    return merged


def _without_table(text: str, key: str, name: str) -> str:
    """The text without the lines of [key.name] and of the tables in it."""
    own = re.compile(rf"^\s*\[\s*{re.escape(key)}\s*\.\s*[\"']?{re.escape(name)}[\"']?\s*[\].]")
    kept, is_own = [], False
    for line in text.splitlines(keepends=True):
        if _TABLE.match(line):
            is_own = own.match(line) is not None
        if not is_own:
            kept.append(line)
    return "".join(kept)


def _toml_table(key: str, name: str, entry: Entry) -> str:
    lines = [f"[{key}.{name}]", *(f"{field} = {_toml(value)}" for field, value in entry.items())]
    return "\n".join(lines) + "\n"


def _toml(value: str | list[str]) -> str:
    """Text or a list of texts: JSON's strings are TOML's, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _unreadable(file: Path, why: str) -> Conflict:
    return Conflict(
        f"{file} is left alone: {why}. Correct the file, or add the entry yourself: the command "
        "prints it without --write.",
        file=str(file),
    )


def _back_up(file: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    while True:
        suffix = f"-{number}" if number else ""
        backup = file.with_name(f"{file.name}.backup-{stamp}{suffix}")
        if not backup.exists():
            shutil.copy2(file, backup)
            return backup
        number += 1


def _replace(file: Path, text: str) -> None:
    """Write the file as a whole or not at all; one that is there keeps its permissions."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        if file.exists():
            shutil.copymode(file, temporary)
        temporary.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
