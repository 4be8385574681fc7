"""zibaldone export: every live document as a file, and all there is to know in one manifest."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

import click

from zibaldone.cli import context
from zibaldone.cli.exchange_manifest import MANIFEST_NAME, header, line
from zibaldone.cli.exchange_names import FileNames
from zibaldone.cli.lists import pages
from zibaldone.cli.revisions import history_pages
from zibaldone.errors import Conflict, NotFound, StorageFull, StorageUnavailable
from zibaldone.limits import IMPORT_PROBLEMS_MAX

_OPEN_FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_TRUNC
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_PARTIAL_SUFFIX = ".partial"


@dataclass(slots=True)
class Exported:
    documents: int = 0
    revisions: int = 0
    renamed: int = 0
    """Files whose name is not the document's id."""
    failed: int = 0
    problems: list[dict[str, str]] = field(default_factory=list)

    def fail(self, document_id: str, reason: str) -> None:
        self.failed += 1
        if len(self.problems) < IMPORT_PROBLEMS_MAX:
            self.problems.append({"path": document_id, "reason": reason})


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--prefix", default="", help="Only documents whose path starts so.")
@click.option("--force", is_flag=True, help="Write into a folder that holds files already.")
@context.json_option
@click.pass_context
def export(ctx: click.Context, folder: Path, prefix: str, force: bool, as_json: bool) -> None:
    """Write the documents into a folder, one file each.

    DIR/documents.jsonl holds every field and revision; `import DIR` reads it all back. Deleted
    documents are not exported.
    """
    with _translated(folder), context.opened(ctx.obj) as session:
        _prepare(folder, force)
        exported = _export(session, folder, prefix)
    if as_json:
        context.echo_json(asdict(exported))
    else:
        for problem in exported.problems:
            name, reason = (context.printable(problem[part]) for part in ("path", "reason"))
            click.echo(f"failed: {name}: {reason}", err=True)
        click.echo(
            f"{exported.documents} documents, {exported.revisions} earlier revisions, "
            f"{exported.renamed} with another file name, {exported.failed} failed"
        )
    if exported.failed:
        ctx.exit(1)


def _prepare(folder: Path, force: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not force and any(folder.iterdir()):
        raise Conflict(
            f"{folder} holds files already; choose another folder, or --force to write among them."
        )


def _export(session: context.Session, folder: Path, prefix: str) -> Exported:
    exported, names = Exported(), FileNames(MANIFEST_NAME)
    partial = folder / (MANIFEST_NAME + _PARTIAL_SUFFIX)
    root = folder.resolve()
    with _create(partial) as manifest:
        manifest.write(header())
        for page in pages(session, prefix, None):
            for item in page["items"]:
                document_id = item["document_id"]
                try:
                    document, operation, earlier = _with_history(session, document_id)
                except NotFound:
                    continue  # deleted since the page was read
                name = names.name_for(document_id)
                _write_file(exported, root, name, document)
                manifest.write(line(document, operation, name, earlier))
                exported.documents += 1
                exported.revisions += len(earlier)
                exported.renamed += name != document_id
    # Only a manifest that is complete gets its name.
    partial.replace(folder / MANIFEST_NAME)
    return exported


def _with_history(
    session: context.Session, document_id: str
) -> tuple[context.Answer, str, list[context.Answer]]:
    """The document, what made its newest revision, and the earlier ones, oldest first."""
    document = session.call("get_document_for_rewrite", {"path": document_id})
    operation, earlier = "", []
    for page in history_pages(session, document_id, None):
        for one in page["revisions"]:
            # A revision written since the document was read belongs to the next export.
            if one["revision"] == document["revision"]:
                operation = one["operation"]
            elif one["revision"] < document["revision"]:
                arguments = {"path": document_id, "revision": one["revision"]}
                earlier.append(session.call("document_revision", arguments))
    return document, operation, earlier[::-1]


def _write_file(exported: Exported, root: Path, name: str, document: context.Answer) -> None:
    """A file that cannot be written is no loss: the manifest has its text too."""
    target = root / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(root):
            exported.fail(document["document_id"], "a link in DIR leads out of it")
            return
        with _create(target) as file:
            file.write(document["content"].encode())
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise
        exported.fail(document["document_id"], problem.strerror or str(problem))


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, _OPEN_FLAGS, 0o666), "wb")


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise StorageFull(f"No space left in {folder}; the export is not complete.") from None
        if problem.errno == errno.EPIPE:
            raise
        raise StorageUnavailable(f"{folder} cannot be written: {problem.strerror}") from None
