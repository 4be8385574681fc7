"""Writes: each in a transaction of its own, beside others, repeated where it met another's.

PostgreSQL commits those that end together with one fsync, so there is nothing to be gathered here.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

from zibaldone.access.turns import Turns
from zibaldone.errors import StorageFull, StorageReadOnly, StorageUnavailable, ZibaldoneError
from zibaldone.store.fair_threads import FairThreads, Task
from zibaldone.store.postgres.connection import (
    Connections,
    Raw,
    Transaction,
    settings_statement,
)
from zibaldone.store.postgres.faults import (
    STORE_PROBLEMS,
    as_storage_error,
    is_conflict_of_writers,
    is_lost_connection,
)
from zibaldone.store.postgres.pipeline import Statement

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"

_TRIES_MAX = 12
_PAUSE_SECONDS_MAX = 0.25
_IDLE_SECONDS_MAX = 120
"""A process that hangs in the middle of a write keeps its locks no longer than this."""

_OUTCOME_SECONDS_MAX = 8.0
"""How long we ask what became of a commit whose answer was lost."""

_DURABLE = (
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' "
    "THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)
"""A commit is on disk before it is acknowledged, whatever the database's default is."""

_OUTCOME_PAUSE_SECONDS = 0.2

_MARK = """
SELECT pg_current_xact_id_if_assigned()::text,
       CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn()::text END,
       pg_last_wal_replay_lsn()::text
"""
"""By what a transaction can be found again: its id, a place in the log before its commit, and where
the last recovery of the server ended, if there was one."""

_WAS_LOST = """
SELECT pg_last_wal_replay_lsn() IS DISTINCT FROM %(recovered)s::text::pg_lsn
       AND pg_last_wal_replay_lsn() < %(place)s::text::pg_lsn
"""
"""The server was recovered since, or another one took over, and the log that it had ended before
our commit. Then it gives the same id to another transaction, whose outcome is not ours."""

_OUTCOME = "SELECT pg_xact_status(%(id)s::text::xid8)"
_ON_ALL_DISKS = "SELECT pg_logical_emit_message(true, 'zibaldone', '')"
"""A commit after ours: it is acknowledged when a synchronous standby has both."""
_log = logging.getLogger("zibaldone.store")


