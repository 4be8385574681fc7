"""history, restore: earlier revisions of a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.cli.backups import is_database, restore_backup
from zibaldone.cli.documents import echo_written, if_revision_option, revision_type
from zibaldone.errors import Conflict, InvalidArgument, NotFound, StoreNotFound
from zibaldone.limits import HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX


@click.command()
@click.argument("path")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=HISTORY_LIMIT_DEFAULT,
    show_default=True,
    help="How many revisions to show.",
)
@click.option("--all", "show_all", is_flag=True, help="Show all revisions.")
@click.option(
    "--diff",
    type=revision_type,
    nargs=2,
    metavar="OLDER NEWER",
    help="Show what changed between two revisions instead.",
)
@context.json_option
@click.pass_obj
def history(
    options: context.Options,
    path: str,
    limit: int,
    show_all: bool,
    diff: tuple[int, int] | None,
    as_json: bool,
) -> None:
    """List the revisions of the document at PATH.

    The newest comes first. A deleted document keeps its history.
    """
    if diff is not None:
        arguments = {"path": path, "older": diff[0], "newer": diff[1]}
        answer = context.run_tool(options, "document_diff", arguments)
        if as_json:
            context.echo_json(answer)
        else:
            click.echo(answer["diff"], nl=bool(answer["diff"]))
            if answer["truncated"]:
                click.echo("There are more changes; read both revisions to see them.", err=True)
        return
    with context.opened(options) as session:
        pages = list(history_pages(session, path, None if show_all else limit))
    answer = {
        "document_id": pages[0]["document_id"],
        "revisions": [revision for page in pages for revision in page["revisions"]],
        "next_before": pages[-1]["next_before"],
    }
    if as_json:
        context.echo_json(answer)
    else:
        _echo_revisions(answer)


def history_pages(
    session: context.Session, path: str, limit: int | None
) -> Iterator[context.Answer]:
    """Pages of a history until there is no more, or `limit` revisions were given."""
    left, before = limit, None
    while left is None or left > 0:
        size = HISTORY_LIMIT_MAX if left is None else min(left, HISTORY_LIMIT_MAX)
        arguments: dict[str, Any] = {"path": path, "limit": size, "before": before}
        page = session.call("document_history", arguments)
        yield page
        before = page["next_before"]
        if before is None:
            return
        if left is not None:
            left -= len(page["revisions"])


def _echo_revisions(answer: context.Answer) -> None:
    rows = [
        (
            str(revision["revision"]),
            revision["written_at"][:19] + "Z",
            revision["operation"],
            context.printable(revision["written_by"]),
            f"{revision['content_length']} chars",
            context.printable(revision["title"]),
        )
        for revision in answer["revisions"]
    ]
    context.echo_table(rows, right=frozenset({0, 4}))
    if answer["next_before"] is not None:
        click.echo("There are earlier revisions; use --all to list them.", err=True)


def _before_deletion(options: context.Options, path: str) -> int | None:
    """The revision to which a deleted document goes back; None: there is no such document.

    Conflict: it is not deleted.
    """
    try:
        context.run_tool(options, "get_document", {"path": path, "related": False})
    except NotFound as missing:
        return missing.details.get("restorable_revision")
    except (StoreNotFound, InvalidArgument):
        return None
    raise Conflict(
        f"{path!r} is not deleted. Give the revision to go back to: zibaldone restore {path} "
        f"REVISION. To list them: zibaldone history {path}"
    )


@click.command()
@click.argument("path", metavar="PATH|FILE")
@click.argument("revision", type=revision_type, required=False)
@if_revision_option
@click.option(
    "--force", is_flag=True, help="A backup: replace a store that holds data; it is kept."
)
@context.json_option
@click.pass_obj
def restore(
    options: context.Options,
    path: str,
    revision: int | None,
    if_revision: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Restore a deleted document, a REVISION, or a backup.

    \b
    zibaldone restore PATH            a deleted document (see `ls --deleted`)
    zibaldone restore PATH REVISION   an earlier revision (see `history`)
    zibaldone restore FILE            everything, from a file of `backup`

    A revision is written as a new one.

    A backup is checked first, and the server must not run. A store that holds data is replaced with
    --force only, and kept beside it.
    """
    if revision is None:
        if if_revision is not None:
            raise click.UsageError("--if-revision needs a REVISION.")
        if not force and not is_database(Path(path)):
            revision = _before_deletion(options, path)
        if revision is None:
            restore_backup(options, Path(path), force=force, as_json=as_json)
            return
    elif force:
        raise click.UsageError("--force is for a backup, without a REVISION.")
    arguments = {"path": path, "revision": revision, "last_known_revision": if_revision}
    echo_written(context.run_writing_tool(options, "restore_document", arguments), as_json)
