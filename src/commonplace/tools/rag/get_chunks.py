"""rag.get_chunks: passages by id."""

from __future__ import annotations

from pydantic import Field

from commonplace.limits import CHUNK_RESPONSE_BYTES_MAX, RAG_IDS_MAX, RAG_SECONDS_MAX
from commonplace.model.point import point_id
from commonplace.store.port import PassageView
from commonplace.tools.answer import fit_items
from commonplace.tools.rag.fields import Clock, place_of
from commonplace.tools.spec import Answer, Arguments, Call, ToolSpec


class ChunkReturn(Arguments):
    include_title: bool = True
    include_doc_metadata: bool = True
    include_chunk_metadata: bool = True


class GetChunks(Arguments):
    chunk_ids: list[str] = Field(min_length=1, max_length=RAG_IDS_MAX)
    return_: ChunkReturn = Field(ChunkReturn(), validation_alias="return")


async def handle(call: Call, given: GetChunks) -> Answer:
    clock = Clock()
    places = {chunk_id: place_of(chunk_id) for chunk_id in given.chunk_ids}
    views = await call.runtime.store.read(
        call.principal.scope,
        lambda reader: reader.lexical.passages_at(places.values()),
        seconds_max=clock.left_s,
    )
    present = [chunk_id for chunk_id, place in places.items() if place in views]
    kept = fit_items(
        [_shown(views[places[chunk_id]], given.return_) for chunk_id in present],
        CHUNK_RESPONSE_BYTES_MAX,
    )
    answer: Answer = {
        "chunks": kept,
        "missing": [chunk_id for chunk_id, place in places.items() if place not in views],
        "truncated": len(kept) < len(present),
        "stats": {"ms": clock.ms},
    }
    if answer["truncated"]:
        answer["left_out"] = present[len(kept) :]
    return answer


def _shown(view: PassageView, include: ChunkReturn) -> Answer:
    chunk: Answer = {"chunk_id": view.chunk_id, "doc_id": view.document_id}
    if include.include_title:
        chunk["title"] = view.title
    chunk["body"] = view.text
    if include.include_doc_metadata:
        chunk["doc_metadata"] = view.metadata
    if include.include_chunk_metadata:
        chunk["chunk_metadata"] = {
            "chunk_index": view.chunk_index,
            "start": view.start,
            "heading": view.heading,
            "point_id": point_id(view.document_id, view.chunk_index),
        }
    return chunk


TOOL = ToolSpec(
    name="rag.get_chunks",
    title="Passages by id",
    description=(
        "The text of passages by chunk id, in the order asked for; unknown ids are named, and "
        "those that no longer fit."
    ),
    arguments=GetChunks,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
