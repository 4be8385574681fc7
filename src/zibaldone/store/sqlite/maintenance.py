"""The index pipeline's side of the store: the outbox, the vectors and their state.

It belongs to the server, not to a tenant: it works by storage keys across all namespaces, and no
tool can reach it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from zibaldone.limits import INDEX_WORKER_ALIVE_SECONDS
from zibaldone.model.vector import Vectors
from zibaldone.store import statements
from zibaldone.store.sqlite.chunks import ChunkTable
from zibaldone.store.sqlite.queue import QueueUpkeep
from zibaldone.store.sqlite.rows import require
from zibaldone.store.sqlite.schedules import ScheduleUpkeep
from zibaldone.store.sqlite.sources import SourceUpkeep
from zibaldone.store.sqlite.vector_index import pack
from zibaldone.store.sqlite.vectors import ALL_PASSAGES
from zibaldone.store.upkeep import (
    Claim,
    DocumentState,
    IndexCounts,
    LeasedChange,
    ModelInUse,
    ModelVectors,
    Passage,
    PendingLag,
)

_SQL = statements.load("zibaldone.store.sqlite", "index.sql")


_ALIVE_US = int(INDEX_WORKER_ALIVE_SECONDS * 1_000_000)


class Maintenance:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw
        self.sources = SourceUpkeep(raw)
        self.queue = QueueUpkeep(raw)
        self.schedules = ScheduleUpkeep(raw)
        self.chunks = ChunkTable(raw)

    # Who works on the outbox

    def claim(self, worker_key: int, model_id: int, now_us: int) -> Claim:
        self._raw.execute(_SQL["forget_dead"], _alive(now_us))
        in_use = self.model_in_use(now_us)
        if in_use is not None and in_use.model_id != model_id:
            return Claim(in_use.identity, is_new=True)
        is_new = not self._value("is_known", {"worker_key": worker_key})
        until_us = now_us + _ALIVE_US
        values = {"worker_key": worker_key, "model_id": model_id, "alive_until_us": until_us}
        self._raw.execute(_SQL["join_workers"], values)
        return Claim(None, is_new)

    def resign(self, worker_key: int) -> None:
        self._raw.execute(_SQL["leave_workers"], {"worker_key": worker_key})

    def model_in_use(self, now_us: int) -> ModelInUse | None:
        row = self._raw.execute(_SQL["model_in_use"], _alive(now_us)).fetchone()
        return None if row is None else ModelInUse(*require(row, (int, str)))

    # The outbox

    def lease(self, *, limit: int, now_us: int, leased_until_us: int) -> list[LeasedChange]:
        """One entry for each document: its newest leased change stands for the older ones."""
        rows = self._raw.execute(
            _SQL["lease"], {"limit": limit, "now_us": now_us, "leased_until_us": leased_until_us}
        )
        leased = [LeasedChange(*require(row, (int, int, int))) for row in rows]
        leased.sort(key=lambda change: change.outbox_key)
        return list({change.document_key: change for change in leased}.values())

    def has_due(self, now_us: int) -> bool:
        return bool(self._value("has_due", {"now_us": now_us}))

    def renew(self, change: LeasedChange, leased_until_us: int) -> None:
        self._raw.execute(_SQL["renew"], {**_keys(change), "leased_until_us": leased_until_us})

    def release(self, change: LeasedChange) -> None:
        self._raw.execute(_SQL["release"], _keys(change))

    def finish(self, change: LeasedChange) -> None:
        self._raw.execute(_SQL["finish"], _keys(change))

    def retry(self, change: LeasedChange, *, not_before_us: int, error: str) -> None:
        values = {**_keys(change), "not_before_us": not_before_us, "error": error}
        self._raw.execute(_SQL["retry"], values)

    def wait(self, change: LeasedChange, *, not_before_us: int, error: str) -> None:
        values = {**_keys(change), "not_before_us": not_before_us, "error": error}
        self._raw.execute(_SQL["wait"], values)

    def park(self, change: LeasedChange, error: str) -> None:
        self._raw.execute(_SQL["park"], {**_keys(change), "error": error})

    def enqueue(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        """Ask for documents to be indexed that still need it; how many these were."""
        count = 0
        for document_key in document_keys:
            values = {"document_key": document_key, "model_id": model_id, "at_us": at_us}
            self._raw.execute(_SQL["enqueue"], values)
            if self._raw.changes():
                count += 1
                for statement in ("forget_parked", "set_pending"):
                    self._raw.execute(_SQL[statement], {"document_key": document_key})
        return count

    def enqueue_cut(self, document_key: int, at_us: int) -> None:
        values = {"document_key": document_key, "at_us": at_us}
        self._raw.execute(_SQL["enqueue_cut"], values)
        if self._raw.changes():
            for statement in ("forget_parked", "set_pending"):
                self._raw.execute(_SQL[statement], {"document_key": document_key})

    def last_change(self) -> int:
        return int(self._value("last_change", {}))

    def queued(self, through: int) -> int:
        return int(self._value("queued", {"outbox_key": through}))

    # Documents and their vectors

    def document_state(self, document_key: int) -> DocumentState | None:
        row = self._raw.execute(_SQL["document_state"], {"document_key": document_key}).fetchone()
        if row is None:
            return None
        document_id, title, revision, status, is_live = require(row, (str, str, int, str, int))
        return DocumentState(document_key, document_id, title, revision, status, bool(is_live))

    def chunks_without_vector(self, document_key: int, model_id: int, limit: int) -> list[Passage]:
        values = {"document_key": document_key, "model_id": model_id, "limit": limit}
        return [Passage(*row) for row in self._raw.execute(_SQL["chunks_without_vector"], values)]

    def lacks_vectors(self, document_key: int, model_id: int) -> bool:
        values = {"document_key": document_key, "model_id": model_id}
        return bool(self._value("lacks_vectors", values))

    def put_vectors(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None:
        for chunk_key, vector in zip(chunk_keys, vectors, strict=True):
            values = {"model_id": model_id, "chunk_key": chunk_key}
            self._raw.execute(_SQL["put_vector"], {**values, "vector": pack(vector)})
            if self._raw.changes():
                self._raw.execute(_SQL["log_change"], values)

    def set_ready(self, document_key: int, revision: int) -> None:
        values = {"document_key": document_key, "revision": revision}
        self._raw.execute(_SQL["set_ready"], values)

    def set_error(self, document_key: int, revision: int, error: str) -> None:
        values = {"document_key": document_key, "revision": revision, "error": error}
        self._raw.execute(_SQL["set_error"], values)

    def trim_changes(self, kept: int) -> None:
        self._raw.execute(_SQL["trim_changes"], {"kept": kept})

    # Models

    def model_id(self, identity: str, dimensions: int, now_us: int) -> int:
        """The number of a model; one that is new here gets one."""
        self._raw.execute(
            _SQL["add_model"],
            {"identity": identity, "dimensions": dimensions, "created_at_us": now_us},
        )
        row = self._raw.execute(_SQL["model"], {"identity": identity}).fetchone()
        assert row is not None, "it was added just now"  # noqa: S101
        return int(row[0])

    def models(self) -> list[ModelVectors]:
        return [ModelVectors(*row) for row in self._raw.execute(_SQL["models"])]

    def drop_vectors(self, model_id: int, limit: int) -> int:
        """Remove some of a model's vectors; how many these were."""
        self._raw.execute(_SQL["drop_page"], {"model_id": model_id, "limit": limit})
        dropped = self._raw.changes()
        if dropped:
            values = {"model_id": model_id, "chunk_key": ALL_PASSAGES}
            self._raw.execute(_SQL["log_change"], values)
        return dropped

    # Looking for what is wrong

    def unqueued_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        return self._page("unqueued_page", model_id, after, limit)

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        return self._page("lacking_page", model_id, after, limit)

    def _page(self, name: str, model_id: int, after: int, limit: int) -> list[tuple[int, bool]]:
        values = {"model_id": model_id, "after": after, "limit": limit}
        return [(row[0], bool(row[1])) for row in self._raw.execute(_SQL[name], values)]

    def orphan_vectors(self, limit: int) -> list[tuple[int, int]]:
        return [
            (row[0], row[1]) for row in self._raw.execute(_SQL["orphan_vectors"], {"limit": limit})
        ]

    def delete_vectors(self, vectors: Iterable[tuple[int, int]]) -> None:
        for model_id, chunk_key in vectors:
            values = {"model_id": model_id, "chunk_key": chunk_key}
            self._raw.execute(_SQL["delete_vector"], values)
            self._raw.execute(_SQL["log_change"], values)

    def ghost_documents(self, model_id: int, limit: int) -> list[tuple[str, str]]:
        values = {"model_id": model_id, "limit": limit}
        return [(row[0], row[1]) for row in self._raw.execute(_SQL["ghost_documents"], values)]

    def failed_documents(self, limit: int) -> list[tuple[str, str]]:
        rows = self._raw.execute(_SQL["failed_documents"], {"limit": limit})
        return [(row[0], row[1]) for row in rows]

    def counts(self, model_id: int) -> IndexCounts:
        (row,) = self._raw.execute(_SQL["counts"], {"model_id": model_id})
        return IndexCounts(*row)

    def pending_lag(self) -> PendingLag:
        (row,) = self._raw.execute(_SQL["pending_lag"])
        return PendingLag(*row)

    def _value(self, statement: str, values: dict[str, int]) -> int:
        value: int = self._raw.execute(_SQL[statement], values).get
        return value


def _alive(now_us: int) -> dict[str, int]:
    return {"now_us": now_us, "latest_us": now_us + 2 * _ALIVE_US}


def _keys(change: LeasedChange) -> dict[str, int]:
    return {"document_key": change.document_key, "outbox_key": change.outbox_key}
