"""zibaldone import DIR: a folder of files, or one that `export` wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from zibaldone.cli import context
from zibaldone.cli.importing import (
    echo_summary,
    importer_of,
    skip_existing_option,
    update_option,
)
from zibaldone.exchange.folder import FolderImport
from zibaldone.exchange.walk import walk
from zibaldone.model.incoming import Existing


@click.command("DIR", short_help="Import a folder of files.")
@click.argument(
    "folder",
    type=click.Path(path_type=Path),
    required=False,
    metavar="",  # the command's name shows it already
)
@click.option("--prefix", default="", help="Keep them under this path.")
@click.option(
    "--glob",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Only these files, e.g. '*.md' or 'docs/*'; give the option once for each.",
)
@update_option
@skip_existing_option
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@context.json_option
@click.pass_context
def import_folder(
    ctx: click.Context,
    folder: Path | None,
    prefix: str,
    patterns: tuple[str, ...],
    existing: Existing | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import the files of the folder DIR: text, Markdown, code, HTML, PDF, DOCX.

    A file's path in DIR becomes the document's path. A folder written by `export` gives back ids,
    titles, tags, metadata and history; files edited since then are newer. Hidden files are left
    out. A document that was changed here is left alone unless --update is given.
    """
    if folder is None or not folder.is_dir():
        raise click.UsageError(f"{folder} is not a folder." if folder else "Which folder?")
    with context.opened(ctx.obj, if_missing="empty" if dry_run else "create") as session:
        importer = importer_of(session, existing, dry_run=dry_run)
        total = sum(1 for _ in walk(folder, patterns)) if sys.stderr.isatty() else 0
        with context.progress("Importing", total) as advance:
            folder_import = FolderImport(
                folder,
                importer,
                session.runtime.converter.convert,
                session.runtime.limits,
                prefix=prefix,
                patterns=patterns,
                advance=advance,
            )
            session.run(folder_import.run())
    if as_json:
        context.echo_json({**importer.summary.as_dict(), "dry_run": dry_run})
    else:
        echo_summary(importer.summary, dry_run=dry_run)
    if importer.summary.counts["failed"]:
        ctx.exit(1)
