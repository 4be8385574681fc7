"""Reads: each on one snapshot, in a thread of its own, bounded in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeVar

import psycopg

from zibaldone.access.turns import Turns
from zibaldone.errors import DeadlineExceeded
from zibaldone.store.fair_threads import FairThreads, Task
from zibaldone.store.postgres.connection import (
    Connections,
    Raw,
    SecondStatementError,
    Transaction,
    settings_statement,
)
from zibaldone.store.postgres.faults import STORE_PROBLEMS, as_storage_error, is_lost_connection
from zibaldone.store.postgres.pipeline import Statement
from zibaldone.store.postgres.replica import Replica
from zibaldone.store.postgres.watchdog import Watchdog

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_PLANS = "force_custom_plan"
"""What is best depends on the values: on the size of a range, on the filter."""

_PLANS_OF_SMALL = "force_generic_plan"
"""What goes by a key, or by the order of an index, is planned once for all values. That takes
longer than finding a row."""


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
        is_small: bool = False,
        may_be_replica: bool = False,
    ) -> T:
        """`settings` are those of the transaction; see `scopes.py`. `is_small`: mostly it is one
        statement that reads a few rows by an index."""
        given = _Given(settings, seconds_max, is_small)

        def run_in_thread(task: Task[T]) -> T:
            if task.is_abandoned:
                raise DeadlineExceeded("Nobody waits for this read any more.")
            replica = self._replica
            if replica is not None and may_be_replica and (raw := replica.take()) is not None:
                try:
                    return self._read_on(raw, task, work, given)
                except STORE_PROBLEMS as problem:
                    if task.is_abandoned or isinstance(problem, psycopg.errors.QueryCanceled):
                        raise as_storage_error(problem, self._connections.address) from problem
                    replica.note_problem(problem)
                finally:
                    replica.give_back(raw)
            return self._read(task, work, given)

        return await self._threads.run(run_in_thread)

    def close(self) -> None:
        self._threads.close()
        self._watchdog.close()

    def _read(
        self,
        task: Task[T],
        work: Callable[[Transaction], T],
        given: _Given,
    ) -> T:
        address = self._connections.address
        for fresh in (False, True):
            raw = self._connections.take(fresh=fresh)
            try:
                return self._read_on(raw, task, work, given)
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
        given: _Given,
    ) -> T:
        if given.is_small:
            with suppress(SecondStatementError):
                return self._read_once(raw, task, work, given)
            given.is_small = False
        return self._read_once(raw, task, work, given)

    def _read_once(
        self, raw: Raw, task: Task[T], work: Callable[[Transaction], T], given: _Given
    ) -> T:
        transaction = given.begin(raw)
        self._watchdog.watch(transaction)
        self._threads.interruptible(task, partial(self._watchdog.hurry, transaction))
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


class _Given:
    """What a read was given."""

    __slots__ = ("_seconds_max", "_settings", "is_small")

    def __init__(self, settings: Mapping[str, str], seconds_max: float, is_small: bool) -> None:
        self._settings = tuple(settings.items())
        self._seconds_max = seconds_max
        self.is_small = is_small

    def begin(self, raw: Raw) -> Transaction:
        timeout_ms = max(1, int(self._seconds_max * 1_000))
        return Transaction(
            raw,
            _preamble(self._settings, timeout_ms, _PLANS),
            is_write=False,
            seconds_max=self._seconds_max,
            single=(
                _preamble(self._settings, timeout_ms, _PLANS_OF_SMALL) if self.is_small else None
            ),
        )


@lru_cache(1_000)
def _preamble(
    settings: tuple[tuple[str, str], ...], timeout_ms: int, plans: str
) -> tuple[Statement, Statement]:
    return (BEGIN, None), settings_statement(
        {**dict(settings), "statement_timeout": str(timeout_ms), "plan_cache_mode": plans}
    )
