"""document_history, document_revision, document_diff, restore_document: earlier revisions.

/mcp-desk, /mcp-all, REST and the command line offer them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.keep import revisions
from zibaldone.limits import HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX, REVISION_MAX
from zibaldone.model.document import Operation, Revision
from zibaldone.model.instant import to_iso
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_JSON_BYTES_MAX = 6
"""Of one character. A difference has a million of them at most."""


class DocumentHistory(Arguments):
    path: DocumentPath
    limit: int = Field(HISTORY_LIMIT_DEFAULT, ge=1, le=HISTORY_LIMIT_MAX)
    before: int | None = Field(
        None, ge=0, le=REVISION_MAX, description="next_before of the page before"
    )


class DocumentRevision(Arguments):
    path: DocumentPath
    revision: int = Field(ge=0, le=REVISION_MAX)


class DocumentDiff(Arguments):
    path: DocumentPath
    older: int = Field(ge=0, le=REVISION_MAX)
    newer: int = Field(ge=0, le=REVISION_MAX)


class RestoreDocument(Arguments):
    path: DocumentPath
    revision: int = Field(ge=0, le=REVISION_MAX, description="The revision to bring back")
    last_known_revision: LastKnownRevision = None


class RevisionInfo(TypedDict):
    revision: int
    operation: Operation
    written_at: str
    written_by: str
    title: str
    content_length: int


class History(TypedDict):
    document_id: str
    revisions: list[RevisionInfo]
    next_before: int | None


class WholeRevision(RevisionInfo):
    document_id: str
    tags: list[str]
    mime: str
    metadata: Mapping[str, Any]
    content: str


class Diff(TypedDict):
    document_id: str
    older: int
    newer: int
    diff: str
    truncated: bool
    """There are more changes than are shown."""


class Restored(Written):
    restored_from: int


def _revision_info(revision: Revision) -> RevisionInfo:
    return {
        "revision": revision.revision,
        "operation": revision.operation,
        "written_at": to_iso(revision.written_at_us),
        "written_by": revision.written_by,
        "title": revision.title,
        "content_length": revision.content_chars,
    }


async def handle_history(call: Call, given: DocumentHistory) -> History:
    document_id = normalize.document_id(given.path)
    page, next_before = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: revisions.history(
            reader, document_id, before=given.before, limit=given.limit
        ),
    )
    return {
        "document_id": document_id,
        "revisions": [_revision_info(revision) for revision in page],
        "next_before": next_before,
    }


async def handle_revision(call: Call, given: DocumentRevision) -> WholeRevision:
    document_id = normalize.document_id(given.path)
    revision = await call.read_texts(
        lambda reader: revisions.revision(reader, document_id, given.revision),
        chars_of=lambda revision: len(revision.body),
        chars_read=lambda reader: revisions.revision_chars(reader, document_id, given.revision),
    )
    return {
        "document_id": document_id,
        **_revision_info(revision),
        "tags": list(revision.tags),
        "mime": revision.mime,
        "metadata": revision.metadata,
        "content": revision.body,
    }


async def handle_diff(call: Call, given: DocumentDiff) -> Diff:
    document_id = normalize.document_id(given.path)
    difference = await call.read_texts(
        lambda reader: revisions.diff(reader, document_id, given.older, given.newer),
        chars_of=lambda difference: _JSON_BYTES_MAX * len(difference.text),
        chars_read=lambda reader: sum(
            revisions.revision_chars(reader, document_id, number)
            for number in (given.older, given.newer)
        ),
    )
    return {
        "document_id": document_id,
        "older": given.older,
        "newer": given.newer,
        "diff": difference.text,
        "truncated": difference.truncated,
    }


async def handle_restore(call: Call, given: RestoreDocument) -> Restored:
    document_id = normalize.document_id(given.path)
    edit = revisions.restoring(
        document_id,
        given.revision,
        call.actor,
        last_known_revision=given.last_known_revision,
    )
    document, _ = await call.write(edit)
    return {
        "id": document_id,
        "status": "restored",
        "revision": document.revision,
        "restored_from": given.revision,
    }


HISTORY = ToolSpec(
    name="document_history",
    title="History of a document",
    description="List a document's revisions, newest first.",
    arguments=DocumentHistory,
    result=History,
    effect="read",
    handler=handle_history,
)
REVISION = ToolSpec(
    name="document_revision",
    title="One revision",
    description="Read one revision of a document, whole.",
    arguments=DocumentRevision,
    result=WholeRevision,
    effect="read",
    handler=handle_revision,
    is_long=True,
)
DIFF = ToolSpec(
    name="document_diff",
    title="Difference of two revisions",
    description="Show what changed between two revisions, as a unified diff.",
    arguments=DocumentDiff,
    result=Diff,
    effect="read",
    handler=handle_diff,
    is_long=True,
)
RESTORE = ToolSpec(
    name="restore_document",
    title="Restore a revision",
    description="Make an earlier revision the newest; also brings back a deleted document.",
    arguments=RestoreDocument,
    result=Restored,
    effect="write",
    handler=handle_restore,
    document=lambda given: given.path,
)
