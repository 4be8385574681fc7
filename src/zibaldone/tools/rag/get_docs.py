"""rag.get_docs: documents by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.limits import RAG_IDS_MAX, RAG_SECONDS_MAX
from zibaldone.model.document import Document
from zibaldone.store.port import Reader
from zibaldone.tools.answer import fit_text, size_bytes
from zibaldone.tools.rag.fields import CallStats, Clock, DocId, bytes_left, stored_id
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class DocReturn(Arguments):
    include_body: bool = True
    include_metadata: bool = True


class GetDocs(Arguments):
    doc_ids: list[DocId] = Field(min_length=1, max_length=RAG_IDS_MAX)
    return_: DocReturn = Field(DocReturn(), validation_alias="return")


class Doc(TypedDict):
    doc_id: str
    source_id: int
    source_name: str
    pk_json: Mapping[str, Any]
    title: str
    body: NotRequired[str]
    body_truncated: NotRequired[bool]
    metadata: NotRequired[Mapping[str, Any]]


class Docs(TypedDict):
    docs: list[Doc]
    missing: list[str]
    left_out: NotRequired[list[str]]
    truncated: bool
    stats: CallStats


async def handle(call: Call, given: GetDocs) -> Docs:
    clock = Clock()
    answer = await call.read_texts(
        lambda reader: _read(reader, given), _chars, seconds_left=lambda: clock.left_s
    )
    answer["stats"] = {"ms": clock.ms}
    return answer


def _chars(answer: Docs) -> int:
    return sum(len(doc.get("body", "")) for doc in answer["docs"])


def _read(reader: Reader, given: GetDocs) -> Docs:
    """One after the other, so that no more is held at once than the answer may have."""
    docs: list[Doc] = []
    missing: list[str] = []
    answer: Docs = {"docs": docs, "missing": missing, "truncated": False, "stats": {"ms": 0.0}}
    wanted = _once_each(given.doc_ids)
    names = list(wanted.values())
    source_names = reader.chunks.source_names(wanted)
    # As if all were left out: a name is in one of the lists, or with its document among the docs.
    left_bytes = bytes_left({**answer, "left_out": names})
    for position, (doc_id, name) in enumerate(wanted.items()):
        document = reader.documents.get(doc_id)
        if document is None or not document.is_live:
            missing.append(name)
            continue
        doc = _render(document, source_names[doc_id], given.return_)
        taken_bytes = size_bytes(doc)
        if taken_bytes > left_bytes:
            left_out = names[position:]
            if not docs and "body" in doc:  # it would never fit
                docs.append(_cut(doc, left_bytes))
                left_out = names[position + 1 :]
            answer["left_out"] = left_out
            answer["truncated"] = True
            return answer
        docs.append(doc)
        left_bytes -= taken_bytes
    return answer


def _once_each(given: list[str]) -> dict[str, str]:
    """Each document that is asked for, with the first of the names it is asked for by."""
    wanted: dict[str, str] = {}
    for name in given:
        wanted.setdefault(stored_id(name) or name, name)
    return wanted


def _cut(doc: Doc, bytes_max: int) -> Doc:
    rest: Doc = {**doc, "body": "", "body_truncated": True}
    rest_bytes = size_bytes(rest)
    return {**rest, "body": fit_text(doc["body"], bytes_max - rest_bytes)}


def _render(document: Document, source_name: str, include: DocReturn) -> Doc:
    doc: Doc = {
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
    result=Docs,
    effect="read",
    handler=handle,
    is_long=True,
    seconds_max=RAG_SECONDS_MAX,
)
