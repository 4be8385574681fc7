"""Schedules: jobs that are added again and again."""

from __future__ import annotations

import apsw

from zibaldone.model.job import Schedule
from zibaldone.store import rows, statements

_SQL = statements.load("zibaldone.store.sqlite", "schedules.sql")


class ScheduleUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def all(self) -> list[Schedule]:
        return [rows.schedule(row) for row in self._raw.execute(_SQL["all"])]

    def put(self, schedule: Schedule) -> None:
        self._raw.execute(_SQL["put"], rows.schedule_values(schedule))

    def remove(self, name: str) -> bool:
        self._raw.execute(_SQL["remove"], {"name": name})
        return bool(self._raw.changes())

    def advance(
        self, name: str, *, expected_us: int, next_run_at_us: int, ran_at_us: int | None = None
    ) -> bool:
        values = {"name": name, "expected_us": expected_us, "next_run_at_us": next_run_at_us}
        self._raw.execute(_SQL["advance"], {**values, "ran_at_us": ran_at_us})
        return bool(self._raw.changes())
