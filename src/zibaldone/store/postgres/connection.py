"""Connections: how they are made and kept, and one transaction on one of them.

There is no queue for connections here: reads and writes wait for their turn before they ask for one
(`store.fair_threads`), so whoever asks gets one, opened now if none is idle. What goes wrong with
that reaches the caller as it is.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8Dumper

from zibaldone.errors import ConfigurationError, DeadlineExceeded, StorageUnavailable
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.faults import of_connecting
from zibaldone.store.postgres.pipeline import Pipeline, Statement, Values

Row = tuple[Any, ...]

_IDLE_SECONDS_MAX = 300.0
"""A connection that nobody used for so long is closed."""

_CANCEL_SECONDS_MAX = 2.0
"""For the server to be told, and for it to stop. Then we close the connection from our side."""

_log = logging.getLogger("zibaldone.store")


class Raw(psycopg.Connection[TupleRow]):
    """A connection of psycopg. What is often asked goes through its pipeline."""

    @cached_property
    def is_pooled(self) -> bool:
        """Whether a pooler is in between, which may give each transaction another connection.

        A pooler makes up a process id for its clients, to be able to cancel for them.
        """
        row = self.execute("SELECT pg_backend_pid()").fetchone()
        return row is not None and row[0] != self.info.backend_pid

    @cached_property
    def statements(self) -> Pipeline:
        return Pipeline(self, may_prepare=not self.is_pooled)


def connect(address: Address) -> Raw:
    try:
        raw = Raw.connect(**address.parameters, autocommit=True, prepare_threshold=None)
        # One type for all whole numbers: one plan for a statement, whatever the size of its values.
        raw.adapters.register_dumper(int, Int8Dumper)
    except psycopg.Error as problem:
        raise of_connecting(problem, address) from problem
    return raw


class Connections:
    """Idle connections, the one that was used last on top."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Raw]] = []
        self._closed = False

    def take(self, *, fresh: bool = False) -> Raw:
        """A connection that must be given back. `fresh`: not one that was idle."""
        if fresh:
            self._close_idle_since(float("inf"))
        while True:
            with self._lock:
                if self._closed:
                    raise StorageUnavailable("The store is closed.")
                if not self._idle:
                    break
                _, raw = self._idle.pop()
            if not raw.closed:
                return raw
        try:
            return connect(self.address)
        except ConfigurationError as problem:  # it was right when the store was opened
            raise StorageUnavailable(problem.message) from problem

    def give_back(self, raw: Raw) -> None:
        """One that is broken, or in a transaction still, is closed."""
        is_sound = (
            not raw.closed and raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        )
        with self._lock:
            if is_sound and not self._closed:
                self._idle.append((time.monotonic(), raw))
            else:
                is_sound = False
        if not is_sound:
            raw.close()
        self._close_idle_since(time.monotonic() - _IDLE_SECONDS_MAX)

    def _close_idle_since(self, before_s: float) -> None:
        with self._lock:
            old = [raw for since_s, raw in self._idle if since_s < before_s]
            if old:
                self._idle = [entry for entry in self._idle if entry[0] >= before_s]
        for raw in old:
            raw.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._close_idle_since(float("inf"))


class SecondStatementError(Exception):
    """A transaction that was to have one statement has another. Its work has to run again."""