class Writers:
    def __init__(
        self,
        connections: Connections,
        turns: Turns[Task[Any]],
        wait_seconds_max: float,
        ended: Callable[[Transaction], None],
        committed: Callable[[Transaction], None],
    ) -> None:
        """`ended` is told of each transaction before its commit, to write what it added up, and
        `committed` after it."""
        self._connections = connections
        self._threads = FairThreads("zibaldone-writer", turns)
        self._wait_seconds_max = wait_seconds_max
        self._ended = ended
        self._committed = committed
        self.refusal: ZibaldoneError | None = None
        """Why the last write that would have changed something was refused, if it was for lack of
        room or because only reads are taken."""

    async def run(
        self,
        work: Callable[[Transaction], T],
        settings: Mapping[str, str],
        *,
        to_the_end: bool,
    ) -> T:
        """`settings` are those of the transaction; see `scopes.py`. What has begun is awaited in
        spite of a cancellation; `to_the_end`: and its outcome is what is told."""
        run = self._threads.run_through if to_the_end else self._threads.run_out
        return await run(lambda _: self.run_here(work, settings))

    def close(self) -> None:
        self._threads.close()

    def run_here(self, work: Callable[[Transaction], T], settings: Mapping[str, str]) -> T:
        """The same in the calling thread."""
        wait_ms = str(max(1, int(self._wait_seconds_max * 1_000)))
        own = {
            **settings,
            "lock_timeout": wait_ms,
            "idle_in_transaction_session_timeout": str(_IDLE_SECONDS_MAX * 1_000),
        }
        preamble = ((BEGIN, None), settings_statement(own, _DURABLE))
        return self._write(work, preamble)

    def _write(self, work: Callable[[Transaction], T], preamble: Sequence[Statement]) -> T:
        until_s = time.monotonic() + self._wait_seconds_max
        fresh, tries = False, 0
        while True:
            raw = self._connections.take(fresh=fresh)
            try:
                return self._attempt(raw, work, preamble)
            except STORE_PROBLEMS as problem:
                tries += 1
                fresh = _needs_another_connection(problem, raw)
                may_repeat = fresh or is_conflict_of_writers(problem)
                if not may_repeat or tries >= _TRIES_MAX or time.monotonic() > until_s:
                    raise self._refused(problem) from problem
            finally:
                self._connections.give_back(raw)
            time.sleep(random.uniform(0, min(_PAUSE_SECONDS_MAX, 0.001 * 2**tries)))

    def _attempt(
        self, raw: Raw, work: Callable[[Transaction], T], preamble: Sequence[Statement]
    ) -> T:
        transaction = Transaction(raw, preamble, is_write=True)
        try:
            return self._commit(raw, work, transaction)
        finally:
            if not transaction.end():
                raw.close()  # what was cancelled late must not reach the next transaction

    def _commit(self, raw: Raw, work: Callable[[Transaction], T], transaction: Transaction) -> T:
        try:
            result = work(transaction)
            self._ended(transaction)
            if not transaction.has_statements:
                return result
            mark = transaction.row(_MARK)
        except BaseException:
            _roll_back(raw, transaction)
            raise
        if mark is None or mark[0] is None:  # it changed nothing
            _roll_back(raw, transaction)
            return result
        try:
            outcome = transaction.finish("COMMIT")
        except psycopg.Error as problem:
            if not is_lost_connection(problem, raw) or not self._has_committed(mark):
                raise
            outcome = "COMMIT"
        if outcome != "COMMIT":  # work went on after a statement that failed
            raise StorageUnavailable("The transaction was lost; try again.")
        self.refusal = None
        self._committed(transaction)
        return result

    def _has_committed(self, mark: TupleRow) -> bool:
        """What became of a commit whose answer was lost, asked on another connection."""
        until_s = time.monotonic() + _OUTCOME_SECONDS_MAX
        while time.monotonic() < until_s:
            try:
                raw = self._connections.take(fresh=True)
                try:
                    outcome = _outcome(raw, mark)
                finally:
                    self._connections.give_back(raw)
            except (psycopg.Error, StorageUnavailable):
                outcome = None
            if outcome is not None:
                return outcome
            time.sleep(_OUTCOME_PAUSE_SECONDS)
        raise StorageUnavailable(
            "The database was lost during the commit, and nobody can say yet whether the write "
            "happened. Read the document before you try again.",
            outcome="unknown",
        )

    def _refused(self, problem: BaseException) -> ZibaldoneError:
        if is_conflict_of_writers(problem):
            return StorageUnavailable("Others kept writing the same at the same time; try again.")
        error = as_storage_error(problem, self._connections.address)
        if isinstance(error, StorageFull | StorageReadOnly):
            self.refusal = error
        return error


def _outcome(raw: Raw, mark: TupleRow) -> bool | None:
    """Whether a transaction was committed; None: it is not over yet."""
    transaction_id, place, recovered = mark
    if raw.execute(_WAS_LOST, {"place": place, "recovered": recovered}).fetchone() == (True,):
        return False
    try:
        row = raw.execute(_OUTCOME, {"id": transaction_id}).fetchone()
    except psycopg.errors.InvalidParameterValue:
        return False  # a standby took over that never heard of it
    if row == ("committed",):
        raw.execute(_ON_ALL_DISKS)
        return True
    return False if row == ("aborted",) else None


def _needs_another_connection(problem: BaseException, raw: Raw) -> bool:
    """This one is broken, or leads to a server that is no longer the primary."""
    return is_lost_connection(problem, raw) or isinstance(
        problem, psycopg.errors.ReadOnlySqlTransaction
    )


def _roll_back(raw: Raw, transaction: Transaction) -> None:
    try:
        if not raw.closed:
            transaction.finish("ROLLBACK")
    except psycopg.Error as problem:
        _log.debug("a connection was lost while rolling back: %s", type(problem).__name__)
        raw.close()
