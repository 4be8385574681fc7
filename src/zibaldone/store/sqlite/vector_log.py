"""The log of changed vectors, which processes follow that hold vectors in memory."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from zibaldone.limits import VECTOR_CHANGES_KEPT
from zibaldone.store import rows, statements

_SQL = statements.load("zibaldone.store.sqlite", "vector_log.sql")

ALL_CHUNKS = 0
"""In the log: not one chunk changed but all of the model."""


def append(raw: apsw.Connection, changes: Iterable[tuple[int, int]]) -> None:
    """Note changes (model, chunk) in the transaction that makes them."""
    _append(raw, "append", {"changes": rows.dumps(list(changes))})


def append_removed(raw: apsw.Connection, chunk_keys: Iterable[int]) -> None:
    """Note the vectors of chunks, before these are removed."""
    _append(raw, "append_removed", {"chunk_keys": rows.dumps(list(chunk_keys))})


def _append(raw: apsw.Connection, statement: str, values: dict[str, str]) -> None:
    raw.execute(_SQL[statement], values)
    if raw.changes():
        raw.execute(_SQL["trim"], {"kept": VECTOR_CHANGES_KEPT})
