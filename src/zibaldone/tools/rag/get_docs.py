"""rag.get_docs: documents by id."""

from __future__ import annotations

from pydantic import Field

from zibaldone.limits import RAG_IDS_MAX, RAG_SECONDS_MAX
from zibaldone.model.document import Document
from zibaldone.store.port import Reader
from zibaldone.tools.answer import fit_text, size_bytes
from zibaldone.tools.rag.fields import Clock, DocId, bytes_left, stored_id
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec

_REST: Answer = {"truncated": False, "stats": {"ms": 0.0}}
"""What an answer has beside its lists."""


class DocReturn(Arguments):
    include_body: bool = True
    include_metadata: bool = True


class GetDocs(Arguments):
    doc_ids: list[DocId] = Field(min_length=1, max_length=RAG_IDS_MAX)
    return_: DocReturn = Field(DocReturn(), validation_alias="return")


async def handle(call: Call, given: GetDocs) -> Answer:
    clock = Clock()
    answer = await call.runtime.store.read(
        call.principal.tenant, lambda reader: _read(reader, given), seconds_max=clock.left_s
    )
    return {**answer, "stats": {"ms": clock.ms}}


def _read(reader: Reader, given: GetDocs) -> Answer:
    """One after the other, so that no more is held at once than the answer may have."""
    docs: list[Answer] = []
    missing: list[str] = []
    wanted = _once_each(given.doc_ids)
    names = list(wanted.values())
    source_names = reader.chunks.source_names(wanted)
    # As if all were left out: a name is in one of the lists, or with its document among the docs.
    left_bytes = bytes_left({"docs": [], "missing": [], "left_out": names, **_REST})
    for position, (doc_id, name) in enumerate(wanted.items()):
        document = reader.documents.get(doc_id)
        if document is None or not document.is_live:
            missing.append(name)
            continue
        doc = _shown(document, source_names[doc_id], given.return_)
        taken_bytes = size_bytes(doc)
        if taken_bytes > left_bytes:
            left_out = names[position:]
            if not docs and "body" in doc:  # it would never fit
                docs.append(_cut(doc, left_bytes))
                left_out = names[position + 1 :]
            return {"docs": docs, "missing": missing, "left_out": left_out, "truncated": True}
        docs.append(doc)
        left_bytes -= taken_bytes
    return {"docs": docs, "missing": missing, "truncated": False}


def _once_each(given: list[str]) -> dict[str, str]:
    """Each document that is asked for, with the first of the names it is asked for by."""
    wanted: dict[str, str] = {}
    for name in given:
        wanted.setdefault(stored_id(name) or name, name)
    return wanted


def _cut(doc: Answer, bytes_max: int) -> Answer:
    rest_bytes = size_bytes({**doc, "body": "", "body_truncated": True})
    return {**doc, "body": fit_text(doc["body"], bytes_max - rest_bytes), "body_truncated": True}


def _shown(document: Document, source_name: str, include: DocReturn) -> Answer:
    doc: Answer = {
        "doc_id": document.document_id,
        "source_id": document.source_id,
        "source_name": source_name,
        "pk_json": document.pk or {"document_id": document.document_id},
        "title": document.title,
    }
    if include.include_body:
        doc["body"] = document.body
    if include.include_metadata:
        doc["metadata"] = document.metadata
    return doc


TOOL = ToolSpec(
    name="rag.get_docs",
    title="Documents by id",
    description=(
        "Whole documents by id, in the order asked for; unknown ids are named, and those that no "
        "longer fit."
    ),
    arguments=GetDocs,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
