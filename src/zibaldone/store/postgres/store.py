"""The store on a PostgreSQL server, shared by as many processes as there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, TypeVar

from zibaldone.access.principal import Tenant
from zibaldone.access.turns import Turns
from zibaldone.limits import Limits
from zibaldone.store.fair_threads import Task
from zibaldone.store.port import ProbeResult, Reader, ReadStoreStatus, StoreCheck, Writer
from zibaldone.store.postgres import scopes
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.api_keys import ApiKeys
from zibaldone.store.postgres.bell import Bell, Listener
from zibaldone.store.postgres.check import check_tables
from zibaldone.store.postgres.chunks import Chunks
from zibaldone.store.postgres.connection import Connections, Transaction
from zibaldone.store.postgres.documents import Documents, Revisions
from zibaldone.store.postgres.fold import Folding
from zibaldone.store.postgres.jobs import Jobs, Queue
from zibaldone.store.postgres.journal import Audit
from zibaldone.store.postgres.lexical import Lexical
from zibaldone.store.postgres.links import DocumentLinks
from zibaldone.store.postgres.memory import Memory
from zibaldone.store.postgres.probe import ProbeThread
from zibaldone.store.postgres.pulled import Pulled
from zibaldone.store.postgres.readers import Readers
from zibaldone.store.postgres.replica import Replica
from zibaldone.store.postgres.schema import prepare
from zibaldone.store.postgres.sessions import Sessions
from zibaldone.store.postgres.sources import Sources
from zibaldone.store.postgres.upkeep import Upkeep
from zibaldone.store.postgres.usage import write_usage
from zibaldone.store.postgres.vector_indexes import VectorIndexes
from zibaldone.store.postgres.vector_upkeep import NOTE as VECTORS_CHANGED
from zibaldone.store.postgres.vectors import Vectors
from zibaldone.store.postgres.writer import Writers
from zibaldone.store.quotas import NO_QUOTAS, Quotas, quotas_of
from zibaldone.store.upkeep import Upkeep as UpkeepPort

T = TypeVar("T")

_SMALL_SECONDS_MAX = 2.0
"""A small read that takes longer than this does not get an answer."""

_SWEEP_SECONDS_MAX = 60.0
"""A look over the whole index: nobody waits for it, but it may not run for ever."""

_CHECK_SECONDS_MAX = 3_600.0


class Session:
    """The tables as one caller may see them, in one transaction. It serves as Reader and Writer."""

    def __init__(
        self,
        transaction: Transaction,
        tenant: Tenant,
        limits: Limits,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._limits = limits
        self.documents = Documents(transaction, tenant, quotas)

    def within(self, share: float) -> AbstractContextManager[None]:
        return self._transaction.within(share)

    @cached_property
    def revisions(self) -> Revisions:
        return Revisions(self._transaction, self._tenant)

    @cached_property
    def chunks(self) -> Chunks:
        return Chunks(self._transaction, self._tenant)

    @cached_property
    def lexical(self) -> Lexical:
        return Lexical(self._transaction, self._tenant, self._limits)

    @cached_property
    def vectors(self) -> Vectors:
        return Vectors(self._transaction, self._tenant)

    @cached_property
    def sources(self) -> Sources:
        return Sources(self._transaction, self._tenant)

    @cached_property
    def pulled(self) -> Pulled:
        return Pulled(self._transaction, self._tenant)

    @cached_property
    def memory(self) -> Memory:
        return Memory(self._transaction, self._tenant)

    @cached_property
    def links(self) -> DocumentLinks:
        return DocumentLinks(self._transaction, self._tenant)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self._transaction, self._tenant)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self._transaction, self._tenant)

    @cached_property
    def queue(self) -> Queue:
        return Queue(self._transaction, self._tenant)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self._transaction, self._tenant)

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(self._transaction)


class PostgresStore:
    def __init__(
        self, url: str, limits: Limits, *, read_url: str = "", for_transfer: bool = False
    ) -> None:
        """`read_url`: a replica, which reads of callers go to."""
        self._address = Address.parse(url)
        self._limits = limits
        self._quotas = quotas_of(limits)
        prepare(self._address, for_transfer=for_transfer)
        self._connections = Connections(self._address)
        readers, writers = _turns(self._address.connections_max)
        self._replica = (
            Replica(Address.parse(read_url, "read_store", is_standby=True), self._address)
            if read_url
            else None
        )
        self._readers = Readers(self._connections, readers, self._replica)
        self._writers = Writers(
            self._connections,
            writers,
            limits.write_wait_seconds_max,
            ended=self._complete,
            committed=self._note_committed,
        )
        self._bell = Bell(self._connections)
        self._listener = Listener(self._address, self._bell.name)
        self._probe = ProbeThread(self._address, self._writers)
        self._folding = Folding(lambda work: self._writers.run_here(work, scopes.OF_UPKEEP))
        self._folding.note_write()  # another process may have ended before it came to that
        self._indexes = VectorIndexes(self._address)

    @property
    def description(self) -> str:
        return self._address.description

    @property
    def read_store_status(self) -> ReadStoreStatus | None:
        return None if self._replica is None else self._replica.status

    async def read(
        self,
        tenant: Tenant,
        work: Callable[[Reader], T],
        *,
        seconds_max: float | None = None,
        is_small: bool = False,
    ) -> T:
        seconds = self._limits.query_seconds_max if seconds_max is None else seconds_max
        return await self._readers.run(
            lambda transaction: work(Session(transaction, tenant, self._limits)),
            scopes.of_namespace(tenant.namespace),
            min(seconds, _SMALL_SECONDS_MAX) if is_small else seconds,
            is_small=is_small,
            may_be_replica=True,
        )

    async def write(self, tenant: Tenant, work: Callable[[Writer], T]) -> T:
        return await self._writers.run(
            lambda transaction: work(Session(transaction, tenant, self._limits, self._quotas)),
            scopes.of_namespace(tenant.namespace),
            to_the_end=True,
        )

    async def upkeep(
        self,
        work: Callable[[UpkeepPort], T],
        *,
        write: bool = True,
        seconds_max: float | None = None,
    ) -> T:
        if write:
            return await self._writers.run(
                lambda transaction: work(Upkeep(transaction)), scopes.OF_UPKEEP, to_the_end=False
            )
        return await self._readers.run(
            lambda transaction: work(Upkeep(transaction)),
            scopes.OF_UPKEEP,
            _SWEEP_SECONDS_MAX if seconds_max is None else seconds_max,
        )

    def _complete(self, transaction: Transaction) -> None:
        """Write what the parts of a transaction have added up."""
        totals = transaction.totals
        if VECTORS_CHANGED in totals:
            self._indexes.note_vectors()
        if totals.keys() - {VECTORS_CHANGED}:
            write_usage(transaction)
            self._folding.note_write()

    def _note_committed(self, transaction: Transaction) -> None:
        if self._replica is not None:
            self._replica.note_commit()
        if transaction.has_queued:
            self._bell.ring()

    async def listen(self, wake: Callable[[], None]) -> None:
        await self._listener.listen(wake)

    async def probe(self, work: Callable[[UpkeepPort], T]) -> ProbeResult[T]:
        return await self._probe.probe(lambda transaction: work(Upkeep(transaction)))

    async def prepare_model(self, identity: str) -> None:
        """Build the indexes of vectors that are due, those of other models too."""
        del identity
        try:
            await asyncio.to_thread(self._indexes.build)
        except asyncio.CancelledError:
            self._indexes.cancel()
            raise

    async def check(self, *, thorough: bool = False) -> StoreCheck:
        return await self._readers.run(
            lambda transaction: check_tables(transaction, thorough),
            scopes.OF_UPKEEP,
            _CHECK_SECONDS_MAX,
        )

    def close(self) -> None:
        """Finish the writes and reads that were begun; later ones are refused."""
        self._writers.close()
        self._bell.close()
        self._folding.close()
        self._indexes.close()
        self._readers.close()
        if self._replica is not None:
            self._replica.close()
        self._probe.close()
        self._connections.close()


def _turns(connections_max: int) -> tuple[Turns[Task[Any]], Turns[Task[Any]]]:
    """Places for readers and writers. Each share holds at most half of them beside others, and some
    are kept for those that hold none. A write that computes for long holds up everybody's Python,
    so its share rests before the next."""
    readers = max(2, connections_max * 3 // 8)
    writers = max(1, connections_max // 4)
    spare = max(1, (connections_max - readers - writers) // 2)
    return _places(readers, spare, rest_factor=0), _places(writers, spare, rest_factor=4)


def _places(places: int, spare: int, *, rest_factor: float) -> Turns[Task[Any]]:
    return Turns(
        places,
        per_share=max(1, places - 1),
        beside_others=max(1, places // 2),
        extra=spare,
        rest_factor=rest_factor,
    )
