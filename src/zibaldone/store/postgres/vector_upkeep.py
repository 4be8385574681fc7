"""Vectors as background work sees them: by storage key, a set of documents at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zibaldone.model.job import VECTORS, new_job_id
from zibaldone.model.vector import Vectors
from zibaldone.store import rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import lock_documents
from zibaldone.store.postgres.queue import QueueUpkeep
from zibaldone.store.postgres.vectors import as_array
from zibaldone.store.upkeep import ChunkText, DocumentState

_SQL = statements.load("zibaldone.store.postgres", "vector_upkeep.sql")

_STATE: rows.Kinds = (int, str, str, int, str, bool)

NOTE = "vectors"
"""In `Transaction.totals`: vectors were added or dropped, so an index may be due."""


class VectorUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._queue = QueueUpkeep(transaction)

    def states(self, document_keys: Iterable[int]) -> dict[int, DocumentState]:
        selected = self._transaction.execute(_SQL["states"], {"document_keys": list(document_keys)})
        return {row[0]: DocumentState(*rows.require(row, _STATE)) for row in selected}

    def chunks_without_vector(
        self, document_keys: Iterable[int], model_id: int, limit: int
    ) -> Mapping[int, Sequence[ChunkText]]:
        values = {"document_keys": list(document_keys), "model_id": model_id, "limit": limit}
        chunks: defaultdict[int, list[ChunkText]] = defaultdict(list)
        selected = self._transaction.execute(_SQL["chunks_without_vector"], values)
        for document_key, *chunk in selected:
            chunks[document_key].append(ChunkText(*chunk))
        return chunks

    def hold(self, document_keys: Iterable[int]) -> set[int]:
        values = {"document_keys": list(document_keys)}
        return {row[0] for row in self._transaction.execute(_SQL["hold"], values)}

    def lacking(self, document_keys: Iterable[int], model_id: int) -> set[int]:
        values = {"document_keys": list(document_keys), "model_id": model_id}
        return {row[0] for row in self._transaction.execute(_SQL["lacking"], values)}

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        values = {"model_id": model_id, "after": after, "limit": limit}
        selected = self._transaction.execute(_SQL["lacking_page"], values)
        return [(row[0], row[1]) for row in selected]

    def put(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None:
        packed = [as_array(vector) for vector in vectors]
        if len(packed) != len(chunk_keys):
            raise ValueError(f"{len(packed)} vectors for {len(chunk_keys)} chunks")
        if not packed:
            return
        self._transaction.totals[NOTE] = True
        self._transaction.execute(
            _SQL["put"],
            {"model_id": model_id, "chunk_keys": list(chunk_keys), "vectors": packed},
        )

    def delete(self, vectors: Iterable[tuple[int, int]]) -> None:
        listed = list(vectors)
        self._transaction.defer(
            _SQL["delete"],
            {
                "model_ids": [model_id for model_id, _ in listed],
                "chunk_keys": [chunk_key for _, chunk_key in listed],
            },
        )

    def drop(self, model_id: int, limit: int) -> int:
        self._transaction.totals[NOTE] = True
        values = {"model_id": model_id, "limit": limit}
        return len(self._transaction.execute(_SQL["drop"], values))

    def enqueue_missing(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        return self._enqueue("enqueue_missing", document_keys, at_us, {"model_id": model_id})

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        self._enqueue("enqueue_cut", document_keys, at_us, {})

    def _enqueue(
        self, statement: str, document_keys: Iterable[int], at_us: int, values: dict[str, int]
    ) -> int:
        keys = list(document_keys)
        lock_documents(self._transaction, keys)
        added = self._transaction.execute(
            _SQL[statement],
            {
                **values,
                "document_keys": keys,
                "job_ids": [new_job_id() for _ in keys],
                "kind": VECTORS,
                "at_us": at_us,
            },
        )
        subjects = [(namespace, subject) for namespace, subject in added]
        if subjects:
            self._transaction.has_queued = True
            self._queue.forget_ended(VECTORS, subjects)
            queued = [int(subject) for _, subject in subjects]
            self._transaction.defer(_SQL["set_pending"], {"document_keys": queued})
        return len(subjects)

    def set_ready(self, revisions: Iterable[tuple[int, int]]) -> None:
        self._set("set_ready", list(revisions), {})

    def set_error(self, errors: Iterable[tuple[int, int, str]]) -> None:
        listed = list(errors)
        reasons = {"reasons": [reason for _, _, reason in listed]}
        self._set("set_error", [(key, revision) for key, revision, _ in listed], reasons)

    def _set(
        self, statement: str, revisions: Sequence[tuple[int, int]], values: dict[str, Any]
    ) -> None:
        keys = [key for key, _ in revisions]
        lock_documents(self._transaction, keys)
        numbers = [revision for _, revision in revisions]
        self._transaction.defer(
            _SQL[statement], {**values, "document_keys": keys, "revisions": numbers}
        )
