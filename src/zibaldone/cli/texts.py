"""Texts that a command reads from a file or from standard input."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
import orjson

from zibaldone.cli.interrupts import wait_readable
from zibaldone.errors import InvalidArgument, NotFound, PayloadTooLarge

STANDARD_INPUT = "-"


def read_text(source: str, bytes_max: int) -> str:
    """The text of a file, unchanged; '-' is standard input."""
    try:
        # One byte more than allowed: enough to know that there is more.
        if source == STANDARD_INPUT and sys.stdin.isatty():
            click.echo("Reading from the terminal; finish with Ctrl-D.", err=True)
            data = _read_terminal(bytes_max + 1)
        elif source == STANDARD_INPUT:
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(bytes_max + 1)
    except FileNotFoundError:
        raise NotFound(f"There is no file {source}.", file=source) from None
    except OSError as problem:
        raise InvalidArgument(f"Cannot read {source}: {problem.strerror}.", file=source) from None
    if len(data) > bytes_max:
        raise PayloadTooLarge(f"The text is larger than {bytes_max} bytes.", bytes_max=bytes_max)
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise InvalidArgument(
            f"{source} is not UTF-8 text (byte {problem.start}). "
            "Use 'zibaldone import' for PDF, DOCX and HTML.",
            file=source,
            position=problem.start,
        ) from None


def _read_terminal(bytes_max: int) -> bytes:
    terminal = sys.stdin.fileno()
    parts: list[bytes] = []
    while bytes_max > 0:
        wait_readable(terminal)
        part = os.read(terminal, min(bytes_max, 65_536))
        if not part:
            break
        parts.append(part)
        bytes_max -= len(part)
    return b"".join(parts)


def read_json(source: str, bytes_max: int) -> Any:
    try:
        return orjson.loads(read_text(source, bytes_max))
    except orjson.JSONDecodeError as problem:
        raise InvalidArgument(f"{source} is not JSON: {problem}", file=source) from None


def metadata(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Parse KEY=VALUE pairs; a value that is not JSON is text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} must be KEY=VALUE.", param_hint="--meta")
        try:
            values[key] = orjson.loads(value)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            values[key] = value
    return values
