"""zibaldone import agent-data: a knowledge base that was kept by AgentData."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.cli.importing import (
    echo_summary,
    finish_interrupted,
    importer_of,
    skip_existing_option,
    update_option,
)
from zibaldone.cli.vectors import finish_vectors, no_vectors_option
from zibaldone.model.incoming import Existing
from zibaldone.pull.agent_data import postgres
from zibaldone.pull.agent_data.file import DumpFile
from zibaldone.pull.agent_data.preflight import Preflight, inspect
from zibaldone.pull.agent_data.row import KbRows
from zibaldone.pull.agent_data.run import import_rows

_LINES = (
    ("rows", "rows"),
    ("live", "of these live"),
    ("deleted", "of these deleted"),
    ("body_bytes", "bytes of text"),
    ("unreadable", "rows that cannot be read"),
    ("without_id", "rows without a document_id (left out)"),
    ("non_numeric_revisions", "revisions that are no number (become 0)"),
    ("key_mismatches", "keys that are not the document_id with '/' as '__'"),
    ("live_ids_with_underscore", "live ids with '_'"),
    ("live_ids_with_percent", "live ids with '%'"),
    ("live_ids_with_backslash", "live ids with '\\'"),
    ("ids_changed", "ids that are written differently here"),
    ("ids_refused", "ids that cannot be kept"),
    ("ids_colliding", "rows that give way to another row with the same id"),
    ("bodies_too_large", "texts over the limit"),
)


@click.command("agent-data", short_help="Import an AgentData knowledge base.")
@click.argument("source", metavar="URL|FILE")
@click.option("--with-deleted", is_flag=True, help="Import deleted documents too, as deleted.")
@update_option
@skip_existing_option
@click.option("--dry-run", is_flag=True, help="Stop after the report.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@no_vectors_option
@context.json_option
@click.pass_context
@context.resumable("What was imported is kept; run the same command again to go on.")
def import_agent_data(
    ctx: click.Context,
    source: str,
    with_deleted: bool,
    existing: Existing | None,
    dry_run: bool,
    yes: bool,
    no_vectors: bool,
    as_json: bool,
) -> None:
    """Import AgentData's table kb_documents.

    From its database (postgresql://user@host/name; the password is best given as PGPASSWORD) or
    from a FILE: JSON lines, a JSON array, or CSV or text of psql's \\copy. Nothing is written
    there. A report comes first. A document that was changed here since an earlier import is left
    alone unless --update is given.
    """
    with _opened(source) as rows:
        report = inspect(rows(), ctx.obj.settings().limits.document_body_bytes_max)
        answer: dict[str, Any] = {"preflight": report.as_dict()}
        if not as_json:
            _echo_report(report)
        if not dry_run:
            if sys.stdin.isatty() and not yes and not click.confirm("Import these?", err=True):
                click.echo("Nothing was imported.", err=True)
                ctx.exit(1)
            with context.opened(ctx.obj, if_missing="create") as session:
                importer = importer_of(session, existing)
                finish_interrupted(session)
                with context.progress("Importing", report.rows) as advance:
                    session.run(
                        import_rows(
                            rows, report, importer, with_deleted=with_deleted, advance=advance
                        )
                    )
                answer["vectors"] = finish_vectors(session, is_wanted=not no_vectors)
            answer |= importer.summary.as_dict()
            if not as_json:
                echo_summary(importer.summary)
    if as_json:
        context.echo_json(answer)
    if answer.get("failed"):
        ctx.exit(1)


@contextmanager
def _opened(source: str) -> Iterator[KbRows]:
    if source.startswith(postgres.SCHEMES):
        with postgres.opened(source) as rows:
            yield rows
    else:
        yield DumpFile(Path(source))


def _echo_report(report: Preflight) -> None:
    values = report.as_dict()
    for name, words in _LINES:
        number = f"{values[name]:,}".replace(",", " ")
        click.echo(f"{number:>12}  {words}")
        for example in report.examples.get(name, ()):
            click.echo(f"{'':14}- {context.printable(example)}")
