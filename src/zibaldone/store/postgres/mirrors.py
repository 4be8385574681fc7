"""Indexes of vectors outside of the database: what each has yet to take over."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.vector import np
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.tenants import range_values
from zibaldone.store.upkeep import MirrorChange, MirroredChunk, MirrorState

_SQL = statements.load("zibaldone.store.postgres", "mirrors.sql")

_HOLD_WRITERS = "LOCK TABLE zibaldone.documents, zibaldone.vectors IN SHARE MODE"
"""Wait for writes that began before the mirror: their triggers did not see it. Others wait for us,
a few seconds where there are a million documents."""


class MirrorUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def begin(self, name: str, at_us: int) -> bool:
        values = {"name": name, "at_us": at_us}
        if self._transaction.row(_SQL["begin"], values) is None:
            return False
        self._transaction.defer(_HOLD_WRITERS)
        self._transaction.execute(_SQL["note_all"], values)
        return True

    def refill(self, name: str) -> None:
        self._transaction.execute(_SQL["note_all"], {"name": name})

    def end(self, name: str) -> bool:
        self._transaction.defer(_SQL["forget_changes"], {"name": name})
        return self._transaction.row(_SQL["end"], {"name": name}) is not None

    def all(self) -> dict[str, MirrorState]:
        selected = self._transaction.execute(_SQL["all"])
        return {name: MirrorState(applied, pending) for name, applied, pending in selected}

    def state(self, name: str) -> MirrorState | None:
        return self.all().get(name)

    def lease(self, name: str, owner: str, *, now_us: int, until_us: int) -> bool:
        values = {"name": name, "owner": owner, "now_us": now_us, "until_us": until_us}
        return self._transaction.row(_SQL["lease"], values) is not None

    def changes(self, name: str, limit: int) -> list[MirrorChange]:
        selected = self._transaction.execute(_SQL["changes"], {"name": name, "limit": limit})
        return [MirrorChange(*row) for row in selected]

    def chunks(self, model_id: int, document_keys: Iterable[int]) -> list[MirroredChunk]:
        values = {"model_id": model_id, "document_keys": list(document_keys)}
        return [
            MirroredChunk(*(*row[:8], tuple(row[8]), np.asarray(orjson.loads(row[9]), np.float32)))
            for row in self._transaction.execute(_SQL["chunks"], values)
        ]

    def applied(self, name: str, owner: str, changes: Iterable[MirrorChange]) -> bool:
        listed = list(changes)
        values = {
            "name": name,
            "owner": owner,
            "document_keys": [change.document_key for change in listed],
            "seqs": [change.seq for change in listed],
            "seq": max((change.seq for change in listed), default=0),
        }
        return self._transaction.row(_SQL["applied"], values) is not None


def unmirrored(transaction: Transaction, tenant: Tenant, name: str, limit: int) -> list[str] | None:
    selected = transaction.execute(_SQL["unmirrored"], {"name": name, "limit": limit + 1})
    keys = [row[0] for row in selected]
    if len(keys) > limit or None in keys:
        return None
    if not keys:
        return []
    values = {**range_values(tenant), "document_keys": keys}
    return [row[0] for row in transaction.execute(_SQL["ids"], values)]
