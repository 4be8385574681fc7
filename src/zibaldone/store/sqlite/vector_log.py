"""The log of changed vectors, which processes follow that hold vectors in memory."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from zibaldone.limits import VECTOR_CHANGES_KEPT
from zibaldone.store import statements
from zibaldone.store.sqlite import rows

_SQL = statements.load("zibaldone.store.sqlite", "vector_log.sql")

ALL_CHUNKS = 0
"""In the log: not one chunk changed but all of the model."""


def append(raw: apsw.Connection, changes: Iterable[tuple[int, int]]) -> None:
    """Note changes (model, chunk) in the transaction that makes them, and keep the log short."""
    listed = list(changes)
    if listed:
        raw.execute(_SQL["append"], {"changes": rows.dumps(listed)})
        raw.execute(_SQL["trim"], {"kept": VECTOR_CHANGES_KEPT})
