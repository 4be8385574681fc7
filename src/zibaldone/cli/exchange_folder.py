"""zibaldone import DIR: a folder of files, or one that `export` wrote."""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from zibaldone.cli import context
from zibaldone.cli.exchange_batches import Importer, skip_existing_option, update_option
from zibaldone.cli.exchange_manifest import MANIFEST_NAME, Entry, entries, is_manifest
from zibaldone.cli.exchange_walk import FoundFile, matches, walk
from zibaldone.errors import Conflict, InvalidArgument, PayloadTooLarge, ZibaldoneError
from zibaldone.keep.imports import Existing, Incoming
from zibaldone.model.document import Document, parent_of
from zibaldone.model.instant import now_us
from zibaldone.text import normalize

_READABLE_SUFFIXES = (".pdf", ".docx")


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
        raise click.UsageError(f"{folder} is no folder." if folder else "Which folder?")
    prefix = _folder_prefix(prefix)
    with context.opened(ctx.obj) as session:
        importer = Importer(session, existing or "keep_edited", dry_run=dry_run)
        total = sum(1 for _ in walk(folder, patterns)) if sys.stderr.isatty() else 0
        with context.progress("Importing", total) as advance:
            run = FolderImport(folder, prefix, patterns, importer, session, advance)
            run.import_all()
    if as_json:
        context.echo_json({**importer.summary.as_dict(), "dry_run": dry_run})
    else:
        importer.summary.echo(dry_run=dry_run)
    if importer.summary.counts["failed"]:
        ctx.exit(1)


def _folder_prefix(prefix: str) -> str:
    return normalize.document_id(prefix, "prefix") + "/" if prefix else ""


class FolderImport:
    """One run over a folder."""

    def __init__(
        self,
        root: Path,
        prefix: str,
        patterns: tuple[str, ...],
        importer: Importer,
        session: context.Session,
        advance: Callable[[int], None],
    ) -> None:
        self._root = root
        self._prefix = prefix
        self._patterns = patterns
        self._importer = importer
        self._session = session
        self._limits = session.runtime.limits
        self._advance = advance
        self._done: set[str] = set()
        """Files of the manifest, and ids whose file name was not in their form."""

    def import_all(self) -> None:
        manifest = self._root / MANIFEST_NAME
        if is_manifest(manifest):
            self._done.add(MANIFEST_NAME)
            for name, entry in entries(manifest):
                if isinstance(entry, str):
                    self._importer.summary.add(name, "failed", entry)
                else:
                    self._import_entry(entry)
        for found in walk(self._root, self._patterns):
            if found.name not in self._done:
                self._import_file(found)
        self._importer.flush()

    def _import_entry(self, entry: Entry) -> None:
        self._done.add(entry.file)
        if not matches(entry.file, self._patterns):
            return
        try:
            body = self._edited_body(entry)
        except (ZibaldoneError, OSError) as problem:
            self._importer.summary.add(entry.file, "failed", _why(problem))
            return
        base = None
        if body is not None:
            base, entry = entry.document, entry.edited(body, now_us())
        document = _moved(entry.document, self._prefix) if self._prefix else entry.document
        self._importer.add(document.document_id, Incoming(document, entry.earlier, base))
        self._advance(1)

    def _edited_body(self, entry: Entry) -> str | None:
        """What the entry's file says, if it says something else than the manifest."""
        path = self._root / entry.file
        if not path.is_file() or not path.resolve().is_relative_to(self._root.resolve()):
            return None
        data = _read(path, self._limits.document_body_bytes_max)
        if data == entry.document.body.encode():
            return None
        try:
            return data.decode()
        except UnicodeDecodeError as problem:
            raise InvalidArgument(f"not UTF-8 text (byte {problem.start})") from None

    def _import_file(self, found: FoundFile) -> None:
        self._advance(1)
        summary = self._importer.summary
        if found.reason:
            summary.add(found.name, "skipped", found.reason)
            return
        try:
            document_id = normalize.document_id(self._prefix + found.name)
            self._refuse_collision(found.name, document_id)
            data = _read(found.path, self._limits.ingest_bytes_max)
            text = self._session.run(self._session.runtime.converter.convert(data, name=found.name))
        except (ZibaldoneError, OSError) as problem:
            is_foreign = isinstance(problem, InvalidArgument) and not _is_readable(found.name)
            summary.add(found.name, "skipped" if is_foreign else "failed", _why(problem))
            return
        at_us = now_us()
        document = Document(
            document_id=document_id,
            body=text.text,
            title=text.title,
            tags=(),
            parent_id=parent_of(document_id),
            mime=text.mime,
            metadata={},
            revision=1,
            created_at_us=at_us,
            updated_at_us=at_us,
            updated_by="",
            operation="import",
        )
        self._importer.add(found.name, Incoming(document, has_labels=False))

    def _refuse_collision(self, name: str, document_id: str) -> None:
        """Two file names may come to one id: `é` can be written as one character or as two."""
        given = self._prefix + name
        if document_id == given:
            return
        other = self._root / document_id.removeprefix(self._prefix)
        if document_id in self._done or (other.exists() and not other.samefile(self._root / name)):
            raise Conflict(f"another file has the same path {document_id!r}")
        self._done.add(document_id)


def _moved(document: Document, prefix: str) -> Document:
    parent_id = document.parent_id
    if parent_id == parent_of(document.document_id):
        parent_id = parent_of(prefix + document.document_id)
    return replace(document, document_id=prefix + document.document_id, parent_id=parent_id)


def _read(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise PayloadTooLarge(f"more than {bytes_max} bytes", bytes_max=bytes_max)
    return data


def _is_readable(name: str) -> bool:
    """Whether the name promises text: then a file that is none is a failure, not just a file."""
    kind, _ = mimetypes.guess_type(name)
    return name.lower().endswith(_READABLE_SUFFIXES) or (kind or "").startswith("text/")


def _why(problem: ZibaldoneError | OSError) -> str:
    if isinstance(problem, ZibaldoneError):
        return problem.message
    return problem.strerror or str(problem)
