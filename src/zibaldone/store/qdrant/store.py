"""A store whose vectors are searched by Qdrant; everything else is the engine's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from zibaldone.access.principal import Tenant
from zibaldone.store.port import (
    ApiKeyReads,
    AuditReads,
    ChunkReads,
    DocumentReads,
    JobReads,
    LexicalReads,
    LinkReads,
    MemoryReads,
    ProbeResult,
    PulledReads,
    Reader,
    ReadStoreStatus,
    RevisionReads,
    SessionReads,
    SourceReads,
    Store,
    StoreCheck,
    VectorReads,
    Writer,
)
from zibaldone.store.qdrant.index import QdrantIndex
from zibaldone.store.qdrant.vectors import MirroredVectors
from zibaldone.store.upkeep import Upkeep

T = TypeVar("T")


class MirroredReader:
    def __init__(self, own: Reader, tenant: Tenant, index: QdrantIndex) -> None:
        self._own = own
        self._tenant = tenant
        self._index = index

    def within(self, share: float) -> AbstractContextManager[None]:
        return self._own.within(share)

    @property
    def vectors(self) -> VectorReads:
        return MirroredVectors(self._own.vectors, self._tenant, self._index)

    @property
    def documents(self) -> DocumentReads:
        return self._own.documents

    @property
    def revisions(self) -> RevisionReads:
        return self._own.revisions

    @property
    def chunks(self) -> ChunkReads:
        return self._own.chunks

    @property
    def lexical(self) -> LexicalReads:
        return self._own.lexical

    @property
    def jobs(self) -> JobReads:
        return self._own.jobs

    @property
    def sources(self) -> SourceReads:
        return self._own.sources

    @property
    def pulled(self) -> PulledReads:
        return self._own.pulled

    @property
    def memory(self) -> MemoryReads:
        return self._own.memory

    @property
    def links(self) -> LinkReads:
        return self._own.links

    @property
    def sessions(self) -> SessionReads:
        return self._own.sessions

    @property
    def audit(self) -> AuditReads:
        return self._own.audit

    @property
    def api_keys(self) -> ApiKeyReads:
        return self._own.api_keys


class MirroredStore:
    def __init__(self, own: Store, index: QdrantIndex) -> None:
        self._own = own
        self._index = index

    @property
    def description(self) -> str:
        return self._own.description

    @property
    def read_store_status(self) -> ReadStoreStatus | None:
        return self._own.read_store_status

    async def read(
        self,
        tenant: Tenant,
        work: Callable[[Reader], T],
        *,
        seconds_max: float | None = None,
        is_small: bool = False,
    ) -> T:
        if is_small:  # on the event loop maybe: nothing that asks another server
            return await self._own.read(tenant, work, seconds_max=seconds_max, is_small=True)
        return await self._own.read(
            tenant,
            lambda reader: work(MirroredReader(reader, tenant, self._index)),
            seconds_max=seconds_max,
        )

    async def write(self, tenant: Tenant, work: Callable[[Writer], T]) -> T:
        return await self._own.write(tenant, work)

    async def probe(self, work: Callable[[Upkeep], T]) -> ProbeResult[T]:
        return await self._own.probe(work)

    async def upkeep(
        self, work: Callable[[Upkeep], T], *, write: bool = True, seconds_max: float | None = None
    ) -> T:
        return await self._own.upkeep(work, write=write, seconds_max=seconds_max)

    async def prepare_model(self, identity: str) -> None:
        await self._own.prepare_model(identity)

    async def listen(self, wake: Callable[[], None]) -> None:
        await self._own.listen(wake)

    async def check(self, *, thorough: bool = False) -> StoreCheck:
        return await self._own.check(thorough=thorough)

    def close(self) -> None:
        self._own.close()
        self._index.close()
