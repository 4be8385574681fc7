"""Read rows again from their source, by key: what is there now, not what was pulled.

Only columns that the definition allows, only by a key that is bound, and bounded in rows, bytes and
time.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from zibaldone.errors import InvalidArgument, SourceUnavailable
from zibaldone.limits import (
    REFETCH_BYTES_MAX,
    REFETCH_IDLE_SECONDS_MAX,
    REFETCH_PLAN_SECONDS_MAX,
    REFETCH_ROWS_MAX,
    REFETCH_SECONDS_MAX,
)
from zibaldone.model.source import SourceDefinition, nearest
from zibaldone.pull.connect import Connection
from zibaldone.pull.definition import Plan, plan
from zibaldone.pull.faults import Undecodable
from zibaldone.pull.values import LEFT_OUT, plain

_PLANS_MAX = 1_000

_FIRST_ROWS = 4
"""Read before it is known how large rows are."""


@dataclass(frozen=True, slots=True)
class RefetchedRow:
    key: Mapping[str, Any]
    row: Mapping[str, Any] | None
    """Native values; None: the row is not in the source any more."""


@dataclass(frozen=True, slots=True)
class Refetched:
    rows: tuple[RefetchedRow, ...]
    """In the order of the keys."""
    is_truncated: bool
    """Rows were left out because of a bound."""


def allowed_columns(definition: SourceDefinition, made: Plan) -> tuple[str, ...]:
    """The columns that may be read again: those the definition lists, else those of documents."""
    return made.mapper.columns if definition.refetch is None else definition.refetch


async def refetch(
    definition: SourceDefinition,
    keys: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    *,
    rows_max: int = REFETCH_ROWS_MAX,
    bytes_max: int = REFETCH_BYTES_MAX,
    seconds_max: float = REFETCH_SECONDS_MAX,
    environment: Mapping[str, str] | None = None,
) -> Refetched:
    """Rows by their keys, each as a document's `pk` has it. No columns: all that are allowed.

    InvalidArgument: a column is not allowed, and so not read. SourceUnavailable: no answer in time.
    """
    given = os.environ if environment is None else environment
    seconds = min(seconds_max, definition.seconds_max)
    work = _Refetch(definition, given, list(keys), columns, rows_max, bytes_max, seconds)
    running = asyncio.get_running_loop().run_in_executor(None, work.run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.to_thread(work.cancel)
        await asyncio.gather(running, return_exceptions=True)
        raise


_PLANS: dict[bytes, tuple[float, Plan]] = {}
"""How sources are read, by their definitions: asking a database what a table is takes longer than
asking for a row."""


def _recent_plan(connection: Connection, definition: SourceDefinition) -> Plan:
    key, now_s = _plan_key(definition), time.monotonic()
    made_s, made = _PLANS.get(key, (0.0, None))
    if made is None or now_s - made_s > REFETCH_PLAN_SECONDS_MAX:
        made = plan(connection, definition)
        if len(_PLANS) >= _PLANS_MAX:
            _PLANS.clear()
        _PLANS[key] = (now_s, made)
    return made


def _plan_key(definition: SourceDefinition) -> bytes:
    return orjson.dumps([definition.name, definition.namespace, definition.as_dict()])


Place = tuple[str, str, bool]
"""The name of the source, which errors repeat, its URL, and whether its texts may be no UTF-8."""


class _Idle:
    """Connections that were used a moment ago: opening one takes longer than asking for a row.

    None to files, which are opened quickly and may be replaced by others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Place, list[tuple[float, Connection]]] = {}
        self._has_timer = False
        """Somebody comes to close what is old: one thread, however many connections are used."""

    def take(self, place: Place) -> Connection | None:
        with self._lock:
            waiting = self._waiting.get(place, [])
            return waiting.pop()[1] if waiting else None

    def give_back(self, connection: Connection, place: Place, *, is_well: bool) -> None:
        is_well = is_well and connection.dialect_name != "sqlite"
        if is_well and not connection.is_cancelled:
            try:
                connection.rest()
            except (SourceUnavailable, InvalidArgument):
                is_well = False
        with self._lock:
            waiting = self._waiting.setdefault(place, [])
            if is_well and not connection.is_cancelled and len(waiting) < _IDLE_PER_PLACE_MAX:
                waiting.append((time.monotonic(), connection))
                self._come_back()
                return
        connection.close()

    def _come_back(self) -> None:
        if not self._has_timer:
            self._has_timer = True
            timer = threading.Timer(REFETCH_IDLE_SECONDS_MAX, self._close_in_time)
            timer.daemon = True
            timer.start()

    def _close_in_time(self) -> None:
        self.close_old()
        with self._lock:
            self._has_timer = False
            if self._waiting:
                self._come_back()

    def close_old(self, idle_seconds: float = REFETCH_IDLE_SECONDS_MAX) -> None:
        before_s = time.monotonic() - idle_seconds
        with self._lock:
            entries = [entry for waiting in self._waiting.values() for entry in waiting]
            old = [connection for since_s, connection in entries if since_s <= before_s]
            for place, waiting in list(self._waiting.items()):
                left = [entry for entry in waiting if entry[1] not in old]
                if left:
                    self._waiting[place] = left
                else:
                    del self._waiting[place]
        for connection in old:
            connection.close()


