"""Documents, queue and vectors compared: what is missing, what is left over, how much waits."""

from __future__ import annotations

from zibaldone.model.job import VECTORS
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.upkeep import IndexCounts, PendingLag

_SQL = statements.load("zibaldone.store.postgres", "consistency.sql")


class ConsistencyUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def counts(self, model_id: int) -> IndexCounts:
        (row,) = self._transaction.execute(_SQL["counts"], {"model_id": model_id, "kind": VECTORS})
        return IndexCounts(*row)

    def lag(self) -> PendingLag:
        (row,) = self._transaction.execute(_SQL["lag"], {"kind": VECTORS})
        return PendingLag(*row)

    def failed_documents(self, limit: int) -> list[tuple[str, str]]:
        failed = self._transaction.execute(_SQL["failed_documents"], {"limit": limit})
        return [(row[0], row[1]) for row in failed]

    def unqueued_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        values = {"kind": VECTORS, "model_id": model_id, "after": after, "limit": limit}
        return [
            (row[0], bool(row[1]))
            for row in self._transaction.execute(_SQL["unqueued_page"], values)
        ]

    def orphan_vectors(self, limit: int) -> list[tuple[int, int]]:
        orphans = self._transaction.execute(_SQL["orphan_vectors"], {"limit": limit})
        return [(row[0], row[1]) for row in orphans]

    def ghost_documents(self, model_id: int, limit: int) -> list[tuple[str, str]]:
        values = {"model_id": model_id, "limit": limit}
        return [
            (row[0], row[1]) for row in self._transaction.execute(_SQL["ghost_documents"], values)
        ]