class Transaction:
    """One transaction on one connection. It begins with its first statement.

    Statements whose outcome nobody needs at once are deferred: they are sent with the next one that
    is needed, so that they cost no round trip of their own.
    """

    def __init__(
        self,
        raw: Raw,
        preamble: Sequence[Statement],
        *,
        is_write: bool,
        seconds_max: float | None = None,
        single: Sequence[Statement] | None = None,
    ) -> None:
        """`single`: the preamble if there is only one statement. Then the transaction is begun,
        made and ended in one round trip; a second one raises SecondStatementError."""
        self._raw = raw
        self.is_write = is_write
        self.totals: dict[str, Any] = {}
        """What parts of the engine add up, to be written once at the end."""
        self.definitions: dict[int, tuple[str, str]] = {}
        """Name and definition of sources that are locked, by source."""
        self.has_queued = False
        """Whether there is something new for the workers of other processes."""
        self.new_documents: set[int] = set()
        """Keys of documents that this transaction inserted and that have no chunks yet."""
        self._locked: set[object] = set()
        self._deadline_s = None if seconds_max is None else time.monotonic() + seconds_max
        self._preamble = preamble
        self._single = single
        self._deferred: list[Statement] = []
        self._begun = False
        self._finished = False
        self._lock = threading.Lock()
        self._is_over = False
        self._over: threading.Event | None = None
        self._cancelling: threading.Thread | None = None
        self._is_abandoned = False

    @property
    def deadline_s(self) -> float | None:
        return self._deadline_s

    def execute(self, sql: str, values: Values = None) -> list[TupleRow]:
        """All rows of a statement, with every deferred one done before it."""
        if self._is_abandoned:
            raise DeadlineExceeded("Nobody waits for this read any more.")
        if self._deadline_s is not None and time.monotonic() > self._deadline_s:
            raise DeadlineExceeded("The query took longer than allowed and was stopped.")
        if self._single is not None:
            return self._execute_single(self._single, sql, values)
        deferred, self._deferred = self._deferred, []
        if not self._begun:
            deferred = [*self._preamble, *deferred]
            self._begun = True
        return self._run((*deferred, (sql, values)))

    def _execute_single(
        self, preamble: Sequence[Statement], sql: str, values: Values
    ) -> list[TupleRow]:
        if self._begun:
            raise SecondStatementError
        self._begun = True
        rows = self._run((*preamble, *self._deferred, (sql, values)), "COMMIT")
        self._finished = True
        return rows

    def _run(self, statements: Sequence[Statement], following: str = "") -> list[TupleRow]:
        try:
            return self._raw.statements.run(statements, following)
        except psycopg.errors.InvalidSqlStatementName as problem:
            # Somebody else uses the session, too: a pooler that was not noticed.
            self._raw.close()
            raise psycopg.OperationalError("a prepared statement was lost") from problem

    def expect_several(self) -> None:
        """Say before the first statement that there will be more than one."""
        if not self._begun:
            self._single = None

    @contextmanager
    def within(self, share: float) -> Iterator[None]:
        """Give a part of a read that share of the time it has left. It can go on after that."""
        outer_s = self._deadline_s
        if outer_s is None or share >= 1.0:
            yield
            return
        now_s = time.monotonic()
        self._deadline_s = now_s + share * max(outer_s - now_s, 0.0)
        self.defer("SAVEPOINT part")
        self.defer(*timeout_statement(self._deadline_s - now_s))
        try:
            yield
        except (DeadlineExceeded, psycopg.errors.QueryCanceled) as problem:
            if self._is_ending:
                raise
            self.defer("ROLLBACK TO SAVEPOINT part")
            raise DeadlineExceeded("A part of the query took longer than allowed.") from problem
        finally:
            if not self._is_ending:
                self._deadline_s = outer_s
                self.defer("RELEASE SAVEPOINT part")
                self.defer(*timeout_statement(outer_s - time.monotonic()))

    def row(self, sql: str, values: Values = None) -> TupleRow | None:
        rows = self.execute(sql, values)
        return rows[0] if rows else None

    def value(self, sql: str, values: Values = None) -> Any:
        row = self.row(sql, values)
        return None if row is None else row[0]

    def defer(self, sql: str, values: Values = None) -> None:
        """Do it before the next statement, or at the end."""
        self._deferred.append((sql, values))

    def lock_once(self, name: object, sql: str, values: Values = None) -> bool:
        """Defer a statement that locks. False: it was done before, or this is a read."""
        if not self.is_write or name in self._locked:
            return False
        self._locked.add(name)
        self.defer(sql, values)
        return True

    @property
    def has_statements(self) -> bool:
        """Whether there is anything to commit."""
        return self._begun or bool(self._deferred)

    def finish(self, sql: str) -> str:
        """COMMIT or ROLLBACK, and what the server made of it."""
        if not self._begun or self._finished:
            return ""
        return self._raw.statements.command(sql)

    # Ending it from another thread

    @property
    def _is_ending(self) -> bool:
        return self._is_abandoned or self._cancelling is not None

    def abandon(self) -> None:
        """Let the statement that runs be the last."""
        self._is_abandoned = True

    def cancel(self) -> None:
        """Interrupt what runs; the connection is not used again."""
        with self._lock:
            if self._is_over or self._cancelling is not None:
                return
            self._deadline_s = 0.0
            self._over = threading.Event()
            self._cancelling = threading.Thread(
                target=_cancel, args=(self._raw, self._over), name="zibaldone-cancel", daemon=True
            )
            self._cancelling.start()

    def end(self) -> bool:
        """Nobody cancels it from here on. False: somebody did, so its connection is spent."""
        with self._lock:
            self._is_over = True
            if self._over is not None:
                self._over.set()
        if self._cancelling is None:
            return True
        self._cancelling.join()
        return False


def timeout_statement(seconds_max: float) -> Statement:
    return settings_statement({"statement_timeout": str(max(1, int(seconds_max * 1_000)))})


def settings_statement(settings: Mapping[str, str], *more: str) -> Statement:
    """Settings of the server for the length of a transaction, in one statement.

    Their names are ours, their values may be a caller's. `more`: further calls of set_config.
    """
    calls = list(more)
    values: dict[str, str] = {}
    for number, (name, value) in enumerate(settings.items()):
        calls.append(f"set_config('{name}', %(value{number})s, true)")
        values[f"value{number}"] = value
    return f"SELECT {', '.join(calls)}", values


def _cancel(raw: Raw, over: threading.Event) -> None:
    with suppress(psycopg.Error):
        raw.cancel_safe(timeout=_CANCEL_SECONDS_MAX)
    if not over.wait(_CANCEL_SECONDS_MAX):
        _log.warning("the server does not stop a query; its connection is closed")
        shut(raw)


def shut(raw: Raw) -> None:
    """End the connection under whoever waits for it in another thread."""
    with suppress(psycopg.Error, OSError):
        duplicate = socket.socket(fileno=os.dup(raw.fileno()))
        with duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)
