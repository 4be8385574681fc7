"""zibaldone sources add: a table of another database becomes a source."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.cli.source_session import opened
from zibaldone.errors import InvalidArgument
from zibaldone.pull.address import database_url

_DOCUMENT_COLUMNS = ("title", "body", "tags", "created", "updated")
_SHOWN_CHARS = 300


@click.command()
@click.argument("url")
@click.argument("table", required=False)
@click.option("--name", help="Name of the source; default: the table's.")
@click.option("--namespace", help="Namespace its documents belong to.")
@click.option("--select", help="Your own SELECT in place of a table; needs --key.")
@click.option("--where", help="Only rows for which this SQL condition holds.")
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="Key column (repeatable).")
@click.option("--title", "titles", multiple=True, metavar="COLUMN", help="Repeatable.")
@click.option("--body", "bodies", multiple=True, metavar="COLUMN", help="Repeatable.")
@click.option("--tags", metavar="COLUMN", help="Column with tags: <a><b>, a,b or a JSON array.")
@click.option("--created", metavar="COLUMN", help="When the row was created.")
@click.option("--updated", metavar="COLUMN", help="When the row was last changed.")
@click.option("--watermark", metavar="COLUMN", help="Column that changes whenever the row does.")
@click.option("--no-watermark", is_flag=True, help="Compare all columns of all rows instead.")
@click.option(
    "--schedule", metavar="CRON", help="Sync at these times (UTC), such as '*/15 * * * *'."
)
@click.option("--live", is_flag=True, help="Sync when the PostgreSQL database says so.")
@click.option("--poll", "poll_seconds", type=float, metavar="SECONDS", help="Sync this often.")
@click.option("--yes", is_flag=True, help="Save the proposal as it is.")
@click.option("--dry-run", is_flag=True, help="Show the proposal and save nothing.")
@context.json_option
@click.pass_obj
def add(
    options: context.Options,
    /,
    url: str,
    table: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Make TABLE of the database at URL a source.

    URL is sqlite:///PATH, a path, mysql://, mariadb:// or postgresql://. Write ${NAME} for a
    password: it is read from the environment whenever the source is used and is never stored.

    Shows what the columns are taken for, and three rows as the documents they would become.
    Nothing is saved before you agree.
    """
    is_asking = not (yes or dry_run or as_json)
    if is_asking and not sys.stdin.isatty():
        raise InvalidArgument("There is no terminal to ask on; add --yes or --dry-run.")
    if as_json and not (yes or dry_run):
        raise InvalidArgument("With --json nobody is asked; add --yes or --dry-run.")
    url = database_url(url)
    with opened(options, "empty") as session:  # nothing is created before something is saved
        if table is None and not given["select"]:
            table = _chosen_table(session, url, is_asking=is_asking)
        asked: dict[str, Any] = {"url": url, "table": table, **_overrides(given)}
        proposal = session.call("propose_source", asked)
        if not as_json:
            echo_proposal(proposal)
        while is_asking and (changes := _changes()) is not None:
            asked |= changes
            proposal = session.call("propose_source", asked)
            echo_proposal(proposal)
    saved = None
    if not dry_run:
        _require_sound(proposal)
        names = ("name", "namespace", "definition")
        with opened(options, "create") as session:
            saved = session.call("add_source", {name: proposal[name] for name in names})
    if as_json:
        context.echo_json({**proposal, "saved": saved is not None})
    elif saved is None:
        click.echo("Nothing was saved.")
    else:
        name = context.printable(saved["source"])
        click.echo(f"Saved as {name}. To read its rows: zibaldone sources sync {name}")
        definition = proposal["definition"]
        waits = definition["live"] and "poll_seconds" not in definition
        if waits and definition["url"].startswith("postgres"):
            click.echo(
                "It follows changes once the table has a trigger that notifies. The SQL for its "
                f"owner: zibaldone sources show {name} --trigger"
            )


