"""The hits of a search: wrapped and with the words marked on a terminal, plain lines in a pipe."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import click

from zibaldone.cli import context

ColorChoice = Literal["auto", "always", "never"]

color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Mark words by colour; auto: on a terminal, unless NO_COLOR is set.",
)

_COLUMNS_MAX = 100
"""Longer lines are tiring to read."""
_COLUMNS_MIN = 20
_INDENT = "   "
_WORD = re.compile(r"\S+")

Span = tuple[int, int]


def echo_hits(hits: Sequence[dict[str, Any]], color: ColorChoice) -> None:
    is_colored = wants_color(color)
    columns = _columns() if sys.stdout.isatty() else None
    for number, hit in enumerate(hits, 1):
        _echo_hit(number, hit, columns, is_colored=is_colored)


def echo_note(text: str) -> None:
    """On standard error; wrapped if that is a terminal."""
    click.echo(click.wrap_text(text, _columns()) if sys.stderr.isatty() else text, err=True)


def wants_color(choice: ColorChoice) -> bool:
    """As no-color.org has it: a NO_COLOR that is not empty switches colour off."""
    if choice != "auto":
        return choice == "always"
    is_dumb = os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def _columns() -> int:
    return max(_COLUMNS_MIN, min(_COLUMNS_MAX, shutil.get_terminal_size().columns))


def _echo_hit(number: int, hit: dict[str, Any], columns: int | None, *, is_colored: bool) -> None:
    path, title = (context.printable(hit[part]) for part in ("document_id", "title"))
    for text, spans, indent, style in _lines(f"{number}. {path}", title, hit["passages"], columns):
        for line in _wrapped(text, spans, columns, indent, is_colored=is_colored):
            click.echo(
                click.style(line, **style) if is_colored and style else line, color=is_colored
            )
    if columns is not None:
        click.echo()


def _lines(
    path: str, title: str, passages: Sequence[dict[str, Any]], columns: int | None
) -> Iterator[tuple[str, Sequence[Span], str, dict[str, Any]]]:
    """Text, its marked words, indent and style. In a pipe path and title are one line."""
    if columns is None:
        yield (f"{path}  {title}" if title else path), (), "", {"bold": True}
    else:
        yield path, (), "", {"bold": True, "fg": "cyan"}
        yield title, (), _INDENT, {"bold": True}
    for passage in passages:
        heading = context.printable(passage.get("heading", ""))
        if columns is not None and heading != title:
            yield heading, (), _INDENT, {"dim": True}
        text, spans = _one_line(passage["snippet"], passage.get("matches", ()))
        yield text, spans, _INDENT, {}


def _one_line(snippet: str, matches: Sequence[Sequence[int]]) -> tuple[str, list[Span]]:
    """The snippet as `context.printable` shows it, and where its matches are there."""
    shown = ""
    places = {}
    for word in _WORD.finditer(snippet):
        if shown:
            shown += " "
        for offset, char in enumerate(word[0]):
            places[word.start() + offset] = len(shown)
            shown += char if char.isprintable() else "\ufffd"
    spans = []
    for begin, end in matches:
        inside = [places[index] for index in range(begin, end) if index in places]
        if inside:
            spans.append((inside[0], inside[-1] + 1))
    return shown, spans


def _wrapped(
    text: str, spans: Sequence[Span], columns: int | None, indent: str, *, is_colored: bool
) -> Iterator[str]:
    """Lines of so many columns at most; a longer word is broken. None: one line."""
    for begin, end in _line_spans(text, columns and columns - len(indent)):
        inside = [
            (max(first, begin) - begin, min(last, end) - begin)
            for first, last in spans
            if first < end and last > begin
        ]
        yield indent + _marked(text[begin:end], inside, is_colored=is_colored)


def _line_spans(text: str, columns: int | None) -> Iterator[Span]:
    if columns is None:
        yield 0, len(text)
        return
    begin = end = width = 0
    for start, stop in _pieces(text, columns):
        gap = 1 if start > end else 0
        piece_width = context.columns(text[start:stop])
        if end > begin and width + gap + piece_width <= columns:
            width += gap + piece_width
        else:
            if end > begin:
                yield begin, end
            begin, width = start, piece_width
        end = stop
    if end > begin:
        yield begin, end


def _pieces(text: str, columns: int) -> Iterator[Span]:
    """The words; one that is wider than a line in parts that fit."""
    for word in _WORD.finditer(text):
        start, width = word.start(), 0
        for index in range(word.start(), word.end()):
            char_width = context.columns(text[index])
            if width + char_width > columns:
                yield start, index
                start, width = index, 0
            width += char_width
        yield start, word.end()


def _marked(text: str, spans: Sequence[Span], *, is_colored: bool) -> str:
    if not is_colored:
        return text
    parts, done = [], 0
    for first, last in sorted(spans):
        if first < done:
            continue
        parts += [text[done:first], click.style(text[first:last], bold=True, fg="yellow")]
        done = last
    return "".join([*parts, text[done:]])
