"""What is remembered of the rows that were pulled from sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.model.pulled import PulledBlock, PulledRow, PulledRun
from zibaldone.store import rows as stored
from zibaldone.store import statements

_SQL = statements.load("zibaldone.store.sqlite", "pulled.sql")


class Pulled:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._namespace = tenant.namespace

    def last_run(self, source_id: int) -> PulledRun | None:
        row = self._raw.execute(_SQL["last_run"], self._values(source_id)).fetchone()
        return None if row is None else stored.pulled_run(row)

    def blocks(self, source_id: int) -> list[PulledBlock]:
        selected = self._raw.execute(_SQL["blocks"], self._values(source_id))
        return [stored.pulled_block(row) for row in selected]

    def rows(self, source_id: int, document_ids: Iterable[str]) -> dict[str, PulledRow]:
        values = self._values(source_id, document_ids=stored.dumps(list(document_ids)))
        selected = self._raw.execute(_SQL["rows"], values)
        return {row[0]: stored.pulled_row(row) for row in selected}

    def count(self, source_id: int) -> int:
        return int(self._raw.execute(_SQL["count"], self._values(source_id)).get)

    def count_lost(self, source_id: int, blocks: Iterable[int]) -> int:
        values = self._values(source_id, blocks=stored.dumps(list(blocks)))
        return int(self._raw.execute(_SQL["count_lost"], values).get)

    def lost(self, source_id: int, limit: int) -> list[str]:
        selected = self._raw.execute(_SQL["lost"], self._values(source_id, limit=limit))
        return [document_id for (document_id,) in selected]

    def begin(self, source_id: int, run: int) -> None:
        self._raw.execute(_SQL["begin"], self._values(source_id, run=run))

    def require_run(self, source_id: int, run: int) -> None:
        last = self.last_run(source_id)
        stored.require_same_run(None if last is None else last.run, run)

    def finish(self, source_id: int, run: int) -> None:
        self._raw.execute(_SQL["finish"], self._values(source_id, run=run))

    def put_rows(self, source_id: int, rows: Iterable[PulledRow]) -> None:
        self._raw.executemany(
            _SQL["put_row"],
            [
                self._values(
                    source_id,
                    document_id=row.document_id,
                    block=row.block,
                    mark=row.mark,
                    content=row.content,
                )
                for row in rows
            ],
        )

    def move_rows(self, source_id: int, document_ids: Iterable[str], block: int) -> None:
        values = self._values(source_id, document_ids=stored.dumps(list(document_ids)), block=block)
        self._raw.execute(_SQL["move_rows"], values)

    def remove_rows(self, source_id: int, document_ids: Iterable[str]) -> None:
        values = self._values(source_id, document_ids=stored.dumps(list(document_ids)))
        self._raw.execute(_SQL["remove_rows"], values)

    def put_block(self, source_id: int, block: PulledBlock) -> None:
        values = self._values(source_id, **stored.pulled_block_values(block))
        self._raw.execute(_SQL["put_block"], values)

    def drop_blocks(self, source_id: int, blocks: Iterable[int]) -> None:
        values = self._values(source_id, blocks=stored.dumps(list(blocks)))
        self._raw.execute(_SQL["drop_blocks"], values)

    def _values(self, source_id: int, **more: Any) -> dict[str, Any]:
        return {"source_id": source_id, "namespace": self._namespace, **more}
