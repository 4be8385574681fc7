"""The embedded store: one writer thread, a few reader threads, one connection for quick reads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.store.outcome import outcome_of
from zibaldone.store.port import (
    ProbeResult,
    Reader,
    ReadStoreStatus,
    StoreCheck,
    Writer,
    end_if_cancelled,
)
from zibaldone.store.quotas import NO_QUOTAS, Quotas, quotas_of
from zibaldone.store.sqlite.api_keys import ApiKeys
from zibaldone.store.sqlite.check import check_file
from zibaldone.store.sqlite.chunks import Chunks
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.documents import Documents, Revisions
from zibaldone.store.sqlite.jobs import Jobs, Queue
from zibaldone.store.sqlite.journal import Audit
from zibaldone.store.sqlite.lexical import Lexical
from zibaldone.store.sqlite.links import DocumentLinks
from zibaldone.store.sqlite.memory import Memory
from zibaldone.store.sqlite.place import description_of
from zibaldone.store.sqlite.probe import ProbeThread
from zibaldone.store.sqlite.pulled import Pulled
from zibaldone.store.sqlite.readers import Readers
from zibaldone.store.sqlite.schema import prepare
from zibaldone.store.sqlite.sessions import Sessions
from zibaldone.store.sqlite.sources import Sources
from zibaldone.store.sqlite.term_steps import TermSteps, settle
from zibaldone.store.sqlite.upkeep import Upkeep
from zibaldone.store.sqlite.vectors import VectorMemory, Vectors
from zibaldone.store.sqlite.writer import WriterThread
from zibaldone.store.upkeep import Upkeep as UpkeepPort

T = TypeVar("T")

_log = logging.getLogger("zibaldone.store")

_QUICK_SECONDS_MAX = 2.0
"""A quick read runs on the event loop, where everybody waits for it. Readers of a WAL wait for no
writer; only a foreign program that locks the whole file, or a very slow disk, gets this far."""


_STEPS_AT_ONCE = 8
"""Of a long change. Where nobody else writes, they share a commit."""

_SWEEP_SECONDS_MAX = 60.0
"""A look over the whole index: nobody waits for it, but it may not run for ever."""


class Session:
    """The tables as one caller may see them, on one connection. It serves as Reader and Writer."""

    def __init__(
        self,
        raw: apsw.Connection,
        tenant: Tenant,
        memory: VectorMemory,
        limits: Limits,
        quotas: Quotas = NO_QUOTAS,
        connection: Connection | None = None,
        later: TermSteps | None = None,
    ) -> None:
        self._connection = connection
        self._later = later
        self._raw = raw
        self._tenant = tenant
        self._memory = memory
        self._limits = limits
        self.documents = Documents(
            raw, tenant, quotas
        )  # the one part that nearly every caller needs

    def within(self, share: float) -> AbstractContextManager[None]:
        return nullcontext() if self._connection is None else self._connection.within(share)

    @cached_property
    def revisions(self) -> Revisions:
        return Revisions(self._raw, self._tenant)

    @cached_property
    def chunks(self) -> Chunks:
        return Chunks(self._raw, self._tenant, self._later)

    @cached_property
    def lexical(self) -> Lexical:
        return Lexical(self._raw, self._tenant, self._limits)

    @cached_property
    def vectors(self) -> Vectors:
        return Vectors(self._raw, self._tenant, self._memory)

    @cached_property
    def sources(self) -> Sources:
        return Sources(self._raw, self._tenant)

    @cached_property
    def pulled(self) -> Pulled:
        return Pulled(self._raw, self._tenant)

    @cached_property
    def memory(self) -> Memory:
        return Memory(self._raw, self._tenant)

    @cached_property
    def links(self) -> DocumentLinks:
        return DocumentLinks(self._raw, self._tenant)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self._raw, self._tenant)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self._raw, self._tenant)

    @cached_property
    def queue(self) -> Queue:
        return Queue(self._raw, self._tenant)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self._raw, self._tenant)

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(self._raw)


class SqliteStore:
    def __init__(self, path: Path, limits: Limits, *, for_transfer: bool = False) -> None:
        self._path = path
        self._limits = limits
        self._quotas = quotas_of(limits)
        self._memory = VectorMemory()
        wait = limits.write_wait_seconds_max
        prepare(path, wait, for_transfer=for_transfer)
        self._quick = Connection(path, wait_seconds_max=_QUICK_SECONDS_MAX)
        self._readers = Readers(path, wait)
        self._writer = WriterThread(path, wait)
        self._probe = ProbeThread(path, self._writer)

    @property
    def description(self) -> str:
        return description_of(self._path)

    @property
    def read_store_status(self) -> ReadStoreStatus | None:
        return None

    async def read(
        self,
        tenant: Tenant,
        work: Callable[[Reader], T],
        *,
        seconds_max: float | None = None,
        is_small: bool = False,
    ) -> T:
        seconds = self._limits.query_seconds_max if seconds_max is None else seconds_max
        if is_small:
            return self._quick.read(
                lambda raw: work(Session(raw, tenant, self._memory, self._limits)),
                min(seconds, _QUICK_SECONDS_MAX),
            )
        if seconds_max is None:
            return await self._read_snapshot(tenant, work, seconds)
        asked_s = time.monotonic()

        def read_in_time(connection: Connection) -> T:
            waited_s = time.monotonic() - asked_s
            return self._read_with(connection, tenant, work, max(seconds - waited_s, 0.0))

        return await self._readers.run(read_in_time)

    async def _read_snapshot(
        self, tenant: Tenant, work: Callable[[Session], T], seconds_max: float
    ) -> T:
        return await self._readers.run(
            lambda connection: self._read_with(connection, tenant, work, seconds_max)
        )

    def _read_with(
        self,
        connection: Connection,
        tenant: Tenant,
        work: Callable[[Session], T],
        seconds_max: float,
    ) -> T:
        def read(raw: apsw.Connection) -> T:
            return work(Session(raw, tenant, self._memory, self._limits, connection=connection))

        return connection.read(read, seconds_max)

    async def write(self, tenant: Tenant, work: Callable[[Writer], T]) -> T:
        later = TermSteps()

        def write(raw: apsw.Connection) -> T:
            session = Session(raw, tenant, self._memory, self._limits, self._quotas, later=later)
            return work(session)

        result = await outcome_of(self._writer.submit(write))
        await self._settle(later)
        return result

    async def _settle(self, later: TermSteps) -> None:
        """Store the terms that a committed write has left.

        The write is stored in any case, so a caller who gives up, or a disk that is full, only
        leaves the rest to `index.renewal`.
        """
        while steps := list(islice(later, _STEPS_AT_ONCE)):
            submitted = [
                self._writer.submit(partial(settle, step=step), is_step=True) for step in steps
            ]
            try:
                end_if_cancelled()
                for future in submitted:
                    await outcome_of(future)
            except asyncio.CancelledError:
                return
            except ZibaldoneError as error:
                _log.warning(
                    "the terms of a long document are stored later: %s [%s]",
                    error.message,
                    error.code,
                )
                return
            finally:
                for future in submitted:
                    future.cancel()  # those that have not begun; the others are done

    async def upkeep(
        self,
        work: Callable[[UpkeepPort], T],
        *,
        write: bool = True,
        seconds_max: float | None = None,
    ) -> T:
        if write:
            later = TermSteps()
            submitted = self._writer.submit(lambda raw: work(Upkeep(raw, later)))
            result = await asyncio.wrap_future(submitted)
            cancellations = _cancellations()
            await self._settle(later)
            if _cancellations() > cancellations:
                raise asyncio.CancelledError
            return result
        seconds = _SWEEP_SECONDS_MAX if seconds_max is None else seconds_max
        return await self._readers.run(
            lambda connection: connection.read(lambda raw: work(Upkeep(raw)), seconds)
        )

    async def probe(self, work: Callable[[UpkeepPort], T]) -> ProbeResult[T]:
        return await self._probe.probe(lambda raw: work(Upkeep(raw)))

    async def prepare_model(self, identity: str) -> None:
        def page(reader: Session) -> bool:
            return reader.vectors.load_page(identity)

        while await self._read_snapshot(Tenant(), page, _SWEEP_SECONDS_MAX):
            pass  # between two pages the reader and the vectors are free for searches

    async def listen(self, wake: Callable[[], None]) -> None:
        del wake  # a file does not tell of other processes

    async def check(self, *, thorough: bool = False) -> StoreCheck:
        wait = self._limits.write_wait_seconds_max
        return await self._readers.run(lambda _: check_file(self._path, wait, thorough))

    def close(self) -> None:
        """Finish the writes and reads that were begun; later ones are refused."""
        self._writer.close()
        self._readers.close()
        self._quick.close()
        self._probe.close()


def _cancellations() -> int:
    """How often the running task was cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
