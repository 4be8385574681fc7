"""documents.jsonl: every field and every revision of the documents beside it in a folder.

The first line says what the file is; each further line is one document with its history.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import orjson

from zibaldone.errors import InvalidArgument
from zibaldone.model.document import Document, Operation, Revision
from zibaldone.model.instant import from_iso

MANIFEST_NAME = "documents.jsonl"

_FORMAT = "zibaldone-documents"
_VERSION = 1
_HEADER = {"format": _FORMAT, "version": _VERSION}
_HEADER_BYTES_MAX = 1000
_DOCUMENT_FIELDS = (
    "document_id",
    "parent_id",
    "title",
    "tags",
    "mime",
    "metadata",
    "revision",
    "created_at",
    "updated_at",
    "updated_by",
)
_REVISION_FIELDS = ("revision", "title", "tags", "mime", "metadata", "written_at", "written_by")
_OPERATIONS = get_args(Operation)


@dataclass(frozen=True, slots=True)
class Entry:
    document: Document
    earlier: tuple[Revision, ...]
    file: str
    """Where the body stands in the folder."""

    def edited(self, body: str, at_us: int) -> Entry:
        """The same with a new body: what the manifest knew becomes its last earlier revision."""
        known = self.document
        last = Revision(
            document_id=known.document_id,
            revision=known.revision,
            title=known.title,
            tags=known.tags,
            mime=known.mime,
            metadata=known.metadata,
            written_at_us=known.updated_at_us,
            written_by=known.updated_by,
            operation=known.operation,
            content_chars=len(known.body),
            body=known.body,
        )
        document = replace(
            known,
            body=body,
            revision=known.revision + 1,
            updated_at_us=at_us,
            updated_by="",
            operation="import",
        )
        return Entry(document, (*self.earlier, last), self.file)


def header() -> bytes:
    return orjson.dumps(_HEADER) + b"\n"


def line(
    document: dict[str, Any], operation: str, file: str, earlier: list[dict[str, Any]]
) -> bytes:
    """One document as the tools answer it: itself, its newest operation, its revisions."""
    shown = {name: document[name] for name in _DOCUMENT_FIELDS}
    revisions = [
        {name: one[name] for name in _REVISION_FIELDS}
        | {"operation": one["operation"], "content": one["content"]}
        for one in earlier
    ]
    shown |= {
        "operation": operation,
        "file": file,
        "content": document["content"],
        "revisions": revisions,
    }
    return orjson.dumps(shown) + b"\n"


def is_manifest(path: Path) -> bool:
    """Ours, in a version we know; a file of that name may be anybody's."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(_HEADER_BYTES_MAX)
    try:
        found = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        return False
    if found.get("version") != _VERSION:
        raise InvalidArgument(
            f"{path} has version {found.get('version')!r}, this Zibaldone reads {_VERSION}."
        )
    return True


def entries(path: Path) -> Iterator[tuple[str, Entry | str]]:
    """Each line's name, and the document on it or what is wrong with it."""
    with path.open("rb") as file:
        file.readline()
        for number, text in enumerate(file, 2):
            name = f"{MANIFEST_NAME}, line {number}"
            try:
                yield name, _entry(orjson.loads(text))
            except orjson.JSONDecodeError as problem:
                yield name, f"not JSON: {problem}"
            except (KeyError, TypeError, ValueError) as problem:
                yield name, f"not a document as exported ({type(problem).__name__}: {problem})"


def _entry(found: dict[str, Any]) -> Entry:
    parent_id, file = found["parent_id"], found["file"]
    if not isinstance(parent_id, str | None) or not isinstance(file, str):
        raise TypeError("parent_id or file")
    state = _revision(found, found, found["updated_at"], found["updated_by"])
    document = Document(
        document_id=state.document_id,
        body=state.body,
        title=state.title,
        tags=state.tags,
        parent_id=parent_id,
        mime=state.mime,
        metadata=state.metadata,
        revision=state.revision,
        created_at_us=from_iso(found["created_at"]),
        updated_at_us=state.written_at_us,
        updated_by=state.written_by,
        operation=state.operation,
    )
    earlier = [
        _revision(found, one, one["written_at"], one["written_by"]) for one in found["revisions"]
    ]
    return Entry(document, tuple(earlier), file)


def _revision(document: dict[str, Any], one: dict[str, Any], at: str, by: str) -> Revision:
    texts = (document["document_id"], one["title"], one["mime"], one["content"], at, by)
    if not all(isinstance(text, str) for text in (*texts, *one["tags"])):
        raise TypeError("a text is missing")
    if not isinstance(one["metadata"], dict) or type(one["revision"]) is not int:
        raise TypeError("metadata or revision")
    if one["operation"] not in _OPERATIONS:
        raise ValueError(f"operation {one['operation']!r}")
    return Revision(
        document_id=document["document_id"],
        revision=one["revision"],
        title=one["title"],
        tags=tuple(one["tags"]),
        mime=one["mime"],
        metadata=one["metadata"],
        written_at_us=from_iso(at),
        written_by=by,
        operation=one["operation"],
        content_chars=len(one["content"]),
        body=one["content"],
    )
