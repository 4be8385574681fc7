"""Jobs as one tenant sees them, and how they are added, cancelled and retried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zibaldone.access.principal import Tenant
from zibaldone.model.job import DOCUMENT_KINDS, STATES, Job, JobState, NewJob
from zibaldone.store import job_rows, rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.tenants import tenant_values

_SQL = statements.load("zibaldone.store.postgres", "jobs.sql")

_DOCUMENT_KINDS = sorted(DOCUMENT_KINDS)
_AFTER_EVERY_ID = "~"
"""Ids are hexadecimal."""


class Jobs:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
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
        return [job_rows.job(row) for row in self._transaction.execute(_SQL[statement], values)]

    def open_of(self, key_id: str, limit: int) -> int:
        values = {"namespace": self._tenant.namespace, "key_id": key_id, "limit": limit}
        count: int = self._transaction.value(_SQL["open_of"], values)
        return count

    def row(self, job_id: str, *, is_whole: bool = True) -> rows.Row | None:
        values = {
            **tenant_values(self._tenant),
            "document_kinds": _DOCUMENT_KINDS,
            "job_id": job_id,
            "whole": is_whole,
        }
        return self._transaction.row(_SQL["get"], values)


class Queue:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._jobs = Jobs(transaction, tenant)

    def add(self, jobs: Iterable[NewJob]) -> list[str]:
        return add_jobs(self._transaction, jobs, self._tenant.namespace, self._tenant.prefix)

    def cancel(self, job_id: str, now_us: int) -> Job | None:
        return self._change("cancel", job_id, {"now_us": now_us})

    def retry(self, job_id: str) -> Job | None:
        return self._change("retry", job_id, {})

    def _change(self, statement: str, job_id: str, values: dict[str, int]) -> Job | None:
        row = self._jobs.row(job_id, is_whole=False)
        if row is None:
            return None
        self._transaction.defer(_SQL[statement], {**values, "job_key": row[-1]})
        self._transaction.has_queued = True
        return self._jobs.get(job_id)


def add_jobs(
    transaction: Transaction, jobs: Iterable[NewJob], namespace: str, prefix: str
) -> list[str]:
    """The new jobs' ids, or those of the ones that have their unique keys."""
    listed = list(jobs)
    transaction.has_queued |= bool(listed)
    plain = [job for job in listed if job.unique_key is None]
    if plain:
        _add_plain(transaction, plain, namespace, prefix)
    return [
        job.job_id if job.unique_key is None else _add_unique(transaction, job, namespace, prefix)
        for job in listed
    ]


def _add_plain(
    transaction: Transaction, jobs: Sequence[NewJob], namespace: str, prefix: str
) -> None:
    each = [job_rows.new_values(job, namespace, prefix) for job in jobs]
    lists = {
        "job_ids": "job_id",
        "kinds": "kind",
        "subjects": "subject",
        "created_at_us": "created_at_us",
        "not_before_us": "not_before_us",
        "payloads": "payload",
        "key_ids": "key_id",
    }
    columns = {name: [values[key] for values in each] for name, key in lists.items()}
    transaction.defer(_SQL["add"], {"namespace": namespace, "prefix": prefix, **columns})


def _add_unique(transaction: Transaction, job: NewJob, namespace: str, prefix: str) -> str:
    values = {**job_rows.new_values(job, namespace, prefix), "unique_key": job.unique_key}
    while True:
        # Where one has the key, it may end before we have looked which one it is.
        for statement in ("add_unique", "active_id"):
            job_id: str | None = transaction.value(_SQL[statement], values)
            if job_id is not None:
                return job_id
