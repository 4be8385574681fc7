"""Export every live document as a file, with all its fields and revisions in one manifest."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from zibaldone.errors import Conflict, NotFound, StorageFull, StorageUnavailable
from zibaldone.exchange.manifest import MANIFEST_NAME, header, line
from zibaldone.exchange.names import FileNames
from zibaldone.limits import IMPORT_PROBLEMS_MAX

_OPEN_FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_TRUNC
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_PARTIAL_SUFFIX = ".partial"

Values = Mapping[str, Any]
"""A document or revision as the tools answer it."""


class Library(Protocol):
    """Where an export reads from."""

    def document_ids(self, prefix: str) -> AsyncIterator[str]:
        """The ids of the live documents whose path starts with `prefix`."""
        ...

    async def document(self, document_id: str) -> Values:
        """The newest revision, whole; raises NotFound where it was deleted meanwhile."""
        ...

    def history(self, document_id: str) -> AsyncIterator[Values]:
        """The heads of its revisions, newest first."""
        ...

    async def revision(self, document_id: str, revision: int) -> Values:
        """An earlier revision, whole."""
        ...


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


async def export(library: Library, folder: Path, *, prefix: str = "", force: bool) -> Exported:
    """Write the documents into `folder`; `force` also into one that contains files."""
    with _os_errors_translated(folder):
        root = _prepare(folder, force)
        return await _export(library, root, prefix)


def _prepare(folder: Path, force: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not force and any(folder.iterdir()):
        raise Conflict(
            f"{folder} contains files; choose another folder, or --force to write among them."
        )
    return folder.resolve()


async def _export(library: Library, root: Path, prefix: str) -> Exported:
    exported, names = Exported(), FileNames(MANIFEST_NAME)
    partial = root / (MANIFEST_NAME + _PARTIAL_SUFFIX)
    with _create(partial) as manifest:
        manifest.write(header())
        async for document_id in library.document_ids(prefix):
            try:
                document, operation, earlier = await _with_history(library, document_id)
            except NotFound:
                continue  # deleted since the page was read
            name = names.name_for(document_id)
            _write_file(exported, root, name, document)
            manifest.write(line(document, operation, name, earlier))
            exported.documents += 1
            exported.revisions += len(earlier)
            exported.renamed += name != document_id
    # Only a complete manifest gets its name.
    partial.replace(root / MANIFEST_NAME)
    return exported


async def _with_history(library: Library, document_id: str) -> tuple[Values, str, list[Values]]:
    """The document, the operation that made it, and its earlier revisions, oldest first."""
    document = await library.document(document_id)
    operation, earlier = "", []
    async for head in library.history(document_id):
        # A revision written since the document was read belongs to the next export.
        if head["revision"] == document["revision"]:
            operation = head["operation"]
        elif head["revision"] < document["revision"]:
            earlier.append(await library.revision(document_id, head["revision"]))
    return document, operation, earlier[::-1]


def _write_file(exported: Exported, root: Path, name: str, document: Values) -> None:
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
def _os_errors_translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise StorageFull(f"No space left in {folder}; the export is not complete.") from None
        if problem.errno == errno.EPIPE:
            raise
        raise StorageUnavailable(f"{folder} cannot be written: {problem.strerror}") from None
