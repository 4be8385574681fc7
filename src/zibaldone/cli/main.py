"""The commands, and the meaning of their exit codes.

0  done                       4  not found
1  failed                     5  conflict (exists already, changed meanwhile, ambiguous)
2  invalid usage or setting   6  not allowed
3  invalid input              7  the store is unavailable (locked, full, read-only, damaged)
                           130  interrupted (Ctrl-C)
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import zibaldone
from zibaldone.cli import context
from zibaldone.cli.interrupts import EXIT_CODE, orderly
from zibaldone.cli.lazy import LazyCommand, LazyGroup
from zibaldone.errors import Interrupted, InvalidUsage, ZibaldoneError

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""A full disk, for instance, in the place of standard output."""

# By purpose, what is needed first comes first. Name, module under zibaldone.cli, attribute, and the
# first sentence of the command's help.
_COMMANDS = {
    "Start": (
        ("serve", "serve", "serve", "Serve the documents over HTTP."),
        ("connect", "connect", "connect", "Set up an MCP client, such as Claude Code or Cursor."),
        ("stdio", "stdio", "stdio", "Serve MCP over standard input and output."),
        ("model", "model", "model", "Install, list and remove embedding models."),
        ("doctor", "doctor", "doctor", "Check the installation, settings, database and server."),
    ),
    "Keep and find documents": (
        ("import", "imports", "import_group", "Import files, folders, or another knowledge base."),
        ("search", "lists", "search", "Search documents by meaning and by keywords."),
        ("ls", "lists", "ls", "List documents whose path starts with PREFIX."),
        ("get", "documents", "get", "Print the document at PATH, byte for byte."),
        ("put", "documents", "put", "Store FILE, or standard input, as the document at PATH."),
        ("patch", "documents", "patch", "Replace text in the document at PATH."),
        ("rm", "documents", "rm", "Delete documents; their history is kept."),
        ("history", "revisions", "history", "List the revisions of the document at PATH."),
        ("restore", "revisions", "restore", "Restore a deleted document, a REVISION, or a backup."),
        ("export", "export", "export", "Write the documents into a folder, one file each."),
    ),
    "Databases, assistants and memory": (
        ("sources", "sources", "sources", "List the sources, or add, sync and change them."),
        ("ask", "ask", "ask", "Ask an assistant about files; the answer is printed as it comes."),
        ("sessions", "sessions", "sessions", "List conversations with assistants, or show one."),
        (
            "pack",
            "pack",
            "pack",
            "Show what files would take in a prompt, and where each would go.",
        ),
        ("push", "push", "push", "Send the Markdown notes of the folder DIR to a memory server."),
        ("memory", "memory", "memory", "Look after what agents remember."),
        ("call", "call", "call", "Call TOOL with ARGUMENTS and print its answer as JSON."),
    ),
    "Run it for others": (
        ("key", "keys", "key", "Manage API keys."),
        ("backup", "backups", "backup", "Write everything into FILE, while the server runs."),
        ("migrate", "migrate", "migrate", "Move everything into another store."),
        ("index", "index", "index", "Show and repair the vector index."),
        ("reindex", "reindex", "reindex", "Embed every chunk that has no vector yet."),
        ("jobs", "jobs", "jobs", "List background jobs, or show, cancel and retry one."),
        ("usage", "usage", "usage", "Show how much each namespace holds, and the quotas."),
        ("canary", "canary", "canary", "Check a running deployment: do vectors follow documents?"),
    ),
}


@click.group(
    cls=LazyGroup,
    lazy_commands={
        purpose: [LazyCommand(*row) for row in rows] for purpose, rows in _COMMANDS.items()
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(zibaldone.__version__, prog_name="zibaldone")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the data.")
@click.option("--store", help="Where documents are kept, if not in that folder: a path or URL.")
@click.option("--vectors", help="An index for vectors beside it: qdrant://host:port/collection.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (zibaldone.toml).")
@click.pass_context
def commands(
    ctx: click.Context,
    data: Path | None,
    store: str | None,
    vectors: str | None,
    config: Path | None,
) -> None:
    """Zibaldone: keep, find and share what agents know."""
    ctx.obj = context.Options(data=data, store=store, vectors=vectors, config=config)


def main(arguments: list[str] | None = None) -> Any:
    """Run a command. An error is one line (with --json one JSON object) and an exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in _before_dashes(given)
    with orderly() as is_interrupted:
        try:
            code = _exit_code(given, as_json=as_json)
        except Exception:
            if not is_interrupted():
                raise
            code = _interrupted("Interrupted.", as_json=as_json)
    sys.exit(code)


def _before_dashes(arguments: list[str]) -> list[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _exit_code(arguments: list[str], *, as_json: bool) -> int:
    try:
        code = _run(arguments, as_json=as_json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe (`| head`) is gone
        _discard_output()
        return 1
    except OSError as problem:
        if problem.filename is not None or problem.errno not in _UNWRITABLE:
            raise
        _discard_output()
        with suppress(OSError):
            click.echo(f"zibaldone: Cannot write: {problem.strerror}. [OUTPUT_FAILED]", err=True)
        return 1
    return code


def _run(arguments: list[str], *, as_json: bool) -> int:
    try:
        code = commands.main(args=arguments, prog_name="zibaldone", standalone_mode=False)
    except ZibaldoneError as error:
        return _report(error, as_json=as_json)
    except click.Abort as abort:
        hint = f" {abort.hint}" if isinstance(abort, context.Interrupted) else ""
        # Click ends the line of the terminal's ^C only where it saw the interruption itself.
        return _interrupted(f"Interrupted.{hint}", as_json=as_json, ends_line=bool(hint))
    except click.ClickException as given:
        problem = _explained(given)
        if as_json:
            return _report(InvalidUsage(_message(problem)), as_json=True)
        problem.show()
        return problem.exit_code
    return code if isinstance(code, int) else 0


def _interrupted(message: str, *, as_json: bool, ends_line: bool = True) -> int:
    if as_json:
        _report(Interrupted(message), as_json=True)
    else:
        click.echo(f"\n{message}" if ends_line else message, err=True)
    return EXIT_CODE


def _explained(problem: click.ClickException) -> click.ClickException:
    """An option in the wrong place: where it belongs, instead of one that is spelled like it."""
    if not isinstance(problem, click.NoSuchOption) or problem.ctx is None:
        return problem
    name = problem.option_name
    is_first = problem.ctx.parent is None
    if is_first and name == "--json":
        return click.UsageError("--json goes after the command.", problem.ctx)
    before = {each for option in commands.params for each in option.opts}
    if not is_first and name in before - {"--version"}:
        command = problem.ctx.command_path.partition(" ")[2]
        message = f"{name} goes before the command: zibaldone {name} ... {command}"
        return click.UsageError(message, problem.ctx)
    return problem


def _message(problem: click.ClickException) -> str:
    """What click would print on standard error, without the usage."""
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        return "A command is missing; --help lists them."
    return problem.format_message()


def _report(error: ZibaldoneError, *, as_json: bool) -> int:
    if as_json:
        click.echo(context.as_json_line({"error": error.as_dict()}))
    else:
        context.echo_error(error)
    return context.exit_code(error)


def _discard_output() -> None:
    """Python would try to write what is left at its end, and complain again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
