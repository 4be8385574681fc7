"""A store with Qdrant beside it, in the client's local mode: no server, every vector compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tests.store.backends import Backend
from tests.store.contract.test_vectors import DIMENSIONS, MODEL
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.store.port import Reader, Store
from zibaldone.store.qdrant.address import Address
from zibaldone.store.qdrant.feed import VectorFeed
from zibaldone.store.qdrant.index import QdrantIndex
from zibaldone.store.qdrant.store import MirroredStore

T = TypeVar("T")

MODES = ("applied", "noted")
"""Before each read all that is noted is taken over, or nothing ever is."""


class _Applied(MirroredStore):
    """Everything that was written is in Qdrant before it is searched."""

    def __init__(self, own: Store, index: QdrantIndex, feed: VectorFeed) -> None:
        super().__init__(own, index)
        self._feed = feed

    async def read(
        self,
        tenant: Tenant,
        work: Callable[[Reader], T],
        *,
        seconds_max: float | None = None,
        is_small: bool = False,
    ) -> T:
        await self._feed.drain()
        return await super().read(tenant, work, seconds_max=seconds_max, is_small=is_small)


class Mirrored:
    def __init__(
        self,
        backend: Backend,
        *,
        mode: str = "applied",
        url: str = "qdrant://:memory:",
        identity: str = MODEL,
        dimensions: int = DIMENSIONS,
    ) -> None:
        self._backend = backend
        self._mode = mode
        self._opened: list[Store] = []
        self.index = QdrantIndex(Address.parse(url), identity, dimensions)
        self.own = self._open()
        self.feed = VectorFeed(self.own, self.index)
        self.store = self._with_index(self.own)

    def _open(self) -> Store:
        store = self._backend.open(Limits())
        self._opened.append(store)
        return store

    def _with_index(self, store: Store) -> Store:
        if self._mode == "applied":
            return _Applied(store, self.index, self.feed)
        return MirroredStore(store, self.index)

    def another(self) -> Store:
        """Opened once more, with the same Qdrant."""
        return self._with_index(self._open())

    def close(self) -> None:
        for store in self._opened:
            store.close()
        self.index.close()
