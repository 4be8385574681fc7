"""What the import commands share: options, the way to the store, and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from zibaldone.cli import context
from zibaldone.exchange.batches import OUTCOMES, Importer, Summary
from zibaldone.limits import IMPORT_PROBLEMS_MAX
from zibaldone.model.incoming import Existing, Imported, Incoming

if TYPE_CHECKING:
    from zibaldone.cli.session import Session

_PROBLEMS_SHOWN_MAX = 20

update_option = click.option(
    "--update",
    "existing",
    flag_value="update",
    help="Also replace documents that were changed or deleted here; history keeps them.",
)
skip_existing_option = click.option(
    "--skip-existing", "existing", flag_value="skip", help="Never touch a path that is taken."
)


def importer_of(session: Session, existing: Existing | None, *, dry_run: bool = False) -> Importer:
    """An importer that writes through the tools, or with `dry_run` only asks them."""
    tool = "preview_import" if dry_run else "import_documents"

    async def write_batch(batch: Sequence[Incoming]) -> Sequence[Imported]:
        arguments = {"batch": list(batch), "existing": existing or "keep_edited"}
        results: Sequence[Imported] = (await session.ask(tool, arguments))["results"]
        return results

    return Importer(write_batch)


def finish_interrupted(session: Session) -> None:
    """Store the keyword terms of documents at which an earlier command was interrupted: they count
    as stored and are not imported again. Else only a server does so."""
    from zibaldone.index.renewal import last_left, settle_left

    store = session.runtime.store
    session.run(settle_left(store, session.run(last_left(store))))


def echo_summary(
    summary: Summary, *, removed: Sequence[str] | None = None, dry_run: bool = False
) -> None:
    """`removed`: documents that were pruned; None where that was not asked for."""
    for document_id in (removed or ())[:_PROBLEMS_SHOWN_MAX]:
        click.echo(f"removed: {context.printable(document_id)}", err=True)
    problems = summary.problems[:_PROBLEMS_SHOWN_MAX]
    for problem in problems:
        name, reason = (context.printable(problem[part]) for part in ("path", "reason"))
        click.echo(f"{problem['outcome']}: {name}: {reason}", err=True)
    more = summary.counts["skipped"] + summary.counts["failed"] - len(problems)
    if more > 0 and problems:
        click.echo(f"... and {more} more; --json names up to {IMPORT_PROBLEMS_MAX}.", err=True)
    counts = ", ".join(f"{summary.counts[outcome]} {outcome}" for outcome in OUTCOMES)
    if removed is not None:
        counts += f", {len(removed)} removed"
    click.echo(counts + (" (dry run: nothing was written)" if dry_run else ""))


def echo_ignored(count: int) -> None:
    if count:
        what = "file or folder was" if count == 1 else "files or folders were"
        click.echo(f"{count} ignored {what} left out; --no-ignore imports them.", err=True)
