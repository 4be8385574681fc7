"""The workers' side of the queue: leases, and what becomes of leased jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from zibaldone.limits import JOB_BACKOFF_SECONDS_MAX
from zibaldone.model.job import STATES, JobState, LeasedJob, NewJob, Progress, Setback
from zibaldone.store import job_rows, rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.jobs import add_jobs
from zibaldone.store.postgres.locks import lock_leases

_SQL = statements.load("zibaldone.store.postgres", "queue.sql")

_BACKOFF_US = int(JOB_BACKOFF_SECONDS_MAX * 1_000_000)
_DONE = STATES.index("done")
_CANCELLED = STATES.index("cancelled")


class QueueUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, namespace: str, jobs: Iterable[NewJob]) -> list[str]:
        return add_jobs(self._transaction, jobs, namespace, "")

    # Leases

    def has_due(self, kind: str, *, now_us: int, until_us: int, per_key: int | None = None) -> bool:
        times = _times(kind, now_us, until_us)
        full_keys = _full_keys(self._shares(per_key, times).full_keys)
        return bool(
            self._transaction.value(_SQL["has_due"], {**times, **full_keys})
            or self._transaction.value(_SQL["has_abandoned"], times)
        )

    def lease(
        self,
        kind: str,
        *,
        limit: int,
        now_us: int,
        until_us: int,
        owner: str,
        by_subject: bool = False,
        running_max: int | None = None,
        per_key: int | None = None,
    ) -> list[LeasedJob]:
        times = _times(kind, now_us, until_us)
        if by_subject or running_max is not None or per_key is not None:
            lock_leases(self._transaction, kind)
        if running_max is not None:
            limit = min(limit, running_max - self._transaction.value(_SQL["leased"], times))
        if limit <= 0:
            return []
        lease = {"now_us": now_us, "until_us": until_us, "owner": owner}
        if abandoned := self._abandoned(times):
            return self._take(abandoned, lease, by_subject)
        return self._shares(per_key, times).lease(
            limit,
            lambda full_keys, left: self._due(times | _full_keys(full_keys), left, by_subject),
            lambda admitted: self._take(admitted, lease, by_subject),
        )

    def _shares(self, per_key: int | None, times: dict[str, Any]) -> job_rows.KeyShares:
        leased: Iterable[Any] = ()
        if per_key is not None:
            leased = self._transaction.execute(_SQL["leased_by_key"], times)
        return job_rows.KeyShares(per_key, leased)

    def _take(
        self, chosen: list[job_rows.Chosen], lease: dict[str, Any], by_subject: bool
    ) -> list[LeasedJob]:
        alone = [key for key, subject in chosen if not by_subject or subject is None]
        with_others = [key for key, subject in chosen if by_subject and subject is not None]
        taken: list[rows.Row] = []
        for statement, keys in (("take", alone), ("take_subjects", with_others)):
            if keys:
                taken += self._transaction.execute(_SQL[statement], {**lease, "keys": keys})
        merge = job_rows.leased_by_subject if by_subject else job_rows.leased_each
        return merge(taken, lease["owner"])

    def _abandoned(self, times: dict[str, Any]) -> list[job_rows.Chosen]:
        """At most one: with several, nobody could tell which of them ended its worker."""
        while (row := self._transaction.row(_SQL["abandoned"], times)) is not None:
            job_key, subject, cancel_requested = row
            if not cancel_requested:
                return [(job_key, subject)]
            values = {"job_key": job_key, "now_us": times["now_us"]}
            self._transaction.defer(_SQL["cancel_abandoned"], values)
        return []

    def _due(self, times: dict[str, Any], limit: int, by_subject: bool) -> list[job_rows.Due]:
        statement = _SQL["due_apart" if by_subject else "due"]
        found = self._transaction.execute(_SQL["queued_namespaces"], times)
        namespaces = [row[0] for row in found]
        each = job_rows.share_of_each(namespaces, limit)
        queues = [
            self._transaction.execute(statement, {**times, "namespace": namespace, "limit": each})
            for namespace in namespaces
        ]
        return job_rows.in_turn(queues, limit)

    def renew(self, leases: Iterable[LeasedJob], until_us: int) -> dict[int, bool]:
        return {
            job_key: bool(cancel_requested)
            for job_key, cancel_requested in self._each_owner("renew", leases, until_us=until_us)
        }

    def held(self, leases: Iterable[LeasedJob]) -> dict[int, bool]:
        return {
            job_key: bool(cancel_requested)
            for job_key, cancel_requested in self._each_owner("held", leases)
        }

    def progress(self, lease: LeasedJob, progress: Progress) -> bool | None:
        values = {
            "job_key": lease.job_key,
            "owner": lease.owner,
            "done": float(progress.done),
            "total": None if progress.total is None else float(progress.total),
            "message": progress.message,
        }
        row = self._transaction.row(_SQL["progress"], values)
        return None if row is None else bool(row[0])

    # What becomes of leased jobs

    def release(
        self, leases: Iterable[LeasedJob], *, now_us: int, has_progressed: bool = False
    ) -> set[int]:
        held = self._each_owner("release", leases, now_us=now_us, has_progressed=has_progressed)
        self._transaction.has_queued |= bool(held)
        return {row[0] for row in held}

    def finish(
        self,
        leases: Iterable[LeasedJob],
        *,
        now_us: int,
        result: Any = None,
        is_kept: bool = True,
    ) -> set[int]:
        if not is_kept:
            return {row[0] for row in self._each_owner("forget", leases)}
        stored = None if result is None else rows.dumps(result)
        held = self._each_owner("end", leases, now_us=now_us, state=_DONE, result=stored)
        return {row[0] for row in held}

    def cancel(self, leases: Iterable[LeasedJob], *, now_us: int) -> set[int]:
        held = self._each_owner("end", leases, now_us=now_us, state=_CANCELLED, result=None)
        return {row[0] for row in held}

    def retry(self, setbacks: Iterable[Setback], *, now_us: int) -> set[int]:
        return self._set_back("set_back", setbacks, now_us, attempts=1)

    def wait(self, setbacks: Iterable[Setback], *, now_us: int) -> set[int]:
        return self._set_back("set_back", setbacks, now_us, attempts=0)

    def park(
        self, setbacks: Iterable[Setback], *, now_us: int, is_attempt: bool = True
    ) -> set[int]:
        return self._set_back("park", setbacks, now_us, attempts=int(is_attempt))

    def _set_back(
        self, statement: str, setbacks: Iterable[Setback], now_us: int, attempts: int
    ) -> set[int]:
        listed = [
            (key, setback.lease.owner, setback.not_before_us, setback.error)
            for setback in setbacks
            for key in setback.lease.keys
        ]
        if not listed:
            return set()
        keys, owners, not_before_us, errors = (list(column) for column in zip(*listed, strict=True))
        values = {
            "keys": keys,
            "owners": owners,
            "not_before_us": not_before_us,
            "errors": errors,
            "now_us": now_us,
            "attempts": attempts,
        }
        return {row[0] for row in self._transaction.execute(_SQL[statement], values)}

    def _each_owner(
        self, statement: str, leases: Iterable[LeasedJob], **values: Any
    ) -> list[rows.Row]:
        keys: dict[str, list[int]] = defaultdict(list)
        for lease in leases:
            keys[lease.owner] += lease.keys
        held: list[rows.Row] = []
        for owner, owned in keys.items():
            held += self._transaction.execute(
                _SQL[statement], {**values, "owner": owner, "keys": owned}
            )
        return held

    def forget_ended(self, kind: str, subjects: Iterable[tuple[str, str]]) -> None:
        listed = list(subjects)
        values = {
            "kind": kind,
            "namespaces": [namespace for namespace, _ in listed],
            "subjects": [subject for _, subject in listed],
        }
        self._transaction.defer(_SQL["forget_ended"], values)

    # Looking back

    def pending(self, kind: str, created_through_us: int, *, now_us: int) -> int:
        values = {"kind": kind, "through_us": created_through_us, "now_us": now_us}
        count: int = self._transaction.value(_SQL["pending"], values)
        return count

    def purge(self, kind: str, state: JobState, *, before_us: int, limit: int) -> int:
        values = {"kind": kind, "state": STATES.index(state), "before_us": before_us}
        return len(self._transaction.execute(_SQL["purge"], {**values, "limit": limit}))


def _times(kind: str, now_us: int, until_us: int) -> dict[str, Any]:
    """A lease of the kind that ends after `latest_us` was not given by a clock like ours."""
    return {
        "kind": kind,
        "now_us": now_us,
        "latest_us": now_us + 2 * (until_us - now_us),
        "backoff_end_us": now_us + _BACKOFF_US,
    }


def _full_keys(full_keys: list[str]) -> dict[str, Any]:
    return {"full_keys": full_keys or None}
