"""documents.jsonl: every field and every revision of the documents beside it in a folder.

The first line says what the file is; each further line is one document with its history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import orjson

from zibaldone.errors import InvalidArgument
from zibaldone.model.document import Document, Operation, Revision
from zibaldone.model.instant import from_iso
from zibaldone.text.labels import labels_of

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

    def edited(self, body: str, at_us: int, metadata_bytes_max: int) -> Entry:
        """The same with a new body: what the manifest knew becomes its last earlier revision.

        Tags and metadata that came from its front matter follow the new one.
        """
        known = self.document
        before = labels_of(known.body, known.mime, metadata_bytes_max)
        after = labels_of(body, known.mime, metadata_bytes_max)
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
            title=after.title if before.title == known.title and after.title else known.title,
            tags=after.update_tags(known.tags, before),
            metadata=after.update_metadata(known.metadata, before),
            revision=known.revision + 1,
            updated_at_us=at_us,
            updated_by="",
            operation="import",
        )
        return Entry(document, (*self.earlier, last), self.file)


def header() -> bytes:
    return orjson.dumps(_HEADER) + b"\n"


def line(
    document: Mapping[str, Any], operation: str, file: str, earlier: Sequence[Mapping[str, Any]]
) -> bytes:
    """One document as the tools answer it: itself, its newest operation, its revisions."""
    fields = {name: document[name] for name in _DOCUMENT_FIELDS}
    revisions = [
        {name: revision[name] for name in _REVISION_FIELDS}
        | {"operation": revision["operation"], "content": revision["content"]}
        for revision in earlier
    ]
    fields |= {
        "operation": operation,
        "file": file,
        "content": document["content"],
        "revisions": revisions,
    }
    return orjson.dumps(fields) + b"\n"


def is_manifest(path: Path) -> bool:
    """Whether the file is a manifest; raises InvalidArgument for a version that is not known."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(_HEADER_BYTES_MAX)
    try:
        head = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        return False
    if head.get("version") != _VERSION:
        raise InvalidArgument(
            f"{path} has version {head.get('version')!r}; this Zibaldone reads {_VERSION}."
        )
    return True


def entries(path: Path) -> Iterator[tuple[str, Entry | str]]:
    """Each line: its name, and its document or what is wrong with it."""
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


def _entry(fields: dict[str, Any]) -> Entry:
    parent_id, file = fields["parent_id"], fields["file"]
    if not isinstance(parent_id, str | None) or not isinstance(file, str):
        raise TypeError("parent_id and file must be text")
    state = _revision(fields, fields, fields["updated_at"], fields["updated_by"])
    document = Document(
        document_id=state.document_id,
        body=state.body,
        title=state.title,
        tags=state.tags,
        parent_id=parent_id,
        mime=state.mime,
        metadata=state.metadata,
        revision=state.revision,
        created_at_us=from_iso(fields["created_at"]),
        updated_at_us=state.written_at_us,
        updated_by=state.written_by,
        operation=state.operation,
    )
    earlier = [
        _revision(fields, revision, revision["written_at"], revision["written_by"])
        for revision in fields["revisions"]
    ]
    return Entry(document, tuple(earlier), file)


def _revision(document: dict[str, Any], fields: dict[str, Any], at: str, by: str) -> Revision:
    texts = (document["document_id"], fields["title"], fields["mime"], fields["content"], at, by)
    if not all(isinstance(text, str) for text in (*texts, *fields["tags"])):
        raise TypeError("id, title, tags, mime, content and times must be text")
    if not isinstance(fields["metadata"], dict) or type(fields["revision"]) is not int:
        raise TypeError("metadata must be an object and revision a number")
    if fields["operation"] not in _OPERATIONS:
        raise ValueError(f"operation {fields['operation']!r}")
    return Revision(
        document_id=document["document_id"],
        revision=fields["revision"],
        title=fields["title"],
        tags=tuple(fields["tags"]),
        mime=fields["mime"],
        metadata=fields["metadata"],
        written_at_us=from_iso(at),
        written_by=by,
        operation=fields["operation"],
        content_chars=len(fields["content"]),
        body=fields["content"],
    )
