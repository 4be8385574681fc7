"""zibaldone push: the notes of a folder to a memory server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.errors import (
    Conflict,
    DeadlineExceeded,
    InvalidArgument,
    RemoteUnavailable,
    ZibaldoneError,
)
from zibaldone.limits import PUSH_HOOK_SECONDS_MAX, PUSH_REQUEST_SECONDS_MAX, PUSH_TRIES
from zibaldone.model.instant import to_iso
from zibaldone.push.backend import choose_backend
from zibaldone.push.hook import with_hook
from zibaldone.push.plan import Action
from zibaldone.push.report import Report
from zibaldone.push.run import (
    PushOptions,
    Status,
    dry_run,
    push_folder,
    push_status,
    watch_folder,
)

_SHOWN_MAX = 20
_HOOK_FILE = "~/.claude/settings.json"
_HOOK_SPARE_SECONDS = 10


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--to", "url", help="URL of the server, e.g. http://127.0.0.1:8321/mcp-memory/.")
@click.option(
    "--target",
    type=click.Choice(["auto", "graphiti", "zibaldone"]),
    default="auto",
    show_default=True,
    help="What the server is; auto: what it says of itself.",
)
@click.option("--group", default="main", show_default=True, help="Group of the notes there.")
@click.option("--name", default="", help="Name of the folder there; by default its own.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, and send nothing.")
@click.option("--all", "resend_all", is_flag=True, help="Check every note against the server.")
@click.option("--delete", is_flag=True, help="Delete there what is not in the folder any more.")
@click.option("--status", "wants_status", is_flag=True, help="Show what is sent, and the server.")
@click.option("--watch", is_flag=True, help="Go on, and send what changes.")
@click.option("--hook", is_flag=True, help="Be quiet and quick; succeed if the server is away.")
@click.option(
    "--install-hook",
    "hook_file",
    is_flag=False,
    flag_value=_HOOK_FILE,
    metavar="FILE",
    help=f"Have Claude Code run this push as a hook: write it to FILE [{_HOOK_FILE}].",
)
@click.option("--backend", help="Database of a Graphiti server: neo4j or falkordb.")
@click.option("--retries", "tries", default=PUSH_TRIES, show_default=True, help="Attempts.")
@click.option("--jitter", default=0.0, help="Lengthen waits by up to this part of them, at random.")
@click.option(
    "--timeout",
    "request_seconds_max",
    default=PUSH_REQUEST_SECONDS_MAX,
    show_default=True,
    help="Seconds for one request.",
)
@click.option(
    "--time-limit", "seconds_max", type=float, help="Seconds for the whole push; with --hook 20."
)
@click.option("--strict-session", is_flag=True, help="Refuse a server that gives no session id.")
@context.json_option
@click.pass_context
def push(
    ctx: click.Context,
    /,
    folder: Path,
    url: str | None,
    backend: str | None,
    seconds_max: float | None,
    strict_session: bool,
    dry_run: bool,
    wants_status: bool,
    watch: bool,
    hook: bool,
    hook_file: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Send the Markdown notes of the folder DIR to a memory server.

    Only what is new or changed is sent, and each note is stored once however often it is sent.
    What was sent is remembered in the folder `push` of the data folder. The API key is the setting
    push_key (ZIBALDONE_PUSH_KEY).
    """
    settings = ctx.obj.settings(push_to=url, push_backend=backend)
    if not settings.push_to:
        raise click.UsageError(
            "Where to? Give --to URL, or the setting push_to. A Zibaldone server on this machine: "
            "--to http://127.0.0.1:8321/mcp-memory"
        )
    if seconds_max is None and hook:
        seconds_max = PUSH_HOOK_SECONDS_MAX
    options = PushOptions(
        folder=folder,
        url=settings.push_to,
        state_folder=settings.data / "push",
        api_key=settings.push_key,
        backend=choose_backend(settings.push_backend, os.environ),
        needs_session=strict_session,
        seconds_max=seconds_max,
        **given,
    )
    options.check()
    if hook_file is not None:
        _install_hook(options, Path(hook_file).expanduser())
    elif wants_status:
        ctx.exit(_show_status(asyncio.run(push_status(options)), as_json=as_json))
    elif watch:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(watch_folder(options, lambda report: _show_news(report, as_json=as_json)))
    elif hook:
        ctx.exit(_run_hook(options))
    else:
        report = _run(options, is_dry_run=dry_run)
        _show(report, as_json=as_json)
        ctx.exit(_exit_code(report))


def _run(options: PushOptions, *, is_dry_run: bool) -> Report:
    if is_dry_run:
        return dry_run(options)
    with _progress() as (start, advance):
        return asyncio.run(push_folder(options, start=start, advance=advance))


