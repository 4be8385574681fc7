"""zibaldone pack: what a turn with an assistant would send. Nothing is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from zibaldone.cli import context

_PLACES = ("inline", "unchanged", "store", "attachment", "left_out")
_COLUMNS = ("tokens", "place", "file", "")


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--assistant", help="Which assistant; needed if there are several.")
@click.option("--session", "session_id", help="Go on with this session of yours.")
@click.option("--attach", "attachments", multiple=True, metavar="PATH", help="Search it only.")
@click.option(
    "--first", "priority_context", multiple=True, metavar="PATH", help="Take it before others."
)
@click.option("--instructions", default="", help="What would be asked.")
@click.option("--dry-run", is_flag=True, help="Print a table of the files in place of the prompt.")
@context.json_option
@click.pass_obj
def pack(
    options: context.Options,
    /,
    paths: tuple[str, ...],
    attachments: tuple[str, ...],
    priority_context: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Show what files would take in a prompt, and where each would go.

    Nothing is sent. With --dry-run, a table says of each file whether it would be part of the
    prompt, searchable, or left out; otherwise the prompt itself is printed.
    """
    given = {
        **arguments,
        "context": _absolute(paths),
        "attachments": _absolute(attachments),
        "priority_context": _absolute(priority_context),
        "with_messages": not dry_run,
    }
    answer = context.run_tool(options, "preview_pack", given, if_missing="empty")
    if as_json:
        context.echo_json(answer)
    elif dry_run:
        _echo_table(answer)
    else:
        click.echo("\n".join([answer["system"], *answer["messages"]]), nl=False)


def _absolute(paths: tuple[str, ...]) -> list[str]:
    """Paths mean what they mean in the shell."""
    return [str(Path.cwd() / path) for path in paths]


def _echo_table(answer: dict[str, Any]) -> None:
    files = sorted(answer["files"], key=lambda file: (_PLACES.index(file["place"]), file["path"]))
    rows = [
        (str(file["tokens"]), file["place"], context.printable(file["path"]), _remark(file))
        for file in files
    ]
    context.echo_table([_COLUMNS, *rows], right=frozenset({0}))
    click.echo()
    for place in _PLACES:
        chosen = [file for file in files if file["place"] == place]
        if chosen:
            tokens = sum(file["tokens"] for file in chosen)
            click.echo(f"{place}: {len(chosen)} files, {tokens} tokens")
    tokens = answer["tokens"]
    how = "estimated" if answer["encoding"] == "estimate" else f"counted as {answer['encoding']}"
    click.echo(
        f"The request has {tokens['total']} of {tokens['window']} tokens, {how}; files may take "
        f"{tokens['room']}."
    )
    if answer["redacted"]:
        click.echo(f"{answer['redacted']} secrets would be taken out.")


def _remark(file: dict[str, Any]) -> str:
    remarks = [context.printable(file["why"])] if file["why"] else []
    if file["redacted"]:
        remarks.append(f"{file['redacted']} redacted")
    return ", ".join(remarks)
