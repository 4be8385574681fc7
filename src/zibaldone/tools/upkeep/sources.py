"""list_sources, source_chunking, set_source_chunking: for the operator's own process only."""

from __future__ import annotations

import math
import time
from typing import NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import Ambiguous, InvalidArgument, NotFound, StorageCorrupt
from zibaldone.index.recut import change_chunking
from zibaldone.model.chunking import Chunking, CutBy
from zibaldone.model.instant import to_iso
from zibaldone.model.source import PULLED
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Source
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class ListSources(Arguments):
    pass


class SourceChunking(Arguments):
    source: str
    namespace: str | None = Field(
        None, description="Needed where several namespaces have a source of that name"
    )


class SetSourceChunking(SourceChunking):
    by: CutBy | None = Field(None, description="By structure, or windows of one size")
    size_chars: int | None = None
    overlap_chars: int | None = None
    minimum_chars: int | None = None


class ChunkingInfo(TypedDict):
    by: CutBy
    size_chars: NotRequired[int]
    overlap_chars: NotRequired[int]
    minimum_chars: NotRequired[int]


class SourceInfo(TypedDict):
    source: str
    namespace: str
    source_id: int
    kind: str
    enabled: bool
    documents: int
    chunks: int
    chunking: ChunkingInfo | None
    is_cut: bool
    problem: str | None
    last_sync: NotRequired[str | None]
    """Of a source that is a database."""


class Sources(TypedDict):
    sources: list[SourceInfo]


class ChunkingState(TypedDict):
    source: str
    namespace: str
    chunking: ChunkingInfo
    is_cut: bool
    """False: not all documents are cut like this yet."""


class ChunkingChanged(ChunkingState):
    documents: int
    changed: int
    new_chunks: int
    seconds: float


async def handle_list(call: Call, given: ListSources) -> Sources:
    del given
    return {"sources": [_source_info(source) for source in await _all(call.runtime.store)]}


async def handle_show(call: Call, given: SourceChunking) -> ChunkingState:
    source = _named(await _all(call.runtime.store), given.source, given.namespace)
    chunking = _chunking_info(_usable(source))
    return {**_place(source), "chunking": chunking, "is_cut": source.is_cut}


async def handle_set(call: Call, given: SetSourceChunking) -> ChunkingChanged:
    started_s = time.monotonic()
    source = _named(await _all(call.runtime.store), given.source, given.namespace)
    wanted = _wanted(source, given)
    done = 0

    async def report(count: int) -> None:
        nonlocal done
        done += count
        await call.progress(done, source.documents, "chunking documents")

    recut = await change_chunking(call.runtime.store, source.source_id, wanted, report)
    return {
        **_place(source),
        "chunking": _chunking_info(wanted),
        "is_cut": True,
        "documents": recut.documents,
        "changed": recut.changed,
        "new_chunks": recut.chunks,
        "seconds": round(time.monotonic() - started_s, 3),
    }


def _wanted(source: Source, given: SetSourceChunking) -> Chunking:
    """The chunking asked for; sizes that are not given stay as they are, or get their defaults."""
    sizes = given.model_dump(
        include={"size_chars", "overlap_chars", "minimum_chars"}, exclude_none=True
    )
    by = given.by or _usable(source).by
    if by == "structure":
        if sizes:
            raise InvalidArgument(
                f"{source.name!r} is cut by structure; to set sizes, choose by size.", field="by"
            )
        return Chunking()
    current = source.chunking
    if current is not None and current.by == "size" and "size_chars" not in sizes:
        sizes = {**current.as_dict(), **sizes}
        del sizes["by"]
    return Chunking.by_size(**sizes)


async def _all(store: Store) -> list[Source]:
    return await store.upkeep(lambda work: work.sources.all(), write=False)


def _named(known: list[Source], name: str, namespace: str | None) -> Source:
    named = [
        source for source in known if source.name == name and namespace in (None, source.namespace)
    ]
    if not named:
        raise NotFound(f"There is no source {name!r}. 'zibaldone sources' lists them.", source=name)
    if len(named) > 1:
        namespaces = sorted(source.namespace for source in named)
        raise Ambiguous(
            f"Several namespaces have a source {name!r}: {', '.join(namespaces)}. Add one.",
            source=name,
            namespaces=namespaces,
        )
    return named[0]


def _usable(source: Source) -> Chunking:
    if source.chunking is None:
        raise StorageCorrupt(
            f"The definition of the source {source.name!r} is invalid: {source.problem} "
            "Set it again by structure or by size.",
            source=source.name,
        )
    return source.chunking


class _Place(TypedDict):
    source: str
    namespace: str


def _place(source: Source) -> _Place:
    return {"source": source.name, "namespace": source.namespace}


def _chunking_info(chunking: Chunking) -> ChunkingInfo:
    return cast("ChunkingInfo", chunking.as_dict())


def _source_info(source: Source) -> SourceInfo:
    info: SourceInfo = {
        "source": source.name,
        "namespace": source.namespace,
        "source_id": source.source_id,
        "kind": source.kind,
        "enabled": source.enabled,
        "documents": source.documents,
        "chunks": source.chunks,
        "chunking": None if source.chunking is None else _chunking_info(source.chunking),
        "is_cut": source.is_cut,
        "problem": source.problem or None,
    }
    if source.kind == PULLED:
        synced_us = source.last_sync_at_us
        info["last_sync"] = None if synced_us is None else to_iso(synced_us)
    return info


LIST = ToolSpec(
    name="list_sources",
    title="List sources",
    description="List the sources of documents in all namespaces, and how each is chunked.",
    arguments=ListSources,
    result=Sources,
    effect="admin",
    handler=handle_list,
    is_local=True,
)
SHOW = ToolSpec(
    name="source_chunking",
    title="Show a source's chunking",
    description="Show how the documents of a source are chunked.",
    arguments=SourceChunking,
    result=ChunkingState,
    effect="admin",
    handler=handle_show,
    is_local=True,
)
SET = ToolSpec(
    name="set_source_chunking",
    title="Change a source's chunking",
    description="Change how the documents of a source are chunked, and chunk existing ones again.",
    arguments=SetSourceChunking,
    result=ChunkingChanged,
    effect="admin",
    handler=handle_set,
    seconds_max=math.inf,
    reports_progress=True,
    is_local=True,
)
