"""import_documents, preview_import: bring in documents with the revisions and times they had.

Their arguments are values of the program, not JSON: only a command of this process calls them.
"""

from __future__ import annotations

from typing import TypedDict

from zibaldone.keep import imports
from zibaldone.limits import IMPORT_SECONDS_MAX
from zibaldone.model.incoming import Existing, Imported, Incoming
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class ImportDocuments(Arguments):
    batch: list[Incoming]
    existing: Existing = "keep_edited"


class ImportedDocuments(TypedDict):
    results: list[Imported]


async def write(call: Call, given: ImportDocuments) -> ImportedDocuments:
    results = await imports.write_batch(
        call.runtime.store,
        call.principal.tenant,
        given.batch,
        call.actor,
        call.runtime.limits,
        given.existing,
    )
    return {"results": results}


async def preview(call: Call, given: ImportDocuments) -> ImportedDocuments:
    limits, actor = call.runtime.limits, call.actor
    results = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: imports.preview_import(reader, given.batch, actor, limits, given.existing),
    )
    return {"results": results}


IMPORT = ToolSpec(
    name="import_documents",
    title="Import documents",
    description="Store documents from elsewhere in one transaction, with their history.",
    arguments=ImportDocuments,
    result=ImportedDocuments,
    effect="write",
    handler=write,
    seconds_max=IMPORT_SECONDS_MAX,
    is_local=True,
)

PREVIEW = ToolSpec(
    name="preview_import",
    title="Preview an import",
    description="Say what import_documents would do with the same documents.",
    arguments=ImportDocuments,
    result=ImportedDocuments,
    effect="read",
    handler=preview,
    seconds_max=IMPORT_SECONDS_MAX,
    is_local=True,
)
