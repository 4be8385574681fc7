"""zibaldone sessions: conversations with assistants."""

from __future__ import annotations

from typing import Any

import click

from zibaldone.cli import context
from zibaldone.limits import CONSULT_SESSIONS_LIMIT_DEFAULT, CONSULT_SESSIONS_LIMIT_MAX

_COLUMNS = ("assistant", "session", "turns", "tokens", "saved", "cost", "last used")
_NUMBERS = frozenset({2, 3, 4, 5})


@click.group(invoke_without_command=True)
@click.option("--assistant", help="Only with this one.")
@click.option(
    "--limit",
    type=click.IntRange(1, CONSULT_SESSIONS_LIMIT_MAX),
    default=CONSULT_SESSIONS_LIMIT_DEFAULT,
    show_default=True,
    help="How many to show.",
)
@click.option("--after", help="Go on after this mark.")
@context.json_option
@click.pass_context
def sessions(ctx: click.Context, /, as_json: bool, **arguments: Any) -> None:
    """List conversations with assistants, or show one.

    Those of the command line, the one used last first.
    """
    if ctx.invoked_subcommand is not None:
        return
    answer = _call(ctx.obj, "list_sessions", arguments)
    if as_json:
        context.echo_json(answer)
        return
    if answer["sessions"]:
        rows = [_row(session) for session in answer["sessions"]]
        context.echo_table([_COLUMNS, *rows], right=_NUMBERS)
    if answer["next_after"] is not None:
        click.echo(f"There are more; use --after {answer['next_after']}", err=True)


@sessions.command()
@click.argument("assistant")
@click.argument("session_id", metavar="SESSION")
@context.json_option
@click.pass_obj
def show(options: context.Options, /, assistant: str, session_id: str, as_json: bool) -> None:
    """Show how full a conversation is, and which files are in its prompt."""
    arguments = {"assistant": assistant, "session_id": session_id}
    answer = _call(options, "describe_session", arguments)
    if as_json:
        context.echo_json(answer)
        return
    inline = answer.pop("inline")
    rows = [(name, context.printable(str(value))) for name, value in answer.items()]
    context.echo_table([*rows, ("inline", str(inline["count"]))])
    for path in inline["paths"]:
        click.echo(f"  {context.printable(path)}")


@sessions.command()
@click.argument("assistant")
@click.argument("session_id", metavar="SESSION")
@context.json_option
@click.pass_obj
def reset(options: context.Options, /, assistant: str, session_id: str, as_json: bool) -> None:
    """Forget a conversation; the next turn begins anew."""
    arguments = {"assistant": assistant, "session_id": session_id}
    answer = _call(options, "reset_session", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{answer['status']} {assistant} {context.printable(session_id)}")


def _call(options: context.Options, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with context.opened(options) as session:
        if session.runtime.consulting is None:
            raise context.no_assistant()
        return session.call(tool, arguments)


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    return (
        session["assistant"],
        context.printable(session["session_id"]),
        str(session["turns"]),
        str(session["tokens"]),
        str(session["saved_tokens"]),
        f"{session['cost']:.4f}",
        session["updated_at"][:19] + "Z",
    )
