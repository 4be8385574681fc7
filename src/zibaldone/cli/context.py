"""What all commands share: options, the opened store, printing, exit codes."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import orjson

from zibaldone import settings
from zibaldone.errors import ConfigurationError, InvalidUsage, NotConfigured, ZibaldoneError

if TYPE_CHECKING:
    from zibaldone.cli.session import Session as Session  # noqa: PLC0414 - used as context.Session
    from zibaldone.tools.spec import Notify

Answer = dict[str, Any]

IfMissing = Literal["refuse", "create", "empty"]
"""Where there is no store: fail (commands that read), make it and say so (commands that store
something new), or go on with an empty one that is thrown away (previews)."""

_EXIT_BY_STATUS = {400: 3, 413: 3, 422: 3, 404: 4, 409: 5, 401: 6, 403: 6, 503: 7, 507: 7}

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, slots=True)
class Options:
    """Options given before the command."""

    data: Path | None = None
    store: str | None = None
    vectors: str | None = None
    config: Path | None = None

    def settings(self, **flags: Any) -> settings.Settings:
        data = None if self.data is None else str(self.data)
        given = {"data": data, "store": self.store, "vectors": self.vectors}
        return settings.load({**given, **flags}, config=self.config)


@contextmanager
def opened(
    options: Options, *, if_missing: IfMissing = "refuse", **flags: Any
) -> Iterator[Session]:
    """The store of the settings, opened; `flags` are settings given as options."""
    from zibaldone.cli.session import open_session

    with open_session(options.settings(**flags), if_missing) as session:
        yield session


def run_tool(
    options: Options, tool: str, arguments: dict[str, Any], *, if_missing: IfMissing = "refuse"
) -> Answer:
    """Open the store, call one tool, close the store."""
    with opened(options, if_missing=if_missing) as session:
        return session.call(tool, arguments)


def run_writing_tool(
    options: Options, tool: str, arguments: dict[str, Any], *, if_missing: IfMissing = "refuse"
) -> Answer:
    """The same, and where no server runs the vectors of what was written are made."""
    from zibaldone.cli.vectors import finish_vectors

    with opened(options, if_missing=if_missing) as session:
        answer = session.call(tool, arguments)
        finish_vectors(session, is_brief=True)
    return answer


def no_assistant() -> NotConfigured:
    """A wheel has no documentation, so the message has all that is needed."""
    here, user = settings.found_files()
    return NotConfigured(
        f"There is no assistant. Add one to {user} (or {here}): "
        '[assistants.NAME] with provider = "openai" or "anthropic", model = "...", and api_key_env '
        "= the name of the variable that holds the key; for a server of your own, base_url."
    )


class Interrupted(click.Abort):
    """Ctrl-C; `hint` says what can be done now."""

    def __init__(self, hint: str) -> None:
        super().__init__()
        self.hint = hint


@contextmanager
def resumable(hint: str = "Run the same command again to go on.") -> Iterator[None]:
    """Around work, or a function, that Ctrl-C may end and that goes on when it is run again."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(hint) from None


def exit_code(error: ZibaldoneError) -> int:
    """The exit code for an error; `main` lists their meanings."""
    if isinstance(error, ConfigurationError | InvalidUsage):
        return 2
    return _EXIT_BY_STATUS.get(error.status, 1)


def as_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()


def as_json_line(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


def echo_json(answer: Any) -> None:
    click.echo(as_json(answer))


def echo_error(error: ZibaldoneError, path: str = "") -> None:
    """Print an error on one line; `path` says which of several documents failed."""
    place = f"{printable(path)}: " if path else ""
    click.echo(f"zibaldone: {place}{printable(error.message)} [{error.code}]", err=True)


def printable(text: str) -> str:
    """The text on one line and without control characters: titles come from other people."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


def echo_table(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """Print aligned columns; those numbered in `right` are aligned to the right."""
    if not rows:
        return
    widths = [max(columns(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            filling = " " * (width - columns(cell))
            cells.append(filling + cell if number in right else cell + filling)
        click.echo("  ".join(cells).rstrip())


def columns(text: str) -> int:
    """Width on a terminal: CJK characters take two columns, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, advanced by the function yielded; without a terminal it is not shown."""
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    with click.progressbar(length=total, label=label, file=sys.stderr) as bar:
        yield bar.update


@contextmanager
def progress_bar(label: str) -> Iterator[Notify]:
    """A receiver of the progress that a tool reports, for `Session.call`."""
    if not sys.stderr.isatty():

        async def ignore(method: str, params: dict[str, Any]) -> None:
            del method, params

        yield ignore
        return
    with click.progressbar(length=0, label=label, file=sys.stderr) as bar:

        async def show(method: str, params: dict[str, Any]) -> None:
            del method
            bar.length = int(params["total"])
            bar.update(int(params["progress"]) - bar.pos)

        yield show
