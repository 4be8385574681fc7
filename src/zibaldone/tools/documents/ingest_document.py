"""ingest_document: make a document of a file or a URL."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field

from zibaldone.errors import InvalidArgument
from zibaldone.keep.create import NewDocument, create
from zibaldone.model.extracted import Extracted
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import Tags, Written
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class IngestDocument(Arguments):
    source: str | None = Field(
        None, description="File path or URL; only where the operator allowed it"
    )
    text: str | None = Field(None, description="Or the text itself")
    path: str | None = Field(
        None,
        validation_alias=AliasChoices("path", "document_id"),
        description="Where to keep it; default 'ingested/<name>'",
    )
    title: str = ""
    tags: Tags = []
    metadata: dict[str, Any] = {}


class Ingested(Written):
    content_length: int


async def handle(call: Call, given: IngestDocument) -> Ingested:
    if (given.source is None) == (given.text is None):
        raise InvalidArgument("Give source or text, one of them.", field="source")
    if given.text is not None:
        if given.path is None:
            raise InvalidArgument("A text needs a path to be kept at.", field="path")
        extracted, name = Extracted(given.text, "", "text/markdown"), given.path
        origin: dict[str, Any] = {}
    else:
        await call.progress(0, 3, "fetching")
        fetched = await call.runtime.fetcher.fetch(given.source or "")
        await call.progress(1, 3, "extracting the text")
        extracted = await call.runtime.converter.convert(
            fetched.data, name=fetched.name, mime=fetched.mime
        )
        name = fetched.name
        await call.progress(2, 3, "keeping it")
        origin = {"origin": fetched.origin}
    document_id = normalize.document_id(given.path or f"ingested/{name}")
    call.require_document(document_id)  # of a path that is made from the file's name
    new = NewDocument(
        document_id=document_id,
        body=extracted.text,
        title=given.title or extracted.title[:200],
        tags=tuple(given.tags),
        mime=extracted.mime,
        metadata={**origin, **given.metadata},
    )
    limits = call.runtime.limits
    document, is_new = await call.runtime.store.write(
        call.principal.tenant, lambda writer: create(writer, new, call.actor, limits, upsert=True)
    )
    return {
        "id": document_id,
        "status": "created" if is_new else "updated",
        "revision": document.revision,
        "content_length": len(extracted.text),
    }


TOOL = ToolSpec(
    name="ingest_document",
    title="Ingest a file",
    description=(
        "Turn a file or URL (Markdown, HTML, PDF, DOCX, text) the operator allowed into a document."
    ),
    arguments=IngestDocument,
    result=Ingested,
    effect="write",
    handler=handle,
    document=lambda given: given.path,
    request_bytes_max=None,
    idempotent=True,
    reports_progress=True,
)
