"""show_usage: what each namespace holds, and its quotas. For the operator's own process only."""

from __future__ import annotations

from typing_extensions import TypedDict

from zibaldone.tools.spec import Arguments, Call, ToolSpec


class ShowUsage(Arguments):
    pass


class Quotas(TypedDict):
    documents: int | None
    revisions: int | None
    bytes: int | None


class Held(TypedDict):
    namespace: str
    documents: int
    revisions: int
    bytes: int


class Usage(TypedDict):
    namespaces: list[Held]
    quotas: Quotas
    """Of each namespace; None: there is none."""


async def handle(call: Call, given: ShowUsage) -> Usage:
    del given
    held = await call.runtime.store.upkeep(lambda work: work.usage.all(), write=False)
    limits = call.runtime.limits
    return {
        "namespaces": [
            {
                "namespace": each.namespace,
                "documents": each.documents,
                "revisions": each.revisions,
                "bytes": each.bytes,
            }
            for each in held
        ],
        "quotas": {
            "documents": limits.namespace_documents_max,
            "revisions": limits.namespace_revisions_max,
            "bytes": limits.namespace_bytes_max,
        },
    }


TOOL = ToolSpec(
    name="show_usage",
    title="Show what namespaces hold",
    description="How many documents, revisions and bytes each namespace holds, and its quotas.",
    arguments=ShowUsage,
    result=Usage,
    effect="admin",
    handler=handle,
    is_local=True,
)
