"""Schedules: jobs that are added again and again."""

from __future__ import annotations

from zibaldone.model.job import Schedule
from zibaldone.store import rows, statements
from zibaldone.store.postgres.connection import Transaction

_SQL = statements.load("zibaldone.store.postgres", "schedules.sql")


class ScheduleUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def all(self) -> list[Schedule]:
        return [rows.schedule(row) for row in self._transaction.execute(_SQL["all"])]

    def put(self, schedule: Schedule) -> None:
        self._transaction.defer(_SQL["put"], rows.schedule_values(schedule))

    def remove(self, name: str) -> bool:
        return self._transaction.row(_SQL["remove"], {"name": name}) is not None

    def advance(
        self, name: str, *, expected_us: int, next_run_at_us: int, ran_at_us: int | None = None
    ) -> bool:
        values = {"name": name, "expected_us": expected_us, "next_run_at_us": next_run_at_us}
        row = self._transaction.row(_SQL["advance"], {**values, "ran_at_us": ran_at_us})
        return row is not None
