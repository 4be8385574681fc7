"""Texts that a command is given: from a file, or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson

from zibaldone.errors import InvalidArgument, NotFound, PayloadTooLarge

STANDARD_INPUT = "-"


def read_text(source: str, bytes_max: int) -> str:
    """The text of a file ('-': standard input), exactly: not a byte is added or changed."""
    try:
        if source == STANDARD_INPUT:
            if sys.stdin.isatty():
                click.echo("Reading from the terminal; end with Ctrl-D.", err=True)
            data = _read(sys.stdin.buffer, bytes_max)
        else:
            with Path(source).open("rb") as file:
                data = _read(file, bytes_max)
    except FileNotFoundError:
        raise NotFound(f"There is no file {source}.", file=source) from None
    except OSError as problem:
        raise InvalidArgument(f"{source} cannot be read: {problem.strerror}", file=source) from None
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise InvalidArgument(
            f"{source} is not UTF-8 text (byte {problem.start}). "
            "'zibaldone import' reads PDF, DOCX and HTML too.",
            file=source,
            position=problem.start,
        ) from None


def _read(stream: BinaryIO, bytes_max: int) -> bytes:
    # One byte more than allowed tells that there is more, without reading it all.
    data = stream.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise PayloadTooLarge(f"The text has more than {bytes_max} bytes.", bytes_max=bytes_max)
    return data


def read_json(source: str, bytes_max: int) -> Any:
    try:
        return orjson.loads(read_text(source, bytes_max))
    except orjson.JSONDecodeError as problem:
        raise InvalidArgument(f"{source} is not JSON: {problem}", file=source) from None


def metadata(pairs: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE: the value is JSON where it can be read as such, otherwise text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE.", param_hint="--meta")
        try:
            found[key] = orjson.loads(value)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            found[key] = value
    return found
