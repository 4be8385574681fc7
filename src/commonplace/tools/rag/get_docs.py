"""rag.get_docs: documents by id."""

from __future__ import annotations

from pydantic import Field

from commonplace.limits import RAG_IDS_MAX, RAG_RESPONSE_BYTES_MAX, RAG_SECONDS_MAX
from commonplace.model.document import Document
from commonplace.store.port import Reader
from commonplace.tools.answer import fit_items
from commonplace.tools.rag.fields import Clock
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec


class DocReturn(Arguments):
    include_body: bool = True
    include_metadata: bool = True


class GetDocs(Arguments):
    doc_ids: list[str] = Field(min_length=1, max_length=RAG_IDS_MAX)
    return_: DocReturn = Field(DocReturn(), validation_alias="return")


async def handle(call: Call, given: GetDocs) -> Answer:
    clock = Clock()
    wanted = list(dict.fromkeys(given.doc_ids))

    def read_all(reader: Reader) -> tuple[dict[str, Document], dict[int, str]]:
        found = {name: reader.documents.get(name) for name in wanted}
        live = {name: one for name, one in found.items() if one is not None and one.is_live}
        return live, {source.source_id: source.name for source in reader.lexical.sources()}

    live, source_names = await call.runtime.store.read(
        call.principal.scope, read_all, seconds_max=RAG_SECONDS_MAX
    )
    found = [
        _shown(live[name], source_names.get(live[name].source_id, ""), given.return_)
        for name in wanted
        if name in live
    ]
    kept = fit_items(found, RAG_RESPONSE_BYTES_MAX)
    return {
        "docs": kept,
        "missing": [name for name in wanted if name not in live],
        "truncated": len(kept) < len(found),
        "stats": {"ms": clock.ms},
    }


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
    description="Whole documents by id, in the order asked for; unknown ids are named.",
    arguments=GetDocs,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
