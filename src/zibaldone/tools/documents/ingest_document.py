"""ingest_document: make a document of a file or a URL."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import AliasChoices, Field

from zibaldone.errors import DeadlineExceeded, InvalidArgument
from zibaldone.keep.create import NewDocument, creation
from zibaldone.model.extracted import Extracted
from zibaldone.text import normalize
from zibaldone.text.labels import labels_of
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
        extracted, name, origin_url = await _extracted(call, given.source or "")
        await call.progress(2, 3, "keeping it")
        origin = {"origin": origin_url}
    document_id = normalize.document_id(given.path or f"ingested/{name}")
    call.require_document(document_id)  # of a path that is made from the file's name
    limits = call.runtime.limits
    labels = labels_of(extracted.text, extracted.mime, limits.metadata_bytes_max)
    new = NewDocument(
        document_id=document_id,
        body=extracted.text,
        title=given.title or extracted.title[:200],
        tags=tuple(given.tags) or labels.tags,
        mime=extracted.mime,
        metadata={**labels.metadata, **origin, **given.metadata},
    )
    edit = creation(new, call.actor, limits, upsert=True)
    document, change = await call.write(edit)
    return {
        "id": document_id,
        "status": "created" if change.is_new else "updated",
        "revision": document.revision,
        "content_length": len(extracted.text),
    }


async def _extracted(call: Call, source: str) -> tuple[Extracted, str, str]:
    """The text of a file, its name and where it is from, all in the time for one file."""
    runtime, seconds_max = call.runtime, call.runtime.limits.ingest_seconds_max
    try:
        async with asyncio.timeout(seconds_max):
            await call.runtime.sources.hold()
            await call.progress(0, 3, "fetching")
            fetched = await runtime.fetcher.fetch(source)
            await call.progress(1, 3, "extracting the text")
            extracted = await runtime.converter.convert(
                fetched.data, name=fetched.name, mime=fetched.mime
            )
            return extracted, fetched.name, fetched.origin
    except TimeoutError:
        raise DeadlineExceeded(
            f"The source was not read and converted within {seconds_max:g} seconds; nothing was "
            "stored. Split it, or save it as text or Markdown.",
            seconds_max=seconds_max,
        ) from None


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
    seconds_max=lambda limits: limits.ingest_seconds_max + limits.tool_seconds_max,
    idempotent=True,
    reports_progress=True,
)
