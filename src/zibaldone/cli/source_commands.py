"""zibaldone sources: look at databases that are sources, sync them, switch them off and on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.cli.source_add import echo_documents
from zibaldone.cli.source_session import opened
from zibaldone.cli.vectors import finish_vectors
from zibaldone.errors import InvalidArgument
from zibaldone.limits import SOURCE_PREVIEW_ROWS_DEFAULT, SOURCE_PREVIEW_ROWS_MAX

_COUNTS = ("created", "updated", "deleted", "unchanged", "failed")
_PROBLEMS_SHOWN = 10
_EXIT_FAILED = 1

Command = Callable[..., Any]

namespace_option: Callable[[Command], Command] = click.option(
    "--namespace", help="Namespace of the source, if several have one of that name."
)


@click.command()
@click.argument("name")
@namespace_option
@click.option("--trigger", is_flag=True, help="Print the SQL that makes PostgreSQL notify us.")
@context.json_option
@click.pass_obj
def show(
    options: context.Options, /, name: str, namespace: str | None, trigger: bool, as_json: bool
) -> None:
    """Show a source and its last sync.

    How the source NAME is defined, what it holds and how its last sync went.

    With --trigger, prints SQL for the owner of the table to run once. A source that is live is then
    synced as soon as the table changes. Zibaldone itself changes nothing in your databases.
    """
    with opened(options) as session:
        source = session.call("show_source", {"source": name, "namespace": namespace})
    if as_json:
        context.echo_json(source)
    elif trigger:
        if not source["trigger"]:
            raise InvalidArgument(
                f"Only PostgreSQL notifies, and {name!r} is another database: let the server ask, "
                "with --poll or --schedule of 'zibaldone sources add'.",
                field="trigger",
            )
        click.echo(source["trigger"], nl=False)
    else:
        _echo_source(source)


def _echo_source(source: Mapping[str, Any]) -> None:
    definition = source["definition"]
    rows = [
        ("name", source["source"]),
        ("namespace", source["namespace"]),
        ("enabled", "yes" if source["enabled"] else "no"),
        ("defined", "in the settings" if source["origin"] == "settings" else "on the command line"),
        ("documents", source["documents"]),
        ("chunks", source["chunks"]),
        ("last sync", source["last_sync"] or "never"),
        ("problem", source["problem"]),
    ]
    for name, value in definition.items():
        if name == "document":
            rows += [(part, _in_words(what)) for part, what in value.items()]
        else:
            rows.append((name, _in_words(value)))
    if job := source["last_job"]:
        rows.append(("last job", f"{job['job_id']} {job['state']}"))
        rows.append(("", _in_counts(job["result"]) if job["result"] else job["error"]))
    context.echo_table(
        [
            (name, context.printable(str(value)))
            for name, value in rows
            if value not in (None, "", [], {})
        ]
    )


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(
            part["text"].strip() or "\u23ce" if isinstance(part, dict) else str(part)
            for part in value
        )
    return context.as_json_line(value) if isinstance(value, dict | bool) else str(value)


@click.command()
@click.argument("name")
@namespace_option
@context.json_option
@click.pass_context
def test(ctx: click.Context, /, name: str, namespace: str | None, as_json: bool) -> None:
    """Compare a source with its database.

    Connects to the database of the source NAME, and says what does not fit the definition.
    """
    with opened(ctx.obj) as session:
        answer = session.call("test_source", {"source": name, "namespace": namespace})
    if as_json:
        context.echo_json(answer)
    else:
        for problem in answer["problems"]:
            click.echo(context.printable(problem), err=True)
        if not answer["problems"]:
            click.echo(f"{context.printable(answer['source'])}: the definition fits the table")
    if answer["problems"]:
        ctx.exit(3)


@click.command()
@click.argument("name")
@namespace_option
@click.option(
    "--rows",
    type=click.IntRange(1, SOURCE_PREVIEW_ROWS_MAX),
    default=SOURCE_PREVIEW_ROWS_DEFAULT,
    show_default=True,
    help="How many rows.",
)
@context.json_option
@click.pass_obj
def preview(
    options: context.Options, /, name: str, namespace: str | None, rows: int, as_json: bool
) -> None:
    """Show rows of a source as documents.

    The first rows of the source NAME as the documents they become; nothing is stored.
    """
    with opened(options) as session:
        answer = session.call(
            "preview_source", {"source": name, "namespace": namespace, "rows": rows}
        )
    if as_json:
        context.echo_json(answer)
    else:
        echo_documents(answer["documents"])
        for problem in (*answer["problems"], *answer["notes"]):
            click.echo(f"Note: {context.printable(problem)}", err=True)


@click.command()
@click.argument("name")
@namespace_option
@context.json_option
@click.pass_obj
def disable(options: context.Options, /, name: str, namespace: str | None, as_json: bool) -> None:
    """Neither sync nor search the source NAME; its documents are kept."""
    _set_enabled(options, name, namespace, enabled=False, as_json=as_json)


@click.command()
@click.argument("name")
@namespace_option
@context.json_option
@click.pass_obj
def enable(options: context.Options, /, name: str, namespace: str | None, as_json: bool) -> None:
    """Sync and search the source NAME again."""
    _set_enabled(options, name, namespace, enabled=True, as_json=as_json)


def _set_enabled(
    options: context.Options, name: str, namespace: str | None, *, enabled: bool, as_json: bool
) -> None:
    arguments = {"source": name, "namespace": namespace, "enabled": enabled}
    with opened(options) as session:
        answer = session.call("enable_source", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{context.printable(answer['source'])} is {'en' if enabled else 'dis'}abled")


@click.command()
@click.argument("name")
@namespace_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@context.json_option
@click.pass_obj
def remove(
    options: context.Options, /, name: str, namespace: str | None, yes: bool, as_json: bool
) -> None:
    """Delete the documents of a source, and forget it.

    The database of the source NAME is not touched.
    """
    with opened(options) as session:
        arguments = {"source": name, "namespace": namespace}
        if not yes and not as_json:
            held = session.call("show_source", arguments)["documents"]
            click.confirm(f"Delete {held} documents of {name}?", abort=True)
        answer = session.call("remove_source", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        name = context.printable(answer["source"])
        click.echo(f"{name} was removed; {answer['documents']} documents were deleted")


@click.command()
@click.argument("names", nargs=-1)
@namespace_option
@click.option("--full", is_flag=True, help="Read every row whole, whatever its watermark says.")
@click.option(
    "--allow-deletes",
    is_flag=True,
    help="Delete documents whose rows are gone, however many they are.",
)
@context.json_option
@click.pass_context
@context.resumable()
def sync(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    namespace: str | None,
    full: bool,
    allow_deletes: bool,
    as_json: bool,
) -> None:
    """Bring sources up to date with their databases.

    The sources NAMES, or all that are enabled.

    If a server is running on the same store it may do the work; this command then waits for it.
    Without one, vectors are made here.
    """
    arguments = {
        "sources": list(names),
        "namespace": namespace,
        "full": full,
        "allow_deletes": allow_deletes,
    }
    # With sources in the settings this may be the first thing that is stored.
    if_missing: context.IfMissing = "create" if ctx.obj.settings().sources else "refuse"
    with opened(ctx.obj, if_missing) as session:
        with context.progress_bar("Syncing") as notify:
            answer = session.call("sync_sources", arguments, notify)
        finish_vectors(session)
    if as_json:
        context.echo_json(answer)
    else:
        for outcome in answer["sources"]:
            _echo_outcome(outcome)
    if any(outcome["state"] != "done" for outcome in answer["sources"]):
        ctx.exit(_EXIT_FAILED)


def _echo_outcome(outcome: Mapping[str, Any]) -> None:
    name = context.printable(outcome["source"])
    if outcome["state"] != "done":
        reason = outcome["error"] or f"the job is {outcome['state']}"
        click.echo(f"{name}: {context.printable(reason)}", err=True)
        return
    click.echo(f"{name}: {_in_counts(outcome)}")
    problems = outcome["problems"]
    for problem in problems[:_PROBLEMS_SHOWN]:
        click.echo(f"  {context.printable(context.as_json_line(problem))}", err=True)
    if len(problems) > _PROBLEMS_SHOWN:
        click.echo(f"  and {outcome['failed'] - _PROBLEMS_SHOWN} more; --json has them", err=True)


def _in_counts(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{result[name]} {name}" for name in _COUNTS)