_IDLE_PER_PLACE_MAX = 2
_IDLE = _Idle()
atexit.register(_IDLE.close_old, 0.0)


class _Refetch:
    def __init__(
        self,
        definition: SourceDefinition,
        environment: Mapping[str, str],
        keys: list[Mapping[str, Any]],
        columns: Sequence[str] | None,
        rows_max: int,
        bytes_max: int,
        seconds_max: float,
    ) -> None:
        self._definition = definition
        self._environment = environment
        self._keys = keys
        self._columns = columns
        self._rows_max = max(0, min(rows_max, REFETCH_ROWS_MAX))
        self._bytes_max = max(0, min(bytes_max, REFETCH_BYTES_MAX))
        self._seconds_max = seconds_max
        self._connection: Connection | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        self._is_cancelled = True
        if (connection := self._connection) is not None:
            connection.cancel()

    def run(self) -> Refetched:
        try:
            return self._run_decoding()
        except InvalidArgument as error:
            is_known = _PLANS.pop(_plan_key(self._definition), None) is not None
            if error.details.get("reason") != "missing" or not is_known:
                raise
        return self._run_decoding()  # the table is no longer what it was a minute ago

    def _run_decoding(self) -> Refetched:
        try:
            return self._run(is_tolerant=False)
        except Undecodable:
            return self._run(is_tolerant=True)

    def _run(self, *, is_tolerant: bool) -> Refetched:
        definition = self._definition
        keys = [self._values(key) for key in self._keys[: self._rows_max]]
        place = (definition.name, definition.resolved_url(self._environment), is_tolerant)
        connection = self._connected(place)
        is_well = False
        try:
            made = _recent_plan(connection, definition)
            columns = self._chosen(made)
            wanted = (*definition.key, *(name for name in columns if name not in definition.key))
            keys, rows = self._read(connection, made, wanted, keys)
            is_well = True
        finally:
            self._connection = None
            _IDLE.give_back(connection, place, is_well=is_well)
        places = [wanted.index(name) for name in columns]
        length = len(definition.key)
        by_key = {_comparable(row[:length]): row for row in rows}
        return self._bounded(keys, by_key, columns, places)

    def _connected(self, place: Place) -> Connection:
        self._connection = found = _IDLE.take(place)
        if found is not None:
            try:
                found.renew(self._seconds_max)
            except (SourceUnavailable, InvalidArgument):  # it was closed from the other side
                found.close()
                if self._is_cancelled:
                    raise
            else:
                return found
        name, url, is_tolerant = place
        fresh = Connection(name, url, seconds_max=self._seconds_max, is_tolerant=is_tolerant)
        self._connection = fresh
        return fresh.__enter__()

    def _read(
        self,
        connection: Connection,
        made: Plan,
        wanted: tuple[str, ...],
        keys: list[tuple[Any, ...]],
    ) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The keys that were looked for and the rows that they have.

        Rows are read some at a time, as many as may still fit into the answer: a few could take
        gigabytes.
        """
        until_s = time.monotonic() + self._seconds_max
        bound = [_native(made, self._definition.key, values) for values in keys]
        rows: list[tuple[Any, ...]] = []
        place, count, left_chars = 0, _FIRST_ROWS, self._bytes_max
        while place < len(bound) and left_chars >= 0 and (not rows or time.monotonic() < until_s):
            batch = bound[place : place + count]
            read = connection.rows(made.select_keys(wanted, batch))
            place += len(batch)
            rows += read
            # Without the key: whether it is part of the answer is another question.
            chars = sum(_json_chars(row[len(self._definition.key) :]) for row in read)
            left_chars -= chars
            each = max(1, (chars + sum(map(_bytes, read))) // max(1, len(read)))
            count = max(1, min(2 * count, left_chars // each))
        return keys[:place], rows

    def _chosen(self, made: Plan) -> tuple[str, ...]:
        allowed = allowed_columns(self._definition, made)
        if self._columns is None:
            return allowed
        refused = [name for name in self._columns if name not in allowed]
        if refused:
            hint = nearest(refused[0], allowed)
            suggestion = f" Did you mean {hint!r}?" if hint else ""
            raise InvalidArgument(
                f"The column {refused[0]!r} of the source {self._definition.name!r} may not be "
                f"read.{suggestion} Allowed: {', '.join(allowed)}.",
                field="columns",
                refused=refused,
                allowed=list(allowed),
            )
        return tuple(dict.fromkeys(self._columns))

    def _values(self, key: Mapping[str, Any]) -> tuple[Any, ...]:
        missing = [name for name in self._definition.key if name not in key]
        if missing:
            raise InvalidArgument(
                f"The document's key has no {missing[0]!r}: it was pulled by another definition. "
                "Sync the source.",
                field="doc_ids",
            )
        return tuple(key[name] for name in self._definition.key)

    def _bounded(
        self,
        keys: list[tuple[Any, ...]],
        by_key: Mapping[tuple[str, ...], tuple[Any, ...]],
        columns: Sequence[str],
        places: Sequence[int],
    ) -> Refetched:
        found: list[RefetchedRow] = []
        left_bytes = self._bytes_max
        is_truncated = len(self._keys) > len(keys)
        for key in keys:
            row = by_key.get(_comparable(key))
            native: dict[str, Any] | None = None
            if row is not None:
                values = (plain(row[place]) for place in places)
                native = {
                    name: None if value is LEFT_OUT else value
                    for name, value in zip(columns, values, strict=True)
                }
                left_bytes -= len(orjson.dumps(native))
                if left_bytes < 0:
                    is_truncated = True
                    break
            pk = dict(zip(self._definition.key, key, strict=True))
            found.append(RefetchedRow(pk, native))
        return Refetched(tuple(found), is_truncated)


def _json_chars(row: Sequence[Any]) -> int:
    """The JSON of a row has no fewer bytes."""
    return sum(
        len(orjson.dumps(value, default=str)) if isinstance(value, dict | list) else len(value)
        for value in row
        if isinstance(value, str | dict | list)
    )


def _bytes(row: Sequence[Any]) -> int:
    return sum(len(value) for value in row if isinstance(value, bytes | bytearray | memoryview))


def _native(made: Plan, names: Sequence[str], key: Sequence[Any]) -> tuple[Any, ...]:
    """A key as its driver takes it: JSON has no bytes and no times."""
    values = []
    for name, value in zip(names, key, strict=True):
        column = made.info.column(name)
        kind = "other" if column is None else column.kind
        converted = value
        if isinstance(value, str) and kind == "binary":
            with suppress(ValueError):
                converted = bytes.fromhex(value)
        elif isinstance(value, str) and kind == "time":
            with suppress(ValueError):
                moment = datetime.fromisoformat(value)
                converted = moment.replace(tzinfo=None) if value.endswith("Z") else moment
        values.append(converted)
    return tuple(values)


def _comparable(key: Sequence[Any]) -> tuple[str, ...]:
    """Keys were stored as JSON: a time is text there, and a time in the source."""
    return tuple(
        bytes(value).hex()
        if isinstance(value, bytes | bytearray | memoryview)
        else str(plain(value))
        for value in key
    )
