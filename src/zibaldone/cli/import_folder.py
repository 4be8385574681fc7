"""zibaldone import PATH: a file, a folder of files, or a folder that `export` wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from zibaldone.cli import context
from zibaldone.cli.importing import (
    echo_ignored,
    echo_summary,
    finish_interrupted,
    importer_of,
    skip_existing_option,
    update_option,
)
from zibaldone.cli.vectors import finish_vectors, no_vectors_option
from zibaldone.errors import Conflict, NotFound
from zibaldone.exchange.folder import FolderImport
from zibaldone.exchange.record import Brought, ImportRecord
from zibaldone.exchange.walk import FolderWalk, Selection
from zibaldone.limits import IMPORT_PROBLEMS_MAX
from zibaldone.model.incoming import Existing

_NOTHING_FOUND = "There was no file to import; hidden files are left out."
_NOTHING_MATCHED = "No file matched --include and --exclude; patterns are relative to the folder."


@click.command("PATH", short_help="Import a file, or a folder of files.")
@click.argument(
    "paths",
    type=click.Path(path_type=Path),
    nargs=-1,
    metavar="...",  # the command's name shows it already
)
@click.option("--prefix", default="", help="Keep them under this path.")
@click.option(
    "--include",
    "--glob",
    "include",
    multiple=True,
    metavar="PATTERN",
    help="Only these files, e.g. '*.md' or 'docs/*'; give the option once for each. A hidden or "
    "ignored folder that a pattern names, as 'node_modules/*' does, is imported too.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Not these files or folders; patterns are written as in .gitignore.",
)
@click.option(
    "--no-ignore",
    is_flag=True,
    help="Also what .gitignore, .zibaldoneignore and the built-in list (node_modules, "
    "__pycache__ and the like) leave out.",
)
@update_option
@skip_existing_option
@click.option(
    "--prune",
    is_flag=True,
    help="Also delete documents that an earlier import of the same folder and prefix brought and "
    "whose files are gone. They can be restored.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@no_vectors_option
@context.json_option
@click.pass_context
@context.resumable("What was imported is kept; run the same command again to go on.")
def import_folder(
    ctx: click.Context,
    paths: tuple[Path, ...],
    prefix: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    no_ignore: bool,
    existing: Existing | None,
    prune: bool,
    dry_run: bool,
    no_vectors: bool,
    as_json: bool,
) -> None:
    """Import the file PATH, or the files of the folder PATH.

    Text in any encoding, Markdown, code, reStructuredText, Org, notebooks, HTML, PDF and DOCX.

    A file's path in the folder becomes the document's path; a file that is named itself keeps its
    name. A folder written by `export` gives back ids, titles, tags, metadata and history; files
    edited since then are newer. Hidden and ignored files are left out. A document that was changed
    here is left alone unless --update is given. Where no server runs, vectors are made here.
    """
    _check(paths, prune=prune)
    selection = Selection(include, exclude, ignores=not no_ignore)
    with context.opened(ctx.obj, if_missing="empty" if dry_run else "create") as session:
        importer = importer_of(session, existing, dry_run=dry_run)
        if not dry_run:
            finish_interrupted(session)
        settings = ctx.obj.settings()
        total = sum(_count(path, selection) for path in paths) if sys.stderr.isatty() else 0
        ids: set[str] = set()
        ignored = 0
        removed: list[str] = []
        with context.progress("Importing", total) as advance:
            for path in paths:
                record = ImportRecord(
                    settings.data, store=settings.store, folder=path, prefix=prefix
                )
                brought = record.read()
                folder_import = FolderImport(
                    path,
                    importer,
                    session.runtime.converter.convert,
                    session.runtime.limits,
                    prefix=prefix,
                    selection=selection,
                    taken=ids,
                    pruned=brought.pruned,
                    advance=advance,
                )
                try:
                    session.run(folder_import.run())
                    if prune:
                        removed = _prune(session, folder_import, brought, dry_run=dry_run)
                finally:
                    if folder_import.is_folder and not dry_run:
                        brought.add_all(folder_import.ids, importer.revisions)
                        record.write(brought)
                ids |= folder_import.ids
                ignored += folder_import.ignored
        vectors = finish_vectors(session, is_wanted=not (dry_run or no_vectors))
    if as_json:
        summary = {**importer.summary.as_dict(), "ignored": ignored, "dry_run": dry_run}
        if prune:
            summary |= {"removed": len(removed), "removed_paths": removed[:IMPORT_PROBLEMS_MAX]}
        context.echo_json({**summary, "vectors": vectors})
    else:
        echo_ignored(ignored)
        if not any(importer.summary.counts.values()):
            is_selected = bool(include or exclude)
            click.echo(_NOTHING_MATCHED if is_selected else _NOTHING_FOUND, err=True)
        echo_summary(importer.summary, removed=removed if prune else None, dry_run=dry_run)
    if importer.summary.counts["failed"]:
        ctx.exit(1)


def _check(paths: tuple[Path, ...], *, prune: bool) -> None:
    if not paths:
        raise click.UsageError("Which file or folder?")
    for path in paths:
        if path.parts[:1] in (("http:",), ("https:",)):
            raise click.UsageError(
                "Pages of the web are not fetched here. Save it and import the file, or allow its "
                "host (ingest_hosts) and use the tool ingest_document."
            )
        if not (path.is_dir() or path.is_file()):
            raise click.UsageError(f"{path} is not a file or folder.")
    if prune and not (len(paths) == 1 and paths[0].is_dir()):
        raise click.UsageError("--prune needs one folder.")


def _prune(
    session: context.Session, folder_import: FolderImport, brought: Brought, *, dry_run: bool
) -> list[str]:
    """Delete the documents whose files are gone; their ids."""
    if not folder_import.is_folder:
        raise click.UsageError("--prune is not for a folder that `export` wrote.")
    removed = []
    for document_id in folder_import.vanished(brought.documents):
        revision = brought.documents[document_id]
        try:
            if dry_run:
                part = {"path": document_id, "from_char": 0, "char_count": 1, "related": False}
                if session.call("get_document", part)["revision"] != revision:
                    raise Conflict("changed")
            else:
                given = {"path": document_id, "last_known_revision": revision}
                brought.prune(document_id, session.call("delete_document", given)["revision"])
        except NotFound:
            brought.documents.pop(document_id)  # deleted here already
        except Conflict:
            folder_import.leave_out(document_id, "its file is gone, but it was changed here")
        else:
            removed.append(document_id)
    return removed


def _count(path: Path, selection: Selection) -> int:
    return sum(1 for _ in FolderWalk(path, selection)) if path.is_dir() else 1