def _run_hook(options: PushOptions) -> int:
    """Print nothing unless something is wrong; standard output belongs to the session."""
    try:
        report = asyncio.run(push_folder(options))
    except Conflict as error:
        click.echo(f"zibaldone push: {error.message}", err=True)
        return 0
    if isinstance(report.stopped, RemoteUnavailable | DeadlineExceeded):
        left = f"{len(report.left)} notes are left for the next time"
        click.echo(f"zibaldone push: {report.stopped.message} {left}.", err=True)
        return 0
    _show_errors(report)
    return _exit_code(report)


def _exit_code(report: Report) -> int:
    if report.stopped is not None:
        return context.exit_code(report.stopped)
    return 1 if report.failed else 0


@contextlib.contextmanager
def _progress() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A progress bar whose length is known later; without a terminal it is not shown."""
    if not sys.stderr.isatty():
        yield (lambda total: None), (lambda steps: None)
        return
    with click.progressbar(length=0, label="Pushing", file=sys.stderr) as bar:

        def start(total: int) -> None:
            bar.length = total

        yield start, bar.update


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        context.echo_json(report.as_dict())
        return
    if report.is_dry_run:
        click.echo("Nothing was sent. A push would have:")
    rows = [[name, str(count)] for name, count in report.counts().items() if count]
    context.echo_table(rows or [["unchanged", "0"]], right=frozenset({1}))
    for path, reason in report.skipped[:_SHOWN_MAX]:
        click.echo(f"skipped {context.printable(path)}: {reason}")
    if report.waiting:
        click.echo(f"{len(report.waiting)} acknowledged, not stored yet: push again to check.")
    _show_errors(report)


def _show_errors(report: Report) -> None:
    for path, problem in report.problems[:_SHOWN_MAX]:
        click.echo(f"zibaldone: {context.printable(path)}: {problem}", err=True)
    for path, error in report.failed[:_SHOWN_MAX]:
        context.echo_error(error, path)
    if report.stopped is not None:
        context.echo_error(report.stopped)


def _show_news(report: Report, *, as_json: bool) -> None:
    """One line for each push that did something."""
    if as_json and report.did_something:
        click.echo(context.as_json_line(report.as_dict()))
    elif report.did_something:
        counts = [f"{count} {name}" for name, count in report.counts().items() if count]
        click.echo(", ".join(counts))
        _show_errors(report)


def _show_status(status: Status, *, as_json: bool) -> int:
    steps = {
        action.value: status.plan.count(action) for action in Action if action is not Action.CHECK
    }
    last = to_iso(status.last_sent_us) if status.last_sent_us else None
    values = {
        "target": status.target,
        "server": status.server,
        "health": status.health,
        "sent": status.sent,
        "waiting": status.waiting,
        "last_sent_at": last,
        "to_do": steps,
        "unchanged": status.plan.unchanged,
        "skipped": len(status.plan.skipped),
        "gone": len(status.plan.gone),
    }
    if as_json:
        context.echo_json(values)
    else:
        rows = {**values, "to_do": ", ".join(f"{count} {name}" for name, count in steps.items())}
        context.echo_table([[name, str(value or "-")] for name, value in rows.items()])
    return 0 if status.is_up else 7


def _install_hook(options: PushOptions, file: Path) -> None:
    program = shutil.which("zibaldone")
    words = [program] if program else [sys.executable, "-m", "zibaldone"]
    words += ["push", str(options.folder.resolve()), "--to", options.url, "--hook"]
    words += ["--group", options.group]
    for flag, value in (("--target", options.target), ("--name", options.name)):
        if value not in ("", "auto"):
            words += [flag, value]
    if options.delete:
        words.append("--delete")
    try:
        # One that a link leads to is changed there, and the link stays. `Path.resolve` raises where
        # links lead in a circle.
        file = Path(os.path.realpath(file))
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if not isinstance(known, dict):
            raise InvalidArgument(f"{file} is not a JSON object.")
        seconds = int(options.seconds_max or PUSH_HOOK_SECONDS_MAX) + _HOOK_SPARE_SECONDS
        changed = with_hook(known, shlex.join(words), seconds=seconds)
        content = (json.dumps(changed, indent=2, ensure_ascii=False) + "\n").encode()
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{os.getpid()}.new")
        draft.touch(mode=0o600)  # settings may hold keys
        draft.write_bytes(content)
        if file.exists():
            shutil.copymode(file, draft)
        draft.replace(file)
    except (ValueError, RecursionError) as problem:
        raise InvalidArgument(f"{file} is not JSON in UTF-8: {problem}.") from None
    except OSError as problem:
        raise ZibaldoneError(f"Cannot write {file}: {problem.strerror}.") from None
    click.echo(f"{file}: SessionStart and SessionEnd now run\n  {shlex.join(words)}")
