"""rag.get_chunks: chunks by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.limits import CHUNK_RESPONSE_BYTES_MAX, RAG_IDS_MAX, RAG_SECONDS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.point import point_id
from zibaldone.tools.answer import fit_items
from zibaldone.tools.rag.fields import CallStats, ChunkId, Clock, bytes_left, place_of
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class ChunkReturn(Arguments):
    include_title: bool = True
    include_doc_metadata: bool = True
    include_chunk_metadata: bool = True


class GetChunks(Arguments):
    chunk_ids: list[ChunkId] = Field(min_length=1, max_length=RAG_IDS_MAX)
    return_: ChunkReturn = Field(ChunkReturn(), validation_alias="return")


class ChunkInfo(TypedDict):
    chunk_index: int
    start: int
    """Of the chunk in the body, in characters."""
    heading: str
    point_id: str


class ChunkText(TypedDict):
    chunk_id: str
    doc_id: str
    title: NotRequired[str]
    body: str
    doc_metadata: NotRequired[Mapping[str, Any]]
    chunk_metadata: NotRequired[ChunkInfo]


class Chunks(TypedDict):
    chunks: list[ChunkText]
    missing: list[str]
    left_out: NotRequired[list[str]]
    truncated: bool
    stats: CallStats


async def handle(call: Call, given: GetChunks) -> Chunks:
    clock = Clock()
    wanted = _once_each(given.chunk_ids)
    views = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: reader.chunks.views_at(wanted),
        seconds_max=clock.left_s,
    )
    present = [place for place in wanted if place in views]
    answer: Chunks = {
        "chunks": [],
        "missing": [name for place, name in wanted.items() if place not in views],
        "truncated": False,
        "stats": {"ms": clock.ms},
    }
    # As if all were left out: at most, each of them is either there or named there.
    names = [wanted[place] for place in present]
    left_bytes = bytes_left({**answer, "left_out": names})
    kept = fit_items(
        [_render(views[place], given.return_) for place in present],
        min(CHUNK_RESPONSE_BYTES_MAX, left_bytes),
    )
    answer["chunks"] = kept
    if len(kept) < len(present):
        answer["truncated"] = True
        answer["left_out"] = names[len(kept) :]
    answer["stats"] = {"ms": clock.ms}
    return answer


def _once_each(given: list[str]) -> dict[tuple[str, int], str]:
    """Each chunk that is asked for, with the first of the names it is asked for by."""
    wanted: dict[tuple[str, int], str] = {}
    for name in given:
        document_id, number = place_of(name)
        wanted.setdefault((document_id or name, number), name)
    return wanted


def _render(view: ChunkView, include: ChunkReturn) -> ChunkText:
    chunk: ChunkText = {
        "chunk_id": view.chunk_id,
        "doc_id": view.document_id,
        "body": view.text,
    }
    if include.include_title:
        chunk["title"] = view.title
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
    title="Chunks by id",
    description=(
        "The text of chunks by id, in the order asked for; unknown ids are named, and "
        "those that no longer fit."
    ),
    arguments=GetChunks,
    result=Chunks,
    effect="read",
    handler=handle,
    seconds_max=RAG_SECONDS_MAX,
)
