"""document_history, document_diff, restore_document: the way a document came, and the way back.

Not listed on the MCP profiles of the seed; REST and the command line use them.
"""

from __future__ import annotations

from pydantic import Field

from zibaldone.access.decide import require_document
from zibaldone.keep import revisions
from zibaldone.limits import HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX, REVISION_MAX
from zibaldone.model.document import Revision
from zibaldone.model.instant import to_iso
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, LastKnownRevision, written
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec


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


def _shown(revision: Revision) -> Answer:
    return {
        "revision": revision.revision,
        "operation": revision.operation,
        "written_at": to_iso(revision.written_at_us),
        "written_by": revision.written_by,
        "title": revision.title,
        "content_length": revision.content_chars,
    }


async def handle_history(call: Call, given: DocumentHistory) -> Answer:
    document_id = normalize.document_id(given.path)
    page, next_before = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: revisions.history(
            reader, document_id, before=given.before, limit=given.limit
        ),
    )
    return {
        "document_id": document_id,
        "revisions": [_shown(revision) for revision in page],
        "next_before": next_before,
    }


async def handle_revision(call: Call, given: DocumentRevision) -> Answer:
    document_id = normalize.document_id(given.path)
    found = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: revisions.revision(reader, document_id, given.revision),
    )
    return {
        "document_id": document_id,
        **_shown(found),
        "tags": list(found.tags),
        "mime": found.mime,
        "metadata": found.metadata,
        "content": found.body,
    }


async def handle_diff(call: Call, given: DocumentDiff) -> Answer:
    document_id = normalize.document_id(given.path)
    text = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: revisions.diff(reader, document_id, given.older, given.newer),
    )
    return {
        "document_id": document_id,
        "older": given.older,
        "newer": given.newer,
        "diff": text,
    }


async def handle_restore(call: Call, given: RestoreDocument) -> Answer:
    document_id = normalize.document_id(given.path)
    require_document(call.principal, document_id)
    document = await call.runtime.store.write(
        call.principal.tenant,
        lambda writer: revisions.restore(
            writer,
            document_id,
            given.revision,
            call.actor,
            last_known_revision=given.last_known_revision,
        ),
    )
    return written(document, "restored", restored_from=given.revision)


HISTORY = ToolSpec(
    name="document_history",
    title="History of a document",
    description="List a document's revisions, newest first.",
    arguments=DocumentHistory,
    effect="read",
    handler=handle_history,
)
REVISION = ToolSpec(
    name="document_revision",
    title="One revision",
    description="Read one revision of a document, whole.",
    arguments=DocumentRevision,
    effect="read",
    handler=handle_revision,
)
DIFF = ToolSpec(
    name="document_diff",
    title="Difference of two revisions",
    description="Show what changed between two revisions, as a unified diff.",
    arguments=DocumentDiff,
    effect="read",
    handler=handle_diff,
)
RESTORE = ToolSpec(
    name="restore_document",
    title="Restore a revision",
    description="Make an earlier revision the newest; also brings back a deleted document.",
    arguments=RestoreDocument,
    effect="write",
    handler=handle_restore,
)