def _overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    lists = {"key": given["keys"], "title": given["titles"], "body": given["bodies"]}
    chosen: dict[str, Any] = {name: list(value) for name, value in lists.items() if value}
    for name in ("name", "namespace", "select", "where", "tags", "created", "updated"):
        if given[name] is not None:
            chosen[name] = given[name]
    for name in ("watermark", "schedule", "poll_seconds"):
        if given[name] is not None:
            chosen[name] = given[name]
    if given["no_watermark"]:
        chosen["watermark"] = ""
    if given["live"] or given["poll_seconds"] is not None:
        chosen["live"] = True
    return chosen


def _chosen_table(session: context.Session, url: str, *, is_asking: bool) -> str:
    names: list[str] = session.call("find_tables", {"url": url})["tables"]
    if not names:
        raise InvalidArgument("The database has no table that can be read.", field="table")
    if len(names) == 1:
        return names[0]
    if not is_asking:
        raise InvalidArgument(
            f"Which table? There are {', '.join(names[:20])}.", field="table", tables=names
        )
    for number, name in enumerate(names, 1):
        click.echo(f"{number:>3}  {context.printable(name)}")
    while True:
        answer: str = click.prompt("Which table").strip()
        if answer in names:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        click.echo("Give its number or its name.", err=True)


def _changes() -> dict[str, Any] | None:
    """What to change in the proposal; None: save it as it is."""
    answer = click.prompt(
        "Save this?", type=click.Choice(["yes", "change", "no"]), default="yes", show_choices=True
    )
    if answer == "yes":
        return None
    if answer == "no":
        raise click.Abort
    field = click.prompt(
        "Change what",
        type=click.Choice(["name", "key", *_DOCUMENT_COLUMNS, "watermark", "where", "schedule"]),
    )
    value = click.prompt(f"{field} (empty: none)", default="", show_default=False).strip()
    if field in ("key", "title", "body"):
        return {field: [part.strip() for part in value.split(",") if part.strip()]}
    return {field: value}


def _require_sound(proposal: Mapping[str, Any]) -> None:
    if proposal["problems"]:
        raise InvalidArgument(" ".join(proposal["problems"]), problems=proposal["problems"])


def echo_proposal(proposal: Mapping[str, Any]) -> None:
    definition = proposal["definition"]
    document = definition.get("document", {})
    metadata = document.get("metadata")
    rows = [
        ("name", proposal["name"]),
        ("database", definition["url"]),
        ("table", definition.get("table") or "(your SELECT)"),
        ("where", definition.get("where")),
        ("key", ", ".join(definition.get("key", ()))),
        *((name, _listed(document.get(name))) for name in _DOCUMENT_COLUMNS),
        ("metadata", "all other columns" if metadata is None else ", ".join(metadata)),
        ("watermark", definition.get("watermark") or "none"),
        ("schedule", definition.get("schedule")),
    ]
    context.echo_table(
        [(name, context.printable(str(value))) for name, value in rows if value not in (None, "")]
    )
    for note in proposal.get("notes", ()):
        click.echo(f"Note: {context.printable(note)}")
    echo_documents(proposal["documents"])
    for problem in proposal["problems"]:
        click.echo(f"Problem: {context.printable(problem)}", err=True)


def _listed(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(part for part in value if isinstance(part, str))
    return "" if value is None else str(value)


def echo_documents(documents: list[dict[str, Any]]) -> None:
    """Rows as the documents they would become."""
    for document in documents:
        click.echo()
        click.echo(f"--- {context.printable(document['document_id'])}")
        if document["title"]:
            click.echo(f"title: {context.printable(document['title'])}")
        if document["tags"]:
            click.echo(f"tags: {context.printable(', '.join(document['tags']))}")
        if document["metadata"]:
            values = context.printable(context.as_json_line(document["metadata"]))
            click.echo(f"metadata: {_shortened(values)}")
        click.echo(_shortened(context.printable(document["body"])))
    if documents:
        click.echo()


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}\u2026"
