"""Import one file, a folder of files, or a folder that `export` wrote."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from zibaldone.errors import Conflict, InvalidArgument, PayloadTooLarge, ZibaldoneError
from zibaldone.exchange.batches import Importer
from zibaldone.exchange.manifest import MANIFEST_NAME, Entry, entries, is_manifest
from zibaldone.exchange.walk import EVERYTHING, FolderWalk, FoundFile, Selection
from zibaldone.limits import Limits
from zibaldone.model.document import Document, parent_of
from zibaldone.model.extracted import Extracted
from zibaldone.model.incoming import Incoming, Outcome
from zibaldone.model.instant import now_us
from zibaldone.text import normalize
from zibaldone.text.labels import labels_of

_READABLE_SUFFIXES = (".pdf", ".docx", ".ipynb", ".org", ".rst")


class Convert(Protocol):
    async def __call__(self, data: bytes, *, name: str) -> Extracted:
        """The text of a file; raises ZibaldoneError where it has none."""
        ...


class FolderImport:
    """One run over a folder, or over one file."""

    def __init__(
        self,
        path: Path,
        importer: Importer,
        convert: Convert,
        limits: Limits,
        *,
        prefix: str = "",
        selection: Selection = EVERYTHING,
        taken: Collection[str] = (),
        pruned: Mapping[str, int] | None = None,
        advance: Callable[[int], None] = lambda steps: None,
    ) -> None:
        """`prefix` is the path to store under; `taken` are ids that something else was stored
        under just now; `pruned` are those that were deleted when their files were gone, with the
        revision of that; `advance` is told of each file that is done."""
        self._is_file = not path.is_dir()
        self._root = path.parent if self._is_file else path
        self._name = path.name
        self._importer = importer
        self._convert = convert
        self._limits = limits
        self.prefix = normalize.document_id(prefix, "prefix") + "/" if prefix else ""
        self._selection = selection
        self._taken = taken
        self._pruned = pruned or {}
        self._advance = advance
        self._done: set[str] = set()
        """Files of the manifest, and ids that differ from their file's name."""
        self.is_folder = not self._is_file
        """Whether it is a folder of files; one that `export` wrote is not."""
        self.ids: set[str] = set()
        """Of the files that are there, whether or not they could be read."""
        self.ignored = 0
        """Files and folders that ignore rules left out."""

    async def run(self) -> None:
        manifest = self._root / MANIFEST_NAME
        if (not self._is_file or self._name == MANIFEST_NAME) and is_manifest(manifest):
            self._done.add(MANIFEST_NAME)
            self.is_folder = False
            for name, entry in entries(manifest):
                if isinstance(entry, str):
                    self._importer.leave_out(name, "failed", entry)
                else:
                    await self._import_entry(entry)
        for file in self._files():
            if file.name not in self._done:
                await self._import_file(file)
        await self._importer.flush()

    def leave_out(self, document_id: str, reason: str) -> None:
        """Count a document that is left as it is."""
        self._importer.leave_out(document_id, "skipped", reason)

    def vanished(self, brought: Iterable[str]) -> list[str]:
        """Which of these documents have no file in the folder any more, by id.

        A file that is there counts, whether or not it was imported this time. Conflict where the
        folder may not be what it was: it has no files at all, or a part of it cannot be read.
        """
        missing = [document_id for document_id in brought if document_id not in self.ids]
        if not missing:
            return []
        present = set(self.ids)
        for file in FolderWalk(self._root, Selection(ignores=False)):
            if file.reason.startswith("cannot be read"):
                raise Conflict(
                    f"{file.name or self._root} {file.reason}. Nothing was pruned: files may be "
                    "there that cannot be seen."
                )
            try:
                present.add(normalize.document_id(self.prefix + file.name))
            except InvalidArgument:
                continue
        if not present:
            raise Conflict(
                f"{self._root} has no files. Nothing was pruned: that would delete all "
                f"{len(missing)} documents that it brought. If this is meant, use `zibaldone rm`."
            )
        return sorted(
            document_id
            for document_id in missing
            if document_id not in present
            and not os.path.lexists(self._root / document_id.removeprefix(self.prefix))
        )

    def _files(self) -> Iterable[FoundFile]:
        if self._is_file:
            yield FoundFile((self._root / self._name).resolve(), self._name)
            return
        walk = FolderWalk(self._root, self._selection)
        yield from walk
        self.ignored = walk.ignored

    async def _import_entry(self, entry: Entry) -> None:
        self._done.add(entry.file)
        if not self._selection.takes_file(entry.file):
            return
        try:
            body = self._edited_body(entry)
        except (ZibaldoneError, OSError) as problem:
            self._importer.leave_out(entry.file, "failed", _reason(problem))
            return
        base = None
        if body is not None:
            bytes_max = self._limits.metadata_bytes_max
            base, entry = entry.document, entry.edited(body, now_us(), bytes_max)
        document = _moved(entry.document, self.prefix) if self.prefix else entry.document
        self.ids.add(document.document_id)
        await self._importer.add(document.document_id, Incoming(document, entry.earlier, base))
        self._advance(1)

    def _edited_body(self, entry: Entry) -> str | None:
        """The text of the entry's file where it differs from the manifest's."""
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

    async def _import_file(self, file: FoundFile) -> None:
        self._advance(1)
        if file.reason:
            self._importer.leave_out(file.name, "skipped", file.reason)
            return
        try:
            _require_utf8(file.name)
            document_id = normalize.document_id(self.prefix + file.name)
            self._refuse_collision(file.name, document_id)
            self.ids.add(document_id)
            data = _read(file.path, self._limits.ingest_bytes_max)
            extracted = await self._convert(data, name=file.name)
        except (ZibaldoneError, OSError) as problem:
            is_foreign = isinstance(problem, InvalidArgument) and not _is_readable(file.name)
            outcome: Outcome = "skipped" if is_foreign else "failed"
            self._importer.leave_out(file.name, outcome, _reason(problem))
            return
        at_us = now_us()
        labels = labels_of(extracted.text, extracted.mime, self._limits.metadata_bytes_max)
        document = Document(
            document_id=document_id,
            body=extracted.text,
            title=extracted.title,
            tags=labels.tags,
            parent_id=parent_of(document_id),
            mime=extracted.mime,
            metadata=labels.metadata,
            revision=1,
            created_at_us=at_us,
            updated_at_us=at_us,
            updated_by="",
            operation="import",
        )
        known = self._pruned.get(document_id)
        incoming = Incoming(document, known_revision=known, has_labels=False)
        await self._importer.add(file.name, incoming)

    def _refuse_collision(self, name: str, document_id: str) -> None:
        """Two file names may give one id: `é` can be written as one character or as two."""
        if document_id in self._taken:
            raise Conflict(f"another file has the same path {document_id!r}")
        if document_id == self.prefix + name:
            return
        other = self._root / document_id.removeprefix(self.prefix)
        if document_id in self._done or (other.exists() and not other.samefile(self._root / name)):
            raise Conflict(f"another file has the same path {document_id!r}")
        self._done.add(document_id)


def _moved(document: Document, prefix: str) -> Document:
    parent_id = document.parent_id
    if parent_id == parent_of(document.document_id):
        parent_id = parent_of(prefix + document.document_id)
    return replace(document, document_id=prefix + document.document_id, parent_id=parent_id)


def _require_utf8(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("the name of the file is not UTF-8; rename it") from None


def _read(path: Path, bytes_max: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise PayloadTooLarge(f"more than {bytes_max} bytes", bytes_max=bytes_max)
    return data


def _is_readable(name: str) -> bool:
    """Whether the name promises text: then a file without text has failed, others are skipped."""
    kind, _ = mimetypes.guess_type(name)
    return name.lower().endswith(_READABLE_SUFFIXES) or (kind or "").startswith("text/")


def _reason(problem: ZibaldoneError | OSError) -> str:
    if isinstance(problem, ZibaldoneError):
        return problem.message
    return problem.strerror or str(problem)
