"""Jobs as one tenant sees them, and how they are added, cancelled and retried."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.model.job import DOCUMENT_KINDS, STATES, Job, JobState, NewJob
from zibaldone.store import job_rows, rows, statements
from zibaldone.store.tenants import tenant_values

_SQL = statements.load("zibaldone.store.sqlite", "jobs.sql")

_DOCUMENT_KINDS = rows.dumps(sorted(DOCUMENT_KINDS))
_AFTER_EVERY_ID = "~"
"""Ids are hexadecimal."""


class Jobs:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def get(self, job_id: str) -> Job | None:
        row = self.row(job_id)
        return None if row is None else job_rows.job(row)

    def head(self, job_id: str) -> Job | None:
        row = self.row(job_id, is_whole=False)
        return None if row is None else job_rows.job(row)

    def page(
        self,
        *,
        kind: str | None = None,
        state: JobState | None = None,
        limit: int,
        after: str | None = None,
    ) -> list[Job]:
        values = {
            **tenant_values(self._tenant),
            "document_kinds": _DOCUMENT_KINDS,
            "kind": kind,
            "state": None if state is None else STATES.index(state),
            "before": _AFTER_EVERY_ID if after is None else after,
            "limit": limit,
        }
        statement = "page" if state in (None, "queued") else "page_ended"
        if state == "running":
            statement = "page_running"
        return [job_rows.job(row) for row in self._raw.execute(_SQL[statement], values)]

    def open_of(self, key_id: str, limit: int) -> int:
        values = {"namespace": self._tenant.namespace, "key_id": key_id, "limit": limit}
        count: int = self._raw.execute(_SQL["open_of"], values).get
        return count

    def row(self, job_id: str, *, is_whole: bool = True) -> rows.Row | None:
        values = {
            **tenant_values(self._tenant),
            "document_kinds": _DOCUMENT_KINDS,
            "job_id": job_id,
            "whole": is_whole,
        }
        row: rows.Row | None = self._raw.execute(_SQL["get"], values).fetchone()
        return row


class Queue:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant
        self._jobs = Jobs(raw, tenant)

    def add(self, jobs: Iterable[NewJob]) -> list[str]:
        return [
            add_job(self._raw, job, self._tenant.namespace, self._tenant.prefix) for job in jobs
        ]

    def cancel(self, job_id: str, now_us: int) -> Job | None:
        return self._change("cancel", job_id, {"now_us": now_us})

    def retry(self, job_id: str) -> Job | None:
        return self._change("retry", job_id, {})

    def _change(self, statement: str, job_id: str, values: dict[str, int]) -> Job | None:
        row = self._jobs.row(job_id, is_whole=False)
        if row is None:
            return None
        self._raw.execute(_SQL[statement], {**values, "job_key": row[-1]})
        return self._jobs.get(job_id)


def add_job(raw: apsw.Connection, job: NewJob, namespace: str, prefix: str) -> str:
    """The new job's id, or that of the one that has its unique key."""
    values = job_rows.new_values(job, namespace, prefix)
    if job.unique_key is None:
        raw.execute(_SQL["add"], values)
        return job.job_id
    raw.execute(_SQL["add_unique"], {**values, "unique_key": job.unique_key})
    if raw.changes():
        return job.job_id
    values = {"namespace": namespace, "kind": job.kind, "unique_key": job.unique_key}
    job_id: str = raw.execute(_SQL["active_id"], values).get
    return job_id
