"""Statements that are sent together, and the rows of the last: one round trip.

It uses libpq by psycopg's `pq`, and psycopg's conversion of values. psycopg's own pipeline makes a
cursor and several generators for each statement, which takes longer than the server needs to find
a row by its key; and after each ROLLBACK it forgets what was prepared.
"""

from __future__ import annotations

import re
import select
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

Values = Mapping[str, Any] | None
Statement = tuple[str, Values]

_PREPARED_FROM = 3
"""A statement is prepared when a connection gets it for that time."""

_PREPARED_MAX = 300
"""On one connection. What comes later is sent whole each time."""

_COUNTED_MAX = 1_000
_VALUES_MAX = 100
_AUTO = [PyFormat.AUTO] * _VALUES_MAX

_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")

_Key = tuple[bytes, tuple[int, ...]]
"""A statement and the types of its values."""

_Bound = tuple[_Key, Sequence[Any], Sequence[int]]
"""With the values as the server takes them, and their formats."""


class Pipeline:
    """Of one connection, whose transactions are begun and ended by statements."""

    def __init__(self, raw: psycopg.Connection[TupleRow], *, may_prepare: bool) -> None:
        self._raw = raw
        self._pgconn = raw.pgconn
        self._transformer = Transformer(raw)
        self._may_prepare = may_prepare
        self._prepared: dict[_Key, bytes] = {}
        self._names = 0
        self._uses: dict[_Key, int] = {}
        self._is_spent = False
        self._readable = select.poll()
        self._readable.register(self._pgconn.socket, select.POLLIN)
        self._ready = select.poll()
        self._ready.register(self._pgconn.socket, select.POLLIN | select.POLLOUT)

    def run(self, statements: Sequence[Statement], following: str = "") -> list[TupleRow]:
        """The rows of the last statement.

        `following` is done after it unless something failed. The first that fails is raised; then
        nothing after it was done.
        """
        bound = [self._bind(sql, values) for sql, values in statements]
        if following:
            bound.append(self._bind(following, None))
        results = self._exchange(bound)
        return self._rows(results[len(statements) - 1])

    def command(self, sql: str) -> str:
        """What the server says that it did: after COMMIT, this may be ROLLBACK."""
        (result,) = self._exchange([self._bind(sql, None)])
        return (result.command_status or b"").decode()

    def _bind(self, sql: str, values: Values) -> _Bound:
        if values is None:
            return (sql.encode(), ()), (), ()
        query, names = _numbered(sql)
        if not names:
            return (query, ()), (), ()
        transformer = self._transformer
        dumped = transformer.dump_sequence([values[name] for name in names], _AUTO[: len(names)])
        return (query, tuple(transformer.types or ())), dumped, tuple(transformer.formats or ())

    def _exchange(self, bound: Sequence[_Bound]) -> list[PGresult]:
        """A result for each statement."""
        if self._is_spent:
            raise psycopg.OperationalError("the connection was left in the middle of a statement")
        pgconn = self._pgconn
        self._is_spent = True  # until everything was received
        pgconn.enter_pipeline_mode()
        sent: list[_Key | None] = []
        for statement in bound:
            sent += self._send(*statement)
        pgconn.pipeline_sync()
        received = self._receive()
        pgconn.exit_pipeline_mode()
        self._is_spent = False
        for key, result in zip(sent, received, strict=True):
            if key is not None and result.status != ExecStatus.COMMAND_OK:
                self._prepared.pop(key, None)
        for result in received:
            if result.status == ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result, self._raw.info.encoding)
        return [result for key, result in zip(sent, received, strict=True) if key is None]

    def _send(self, key: _Key, values: Sequence[Any], formats: Sequence[int]) -> list[_Key | None]:
        """Give it to libpq. For each message: what it prepares, if it does that."""
        name = self._prepared.get(key)
        if name is not None:
            self._pgconn.send_query_prepared(name, values, param_formats=formats)
            return [None]
        query, types = key
        if not self._is_often_used(key):
            self._pgconn.send_query_params(query, values, types, formats)
            return [None]
        self._names += 1
        name = self._prepared[key] = b"zibaldone_%d" % self._names
        self._pgconn.send_prepare(name, query, types)
        self._pgconn.send_query_prepared(name, values, param_formats=formats)
        return [key, None]

    def _is_often_used(self, key: _Key) -> bool:
        if not self._may_prepare or len(self._prepared) >= _PREPARED_MAX:
            return False
        if len(self._uses) >= _COUNTED_MAX:
            self._uses.clear()
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        return uses >= _PREPARED_FROM

    def _receive(self) -> list[PGresult]:
        """A result for each message."""
        received: list[PGresult] = []
        try:
            self._flush()
            while (result := self._next()) is not None:
                received.append(result)
        except psycopg.OperationalError as lost:
            for result in received:  # why the server closed it
                if result.status == ExecStatus.FATAL_ERROR:
                    raise errors.error_from_result(result, self._raw.info.encoding) from lost
            raise
        return received

    def _flush(self) -> None:
        while self._pgconn.flush():
            if self._ready.poll()[0][1] & ~select.POLLOUT:
                self._pgconn.consume_input()  # else both sides might wait for the other to read

    def _next(self) -> PGresult | None:
        """None: that was all."""
        pgconn = self._pgconn
        while True:
            while pgconn.is_busy():
                self._readable.poll()
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is not None:
                return None if result.status == ExecStatus.PIPELINE_SYNC else result
            if pgconn.status == ConnStatus.BAD:  # else it is the end of a message's results
                raise psycopg.OperationalError("the connection is closed")

    def _rows(self, result: PGresult) -> list[TupleRow]:
        if result.status != ExecStatus.TUPLES_OK:
            return []
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)


@lru_cache(2_000)
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """With `$1`, `$2` … in place of names, and which name each of them stands for."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${numbers.setdefault(name, len(numbers) + 1)}"

    numbered = _PLACEHOLDER.sub(number, sql)
    if len(numbers) > _VALUES_MAX:
        raise ValueError("a statement has too many values")
    return numbered.encode(), tuple(numbers)
