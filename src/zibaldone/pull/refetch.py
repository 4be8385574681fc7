"""The rows behind documents, read again from their database: by key, and allowed columns only."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import orjson

from zibaldone.errors import DeadlineExceeded, InvalidArgument
from zibaldone.limits import ECHO_CHARS_MAX, REFETCH_PLAN_SECONDS, REFETCH_THREADS
from zibaldone.model.source import SourceDefinition, nearest
from zibaldone.pull.connect import Connection, open_source
from zibaldone.pull.definition import Plan, plan
from zibaldone.pull.values import LEFT_OUT, plain

Key = Mapping[str, Any]
"""The columns of a key and their values, as a document has them in `pk`."""

FetchedRow = dict[str, Any]


class Refetcher:
    """Reads rows in threads of its own: a database that hangs stops nobody else."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(REFETCH_THREADS, thread_name_prefix="refetch")
        self._plans: dict[bytes, tuple[float, Plan]] = {}

    async def rows(
        self,
        definition: SourceDefinition,
        keys: Sequence[Key],
        columns: Sequence[str],
        seconds_max: float,
    ) -> list[FetchedRow | None]:
        """The row of each key, or None where there is none any more.

        Without `columns` all that may be fetched. InvalidArgument: one of them may not, or the
        definition does not fit the table. SourceUnavailable: the database cannot be asked.
        """
        deadline_s = time.monotonic() + seconds_max
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, self._rows, definition, keys, columns, deadline_s
        )

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _rows(
        self,
        definition: SourceDefinition,
        keys: Sequence[Key],
        columns: Sequence[str],
        deadline_s: float,
    ) -> list[FetchedRow | None]:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceeded("The row was not fetched: too many wait for their databases.")
        with open_source(
            definition, self._environment, seconds_max=left_s, is_tolerant=True
        ) as source:
            made = self._plan(source, definition)
            chosen = _chosen(definition, made, columns)
            read = tuple(dict.fromkeys((*definition.key, *chosen)))
            bound = [_bound(source, made, key) for key in keys]
            found: dict[bytes, FetchedRow] = {}
            for row in source.rows(made.select_keys(read, bound)):
                values = {name: _shown(value) for name, value in zip(read, row, strict=True)}
                identity = _identity([values[name] for name in definition.key])
                found[identity] = {name: values[name] for name in chosen}
        return [found.get(_identity([key.get(name) for name in definition.key])) for key in keys]

    def _plan(self, source: Connection, definition: SourceDefinition) -> Plan:
        """Reflecting a table takes several statements, and tables seldom change."""
        identity = orjson.dumps([definition.name, definition.namespace, definition.as_dict()])
        now_s = time.monotonic()
        known = self._plans.get(identity)
        if known is not None and now_s < known[0]:
            return known[1]
        made = plan(source, definition)
        fresh = {name: known for name, known in self._plans.items() if now_s < known[0]}
        self._plans = {**fresh, identity: (now_s + REFETCH_PLAN_SECONDS, made)}
        return made


def _chosen(definition: SourceDefinition, made: Plan, columns: Sequence[str]) -> tuple[str, ...]:
    allowed = made.mapper.columns if definition.refetch is None else definition.refetch
    if not columns:
        return tuple(allowed)
    for name in columns:
        if name not in allowed:
            hint = nearest(name[:ECHO_CHARS_MAX], allowed)
            meant = f" Did you mean {hint!r}?" if hint else ""
            raise InvalidArgument(
                f"The column {name[:ECHO_CHARS_MAX]!r} of {definition.name!r} may not be fetched."
                f"{meant}",
                field="columns",
                allowed=list(allowed),
            )
    return tuple(dict.fromkeys(columns))


def _bound(source: Connection, made: Plan, key: Key) -> tuple[Any, ...]:
    """A key as its database takes it: what JSON has no type for was written as text."""
    values = []
    for name in made.definition.key:
        value = key.get(name)
        column = made.info.column(name)
        kind = "other" if column is None else column.kind
        if isinstance(value, str) and kind == "binary":
            value = bytes.fromhex(value)
        elif isinstance(value, str) and kind == "time" and source.dialect_name != "sqlite":
            value = datetime.fromisoformat(value).replace(tzinfo=None)
        values.append(value)
    return tuple(values)


def _shown(value: Any) -> Any:
    shown = plain(value)
    if shown is LEFT_OUT:
        return {"base64": base64.b64encode(bytes(value)).decode()}
    return shown


def _identity(key: Sequence[Any]) -> bytes:
    hexed = [
        base64.b64decode(value["base64"]).hex() if isinstance(value, dict) else value
        for value in key
    ]
    return orjson.dumps(hexed)
