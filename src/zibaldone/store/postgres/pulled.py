"""What is remembered of the rows that were pulled from sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.pulled import PulledBlock, PulledRow, PulledRun
from zibaldone.store import rows as stored
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction

_SQL = statements.load("zibaldone.store.postgres", "pulled.sql")


class Pulled:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._namespace = tenant.namespace

    def last_run(self, source_id: int) -> PulledRun | None:
        row = self._transaction.row(_SQL["last_run"], self._values(source_id))
        return None if row is None else stored.pulled_run(row)

    def blocks(self, source_id: int) -> list[PulledBlock]:
        selected = self._transaction.execute(_SQL["blocks"], self._values(source_id))
        return [stored.pulled_block(row) for row in selected]

    def rows(self, source_id: int, document_ids: Iterable[str]) -> dict[str, PulledRow]:
        values = self._values(source_id, document_ids=list(document_ids))
        selected = self._transaction.execute(_SQL["rows"], values)
        return {row[0]: stored.pulled_row(row) for row in selected}

    def count(self, source_id: int) -> int:
        return int(self._transaction.value(_SQL["count"], self._values(source_id)))

    def count_lost(self, source_id: int, blocks: Iterable[int]) -> int:
        values = self._values(source_id, blocks=list(blocks))
        return int(self._transaction.value(_SQL["count_lost"], values))

    def lost(self, source_id: int, limit: int) -> list[str]:
        selected = self._transaction.execute(_SQL["lost"], self._values(source_id, limit=limit))
        return [document_id for (document_id,) in selected]

    def begin(self, source_id: int, run: int) -> None:
        self._transaction.defer(_SQL["begin"], self._values(source_id, run=run))

    def require_run(self, source_id: int, run: int) -> None:
        last = self._transaction.value(_SQL["require_run"], self._values(source_id))
        stored.require_same_run(last, run)

    def finish(self, source_id: int, run: int) -> None:
        self._transaction.defer(_SQL["finish"], self._values(source_id, run=run))

    def put_rows(self, source_id: int, rows: Iterable[PulledRow]) -> None:
        listed = list(rows)
        values = self._values(
            source_id,
            document_ids=[row.document_id for row in listed],
            blocks=[row.block for row in listed],
            marks=[row.mark for row in listed],
            contents=[row.content for row in listed],
        )
        self._transaction.defer(_SQL["put_rows"], values)

    def move_rows(self, source_id: int, document_ids: Iterable[str], block: int) -> None:
        values = self._values(source_id, document_ids=list(document_ids), block=block)
        self._transaction.defer(_SQL["move_rows"], values)

    def remove_rows(self, source_id: int, document_ids: Iterable[str]) -> None:
        values = self._values(source_id, document_ids=list(document_ids))
        self._transaction.defer(_SQL["remove_rows"], values)

    def put_block(self, source_id: int, block: PulledBlock) -> None:
        values = self._values(source_id, **stored.pulled_block_values(block))
        self._transaction.defer(_SQL["put_block"], values)

    def drop_blocks(self, source_id: int, blocks: Iterable[int]) -> None:
        values = self._values(source_id, blocks=list(blocks))
        self._transaction.defer(_SQL["drop_blocks"], values)

    def _values(self, source_id: int, **more: Any) -> dict[str, Any]:
        return {"source_id": source_id, "namespace": self._namespace, **more}
