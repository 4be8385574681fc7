"""A look at the database in a thread and on a connection that serve nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from zibaldone.errors import (
    DeadlineExceeded,
    StorageUnavailable,
    ZibaldoneError,
)
from zibaldone.limits import PROBE_SECONDS_MAX
from zibaldone.store.port import ProbeResult
from zibaldone.store.postgres import scopes
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Raw, Transaction, connect, settings_statement
from zibaldone.store.postgres.faults import as_storage_error, translated
from zibaldone.store.postgres.readers import BEGIN
from zibaldone.store.postgres.writer import Writers

T = TypeVar("T")

_TRY_WRITING = (
    "BEGIN",
    "INSERT INTO zibaldone.probe SELECT convert_to(repeat(gen_random_uuid()::text, 32768), 'UTF8')",
)
"""A megabyte: less room is as good as none, a document and its index need about as much."""

_Waiting = tuple[Future[Any], Callable[[Transaction], Any]]


class ProbeThread:
    """Runs one probe after the other. The first one starts the thread."""

    def __init__(self, address: Address, writers: Writers) -> None:
        self._address = address
        self._writers = writers
        self._waiting: deque[_Waiting] = deque()
        self._added = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._raw: Raw | None = None
        self._closed = False

    async def probe(self, work: Callable[[Transaction], T]) -> ProbeResult[T]:
        if self._closed:
            raise StorageUnavailable("The store is closed.")
        future: Future[ProbeResult[T]] = Future()
        waiting = (future, work)
        self._waiting.append(waiting)
        self._added.release()
        if self._thread is None:
            # A daemon: a server that does not answer must not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name="zibaldone-health", daemon=True)
            self._thread.start()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), PROBE_SECONDS_MAX)
        except TimeoutError:
            message = f"The store could not be read within {PROBE_SECONDS_MAX:g} s."
            raise DeadlineExceeded(message) from None
        finally:
            with suppress(ValueError):  # raised if it has begun
                self._waiting.remove(waiting)

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._added.release()
            self._thread.join(PROBE_SECONDS_MAX)  # not for ever: it may be stuck

    def _run(self) -> None:
        try:
            while self._added.acquire() and not self._closed:
                with suppress(IndexError):  # raised if its caller has given up
                    self._answer(*self._waiting.popleft())
        finally:
            if self._raw is not None:
                self._raw.close()

    def _answer(self, future: Future[Any], work: Callable[[Transaction], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = self._probe(work)
        except BaseException as problem:
            future.set_exception(problem)
        else:
            future.set_result(result)

    def _probe(self, work: Callable[[Transaction], T]) -> ProbeResult[T]:
        with translated(self._address):
            raw = self._connection()
            try:
                result = _read(raw, work)
            finally:
                if raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    raw.close()  # whatever it is about, the next one begins anew
            return ProbeResult(result, self._refused_write(raw))

    def _connection(self) -> Raw:
        """One that works: the server may have been restarted since the last probe."""
        raw = self._raw
        if raw is not None and not raw.closed:
            with suppress(psycopg.OperationalError):
                raw.execute("SELECT 1")
        if raw is None or raw.closed:
            raw = self._raw = connect(self._address)
        return raw

    def _refused_write(self, raw: Raw) -> ZibaldoneError | None:
        """Why writes are refused, or None. If the last one was refused, a write is tried."""
        if self._writers.refusal is None:
            return None
        try:
            for statement in _TRY_WRITING:
                raw.execute(statement)
        except psycopg.Error as problem:
            return as_storage_error(problem, self._address)
        finally:
            if not raw.closed:
                raw.execute("ROLLBACK")
        self._writers.refusal = None
        return None


def _read(raw: Raw, work: Callable[[Transaction], T]) -> T:
    timeout = {"statement_timeout": str(int(PROBE_SECONDS_MAX * 1_000))}
    preamble = ((BEGIN, None), settings_statement({**scopes.OF_UPKEEP, **timeout}))
    transaction = Transaction(raw, preamble, is_write=False, seconds_max=PROBE_SECONDS_MAX)
    try:
        return work(transaction)
    finally:
        if not raw.closed:
            transaction.finish("ROLLBACK")
