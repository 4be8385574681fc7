"""recent_changes: what others did."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.keep.recent import recent_changes
from zibaldone.limits import RECENT_LIMIT_DEFAULT, RECENT_LIMIT_MAX
from zibaldone.model.instant import to_iso
from zibaldone.text import normalize
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class RecentChanges(Arguments):
    prefix: str = Field("", description="Only paths that start so")
    limit: int = Field(RECENT_LIMIT_DEFAULT, ge=1, le=RECENT_LIMIT_MAX)


class ChangedDocument(TypedDict):
    document_id: str
    title: str | None
    """None: the document is not there any more."""
    operation: str
    revision: int | None
    changed_at: str
    changed_by: str


class Changes(TypedDict):
    changes: list[ChangedDocument]
    truncated: bool


async def handle(call: Call, given: RecentChanges) -> Changes:
    prefix = normalize.prefix(given.prefix)
    changes, has_more = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: recent_changes(reader, prefix=prefix, limit=given.limit),
    )
    return {
        "changes": [
            {
                "document_id": change.entry.document_id,
                "title": change.title,
                "operation": change.entry.action,
                "revision": change.entry.revision,
                "changed_at": to_iso(change.entry.at_us),
                "changed_by": change.entry.principal,
            }
            for change in changes
        ],
        "truncated": has_more,
    }


TOOL = ToolSpec(
    name="recent_changes",
    title="Recent changes",
    description="List the documents that changed last, newest first: what was done, when, by whom.",
    arguments=RecentChanges,
    result=Changes,
    effect="read",
    handler=handle,
)
