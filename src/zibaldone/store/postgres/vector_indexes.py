"""Indexes over vectors: one for each model that has many, built while reads and writes go on.

Without its index a model's vectors are all compared, so a search is right in the meantime, but
slower. A build that was cut short leaves an index that serves nobody; it is dropped first.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from zibaldone.errors import ZibaldoneError
from zibaldone.store import statements
from zibaldone.store.postgres import scopes
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Raw, connect, settings_statement
from zibaldone.store.postgres.faults import translated

_SQL = statements.load("zibaldone.store.postgres", "vector_indexes.sql")

VECTORS_MIN = 10_000
"""With fewer, all are compared in a few milliseconds, and each write is spared an entry."""

_DIMENSIONS_MAX = 4_000
"""What pgvector can index of half precision."""

_PAUSE_SECONDS = 15.0
"""After vectors were stored, before somebody looks whether an index is due."""

_log = logging.getLogger("zibaldone.store")


@dataclass(frozen=True, slots=True)
class _Model:
    model_id: int
    dimensions: int
    schema: str
    """Where pgvector is."""
    is_valid: bool | None
    """Whether its index can be used; None: it has none."""
    vectors: int
    """Counted up to VECTORS_MIN."""

    @property
    def name(self) -> str:
        return f"vectors_nearest_{int(self.model_id)}"

    @property
    def is_due(self) -> bool:
        is_large = self.vectors >= VECTORS_MIN and self.dimensions <= _DIMENSIONS_MAX
        return is_large and not self.is_valid

    @property
    def is_useless(self) -> bool:
        """Its build was cut short, or the model has no vectors any more."""
        return self.is_valid is False or (self.is_valid is True and not self.vectors)

    def drop(self, raw: Raw) -> None:
        raw.execute(f"DROP INDEX CONCURRENTLY IF EXISTS zibaldone.{self.name}".encode())

    def build(self, raw: Raw) -> None:
        raw.execute(
            f"CREATE INDEX CONCURRENTLY {self.name} ON zibaldone.vectors USING hnsw "
            f"((vector::{self.schema}.halfvec({int(self.dimensions)})) "
            f"{self.schema}.halfvec_cosine_ops) "
            f"WHERE model_id = {int(self.model_id)}".encode()
        )


class VectorIndexes:
    """Builds what is due: when asked, and a while after vectors were stored."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._building: Raw | None = None
        self._is_due = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def note_vectors(self) -> None:
        if self._is_due.is_set():
            return
        with self._lock:
            self._is_due.set()
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="zibaldone-vector-index", daemon=True
                )
                self._thread.start()

    def build(self) -> None:
        """Build what is due, unless somebody else is about it."""
        with translated(self._address):
            holder, raw = connect(self._address), connect(self._address)
            try:
                self._set_building(raw)
                # The lock is that of a transaction, so that it also holds behind a pooler.
                holder.execute("BEGIN")
                if holder.execute(_SQL["lock"].encode()).fetchone() == (True,):
                    self._build_all(raw)
            finally:
                self._set_building(None)
                raw.close()
                holder.close()

    def cancel(self) -> None:
        """End a build; what it leaves is dropped by the next one."""
        with self._lock:
            if self._building is not None:
                with suppress(psycopg.Error):
                    self._building.cancel_safe(timeout=2.0)

    def close(self) -> None:
        self._closing.set()
        self._is_due.set()
        self.cancel()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.5)
            self.cancel()  # it may have begun just now

    def _set_building(self, raw: Raw | None) -> None:
        with self._lock:
            self._building = raw

    def _build_all(self, raw: Raw) -> None:
        is_ours = not raw.is_pooled  # else a pooler gives the session to others
        if is_ours:
            raw.execute(_SQL["session"].encode())
        for model in self._models(raw):
            if self._closing.is_set():
                return
            if model.is_useless:
                model.drop(raw)
            if model.is_due:
                self._build(raw, model, may_retry=is_ours)

    def _build(self, raw: Raw, model: _Model, *, may_retry: bool) -> None:
        _log.info("building the index of the vectors of model %s", model.model_id)
        try:
            model.build(raw)
        except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
            if not may_retry:
                raise
            raw.execute(_SQL["alone"].encode())
            model.drop(raw)
            model.build(raw)
        _log.info("the index of the vectors of model %s is there", model.model_id)

    def _models(self, raw: Raw) -> list[_Model]:
        sql, values = settings_statement(scopes.OF_UPKEEP)
        with raw.transaction():
            raw.execute(sql.encode(), values)
            selected = raw.execute(_SQL["models"].encode(), {"limit": VECTORS_MIN})
            return [_Model(*row) for row in selected]

    def _run(self) -> None:
        while True:
            self._is_due.wait()
            if self._closing.wait(_PAUSE_SECONDS):
                return
            self._is_due.clear()
            try:
                self.build()
            except ZibaldoneError as problem:
                if not self._closing.is_set():
                    _log.warning("an index of vectors was not built: %s", problem.message)
