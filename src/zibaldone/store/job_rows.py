"""Jobs: rows of the table to values of the model, and back; the same for every engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from zibaldone.model.job import STATES, Job, LeasedJob, NewJob, Progress
from zibaldone.store import rows

_FLOAT_OR_NONE = (float, type(None))
_JOB: rows.Kinds = (
    *(str, str, int, rows.TEXT_OR_NONE, int, int, rows.INT_OR_NONE, rows.INT_OR_NONE, int, int),
    *(int, _FLOAT_OR_NONE, _FLOAT_OR_NONE, rows.TEXT_OR_NONE, rows.TEXT_OR_NONE),
    *(rows.TEXT_OR_NONE, rows.TEXT_OR_NONE, rows.TEXT_OR_NONE, int),
)
_LEASED: rows.Kinds = (
    *(int, str, str, str, str, rows.TEXT_OR_NONE, rows.TEXT_OR_NONE, int, int),
    rows.TEXT_OR_NONE,
)


def new_values(job: NewJob, namespace: str, prefix: str) -> dict[str, Any]:
    """A new job, without its unique key."""
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "namespace": namespace,
        "prefix": prefix,
        "subject": job.subject,
        "created_at_us": job.created_at_us,
        "not_before_us": job.not_before_us,
        "payload": None if job.payload is None else rows.dumps(job.payload),
        "key_id": job.key_id,
    }


def job(row: rows.Row) -> Job:
    rows.require(row, _JOB)
    done, total, message, payload, result, error, key_id = row[11:18]
    return Job(
        job_id=row[0],
        kind=row[1],
        state=STATES[row[2]],
        subject=row[3],
        created_at_us=row[4],
        not_before_us=row[5],
        started_at_us=row[6],
        finished_at_us=row[7],
        attempts=row[8],
        crashes=row[9],
        cancel_requested=bool(row[10]),
        progress=None if done is None else Progress(done, total, message or ""),
        payload=_payload(payload),
        result=None if result is None else orjson.loads(result),
        error=error,
        key_id=key_id,
    )


def _payload(stored: str | None) -> dict[str, Any]:
    return {} if stored is None else rows.loads(stored, dict)


def leased_each(taken: Sequence[rows.Row], owner: str) -> list[LeasedJob]:
    return [_leased(row, owner, (row[0],)) for row in sorted(taken)]


def leased_by_subject(taken: Sequence[rows.Row], owner: str) -> list[LeasedJob]:
    """The newest job of each subject of a namespace stands for the older ones."""
    keys: dict[tuple[str, str] | int, list[int]] = defaultdict(list)
    newest: dict[tuple[str, str] | int, rows.Row] = {}
    for row in sorted(taken):
        job_key, namespace, subject = row[0], row[3], row[5]
        group = job_key if subject is None else (namespace, subject)
        keys[group].append(job_key)
        newest[group] = row
    return [_leased(row, owner, tuple(keys[group])) for group, row in newest.items()]


def _leased(row: rows.Row, owner: str, keys: tuple[int, ...]) -> LeasedJob:
    rows.require(row, _LEASED)
    job_key, job_id, kind, namespace, prefix, subject, payload, attempts, crashes, key_id = row
    return LeasedJob(
        job_key=job_key,
        job_id=job_id,
        kind=kind,
        namespace=namespace,
        prefix=prefix,
        subject=subject,
        payload=_payload(payload),
        attempts=attempts,
        crashes=crashes,
        owner=owner,
        keys=keys,
        key_id=key_id,
    )


def share_of_each(namespaces: Sequence[str], limit: int) -> int:
    """How many jobs of each namespace have to be known to take so many of all in turn."""
    return limit if len(namespaces) <= limit else 1


Chosen = tuple[int, str | None]
"""A job to be leased: its key and its subject."""

Due = tuple[int, str | None, str | None]
"""A job that is due: its key, its subject, and whose it is."""


def in_turn(queues: Sequence[Sequence[Due]], limit: int) -> list[Due]:
    """Jobs by key, of several queues: the first of each, the oldest of these first, and so on."""
    placed = [(place, queued) for queue in queues for place, queued in enumerate(queue)]
    placed.sort(key=lambda one: (one[0], one[1][0]))
    return [queued for _, queued in placed[:limit]]


class KeyShares:
    """How many more jobs of each caller may be leased."""

    def __init__(self, most: int | None, leased: Iterable[tuple[str, int]]) -> None:
        """None: as many as there are."""
        self._most = most
        self._leased = Counter(dict(leased))

    @property
    def full_keys(self) -> list[str]:
        most = self._most
        return [] if most is None else [key for key, n in self._leased.items() if n >= most]

    def lease(
        self,
        limit: int,
        due: Callable[[list[str], int], list[Due]],
        take: Callable[[list[Chosen]], list[LeasedJob]],
    ) -> list[LeasedJob]:
        """`due`: as many jobs that are due, without those of keys that have enough."""
        leases: list[LeasedJob] = []
        while limit > len(leases):
            found = due(self.full_keys, limit - len(leases))
            admitted = self._admitted(found)
            leases += take(admitted)
            if len(admitted) == len(found):
                break  # otherwise there may be others behind those of a caller who has enough
        return leases

    def _admitted(self, due: Iterable[Due]) -> list[Chosen]:
        """Those of the jobs for which their callers have room."""
        admitted = []
        for job_key, subject, key_id in due:
            if self._most is not None and key_id is not None:
                if self._leased[key_id] >= self._most:
                    continue
                self._leased[key_id] += 1
            admitted.append((job_key, subject))
        return admitted
