"""What imports of a folder brought: the documents, and the revision at which each was left.

One small file for each folder and prefix, in the data folder. A document is only pruned while it is
still at that revision: whatever changed it since, here or by another import, keeps it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from zibaldone.folders import make_private

_FORMAT = "zibaldone-import"
_VERSION = 1


@dataclass(slots=True)
class Brought:
    """Revisions by document id."""

    documents: dict[str, int] = field(default_factory=dict)
    pruned: dict[str, int] = field(default_factory=dict)
    """Those that were deleted since their files were gone; the revision is that of the deletion."""

    def add_all(self, document_ids: Collection[str], revisions: Mapping[str, int]) -> None:
        """Those of the documents that are as they were imported, which have a revision."""
        for document_id in document_ids:
            if document_id in revisions:
                self.documents[document_id] = revisions[document_id]
                self.pruned.pop(document_id, None)

    def prune(self, document_id: str, revision: int) -> None:
        self.documents.pop(document_id, None)
        self.pruned[document_id] = revision


class ImportRecord:
    def __init__(self, data: Path, *, store: str, folder: Path, prefix: str) -> None:
        """`store`: the address of the store, empty for the one in the data folder."""
        # A folder's name need not be UTF-8; then its other bytes are written escaped.
        place = os.fspath(folder.resolve()).encode(errors="backslashreplace").decode()
        self._about = {"folder": place, "prefix": prefix.strip("/")}
        identity = orjson.dumps([store, *self._about.values()])
        name = hashlib.blake2b(identity, digest_size=16).hexdigest()
        self._path = data / "imports" / f"{name}.json"

    def read(self) -> Brought:
        """Nothing if there is no record, or none that can be read: then nothing is pruned."""
        try:
            record = orjson.loads(self._path.read_bytes())
            if (record["format"], record["version"]) != (_FORMAT, _VERSION):
                return Brought()
            return Brought(_revisions(record["documents"]), _revisions(record["pruned"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Brought()

    def write(self, brought: Brought) -> None:
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            **self._about,
            "documents": brought.documents,
            "pruned": brought.pruned,
        }
        make_private(self._path.parent)
        new = self._path.with_suffix(f".{os.getpid()}.new")
        try:
            new.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
            new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)


def _revisions(given: dict[str, int]) -> dict[str, int]:
    return {str(document_id): int(revision) for document_id, revision in given.items()}
