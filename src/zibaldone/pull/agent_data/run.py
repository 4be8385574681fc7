"""Import the rows of an AgentData knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from zibaldone.errors import RequestError
from zibaldone.model.incoming import Incoming, Outcome
from zibaldone.model.instant import now_us
from zibaldone.pull.agent_data.preflight import Preflight
from zibaldone.pull.agent_data.row import KbRow, KbRows, as_document


class Importer(Protocol):
    """Where documents go; `exchange.batches.Importer` is one."""

    async def add(self, name: str, incoming: Incoming) -> None: ...

    def leave_out(self, name: str, outcome: Outcome, reason: str) -> None: ...

    async def flush(self) -> None: ...


async def import_rows(
    rows: KbRows,
    report: Preflight,
    importer: Importer,
    *,
    with_deleted: bool,
    advance: Callable[[int], None] = lambda steps: None,
) -> None:
    """Hand the rows to `importer` as documents; `advance` is told of each row."""
    at_us = now_us()
    for row in rows():
        advance(1)
        if row.is_live or with_deleted:
            await _import_row(row, report, importer, at_us)
    await importer.flush()


async def _import_row(row: KbRow, report: Preflight, importer: Importer, at_us: int) -> None:
    name = row.document_id or f"row {row.number}"
    if not row.problem and not row.document_id:
        importer.leave_out(name, "skipped", "no document_id")
        return
    if row.number in report.losers:
        importer.leave_out(name, "failed", "another row has the same id")
        return
    try:
        document = as_document(row, at_us)
    except RequestError as error:
        importer.leave_out(name, "failed", error.message)
        return
    await importer.add(name, Incoming(document))
