"""Reads: each on one snapshot, in a thread of its own, bounded in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg

from zibaldone.access.turns import Turns
from zibaldone.errors import DeadlineExceeded
from zibaldone.store.fair_threads import FairThreads, Task
from zibaldone.store.postgres.connection import Connections, Raw, Transaction, settings_statement
from zibaldone.store.postgres.faults import STORE_PROBLEMS, as_storage_error, is_lost_connection
from zibaldone.store.postgres.replica import Replica
from zibaldone.store.postgres.watchdog import Watchdog

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Readers:
    def __init__(
        self, connections: Connections, turns: Turns[Task[Any]], replica: Replica | None = None
    ) -> None:
        self._connections = connections
        self._replica = replica
        self._watchdog = Watchdog()
        self._threads = FairThreads("zibaldone-reader", turns)

    async def run(
        self,
        work: Callable[[Transaction], T],
        settings: Mapping[str, str],
        seconds_max: float,
        *,
        may_be_replica: bool = False,
    ) -> T:
        """`settings` are those of the transaction; see `scopes.py`."""

        def run_in_thread(task: Task[T]) -> T:
            if task.is_abandoned:
                raise DeadlineExceeded("Nobody waits for this read any more.")
            replica = self._replica
            if replica is not None and may_be_replica and (raw := replica.take()) is not None:
                try:
                    return self._read_on(raw, task, work, settings, seconds_max)
                except STORE_PROBLEMS as problem:
                    if task.is_abandoned or isinstance(problem, psycopg.errors.QueryCanceled):
                        raise as_storage_error(problem, self._connections.address) from problem
                    replica.note_problem(problem)
                finally:
                    replica.give_back(raw)
            return self._read(task, work, settings, seconds_max)

        return await self._threads.run(run_in_thread)

    def close(self) -> None:
        self._threads.close()
        self._watchdog.close()

    def _read(
        self,
        task: Task[T],
        work: Callable[[Transaction], T],
        settings: Mapping[str, str],
        seconds_max: float,
    ) -> T:
        address = self._connections.address
        for fresh in (False, True):
            raw = self._connections.take(fresh=fresh)
            try:
                return self._read_on(raw, task, work, settings, seconds_max)
            except STORE_PROBLEMS as problem:
                # The server may have been restarted since the connection was used last.
                if not fresh and not task.is_abandoned and is_lost_connection(problem, raw):
                    continue
                raise as_storage_error(problem, address) from problem
            finally:
                self._connections.give_back(raw)
        raise AssertionError("unreachable")

    def _read_on(
        self,
        raw: Raw,
        task: Task[T],
        work: Callable[[Transaction], T],
        settings: Mapping[str, str],
        seconds_max: float,
    ) -> T:
        timeout = {"statement_timeout": str(max(1, int(seconds_max * 1_000)))}
        preamble = ((BEGIN, None), settings_statement({**settings, **timeout}))
        transaction = Transaction(raw, preamble, is_write=False, seconds_max=seconds_max)
        self._watchdog.watch(transaction)
        self._threads.interruptible(task, transaction.cancel)
        try:
            return work(transaction)
        finally:
            self._threads.interruptible(task, None)
            self._watchdog.forget(transaction)
            if transaction.end():
                if not raw.closed:
                    transaction.finish("ROLLBACK")
            else:
                raw.close()
