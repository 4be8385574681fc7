"""A dump of AgentData's table in a file, in any of the forms that psql writes.

JSON lines   {"key": …, "data": {…}} on each line, also with COPY's doubled backslashes
JSON array   [{"key": …, "data": {…}}, …]
CSV          \\copy kb_documents (key, data) TO 'kb.csv' CSV [HEADER]
COPY text    \\copy kb_documents (key, data) TO 'kb.txt'
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from zibaldone.errors import InvalidArgument, NotFound
from zibaldone.limits import KIB, MIB
from zibaldone.pull.agent_data.row import KbRow

_BLANKS = b" \t\r\n\xef\xbb\xbf"
_COLUMNS = ["key", "data"]
_FIELD_CHARS_MAX = 256 * MIB
_ARRAY_READ_CHARS = 256 * KIB
_BACKSLASHES = re.compile(rb"\\+")
_COPY_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_COPY_CHARACTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class DumpFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._read = self._reader()
        except FileNotFoundError:
            raise NotFound(f"There is no file {path}.", file=str(path)) from None
        except OSError as problem:
            raise InvalidArgument(
                f"{path} cannot be read: {problem.strerror}", file=str(path)
            ) from None

    def __call__(self) -> Iterator[KbRow]:
        try:
            yield from self._read(self._path)
        except UnicodeDecodeError as problem:
            raise InvalidArgument(
                f"{self._path} is not UTF-8 text (byte {problem.start}).", file=str(self._path)
            ) from None

    def _reader(self) -> Callable[[Path], Iterator[KbRow]]:
        """Chosen by the content: a file's name says little about its format."""
        with self._path.open("rb") as file:
            first = b""
            while not first.strip(_BLANKS):
                line = file.readline(64 * KIB)
                if not line:
                    return _json_lines
                # A row without a key starts with the tab that ends it.
                first = line
        start = first.lstrip(_BLANKS)
        if start.startswith(b"["):
            return _json_array
        if first.lstrip(b"\xef\xbb\xbf").startswith(b"{"):
            return _copied_json_lines if _is_copied(self._path) else _json_lines
        return _copy_text if re.match(rb"[^\t]*\t\{", first) else _csv


def _is_copied(path: Path) -> bool:
    """COPY doubles every backslash, so they come in even runs; JSON has a single one in `\\n`."""
    has_any = False
    with path.open("rb") as file:
        for line in file:
            for run in _BACKSLASHES.findall(line):
                has_any = True
                if len(run) % 2:
                    return False
    return has_any


def _json_lines(path: Path) -> Iterator[KbRow]:
    with path.open("rb") as file:
        for number, line in enumerate(_without_blank_lines(file), 1):
            yield _row_of_json(number, line)


def _copied_json_lines(path: Path) -> Iterator[KbRow]:
    with path.open("rb") as file:
        for number, line in enumerate(_without_blank_lines(file), 1):
            yield _row_of_json(number, line.replace(b"\\\\", b"\\"))


def _without_blank_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    return (stripped for line in lines if (stripped := line.strip(_BLANKS)))


def _row_of_json(number: int, text: bytes | str) -> KbRow:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        return KbRow(number, "", {}, f"not JSON: {problem}")
    return _row_of_object(number, value)


def _row_of_object(number: int, value: Any) -> KbRow:
    if not isinstance(value, dict) or "data" not in value:
        return KbRow(number, "", {}, 'not an object with "key" and "data"')
    key = value.get("key")
    return row_of(number, key if isinstance(key, str) else "", value["data"])


def row_of(number: int, key: str, data: Any) -> KbRow:
    """`data` as an object, or as its text."""
    if isinstance(data, str):
        try:
            data = orjson.loads(data)
        except orjson.JSONDecodeError as problem:
            return KbRow(number, key, {}, f"data is not JSON: {problem}")
    if not isinstance(data, dict):
        return KbRow(number, key, {}, "data is not an object")
    return KbRow(number, key, data)


def _json_array(path: Path) -> Iterator[KbRow]:
    """Element by element: a dump may be larger than memory."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8-sig") as file:
        text, number = file.read(_ARRAY_READ_CHARS).lstrip()[1:], 0
        while True:
            text = text.lstrip(" \t\r\n,")
            try:
                if text.startswith("]"):
                    return
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError as problem:
                more = file.read(max(_ARRAY_READ_CHARS, len(text)))
                if not more:
                    yield KbRow(number + 1, "", {}, f"the JSON array ends badly: {problem.msg}")
                    return
                text += more
                continue
            number += 1
            yield _row_of_object(number, value)
            text = text[end:]


def _csv(path: Path) -> Iterator[KbRow]:
    csv.field_size_limit(_FIELD_CHARS_MAX)
    columns = _COLUMNS
    with path.open(encoding="utf-8-sig", newline="") as file:
        number = 0
        try:
            for line, cells in enumerate(csv.reader(file)):
                if line == 0 and set(_COLUMNS) <= set(cells):
                    columns = cells
                    continue
                number += 1
                if len(cells) != len(columns):
                    yield KbRow(number, "", {}, f"{len(cells)} columns, not {len(columns)}")
                    continue
                named = dict(zip(columns, cells, strict=True))
                yield row_of(number, named["key"], named["data"])
        except csv.Error as problem:
            yield KbRow(number + 1, "", {}, f"not CSV: {problem}")


def _copy_text(path: Path) -> Iterator[KbRow]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            cells = [_without_copy_escapes(cell) for cell in line.decode().rstrip("\n").split("\t")]
            if len(cells) == len(_COLUMNS):
                yield row_of(number, *cells)
            else:
                yield KbRow(number, "", {}, f"{len(cells)} columns, not {len(_COLUMNS)}")


def _without_copy_escapes(cell: str) -> str:
    if cell == "\\N":
        return ""
    return _COPY_ESCAPE.sub(lambda match: _COPY_CHARACTERS.get(match[1], match[1]), cell)
