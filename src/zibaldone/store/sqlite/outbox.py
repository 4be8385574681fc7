"""The outbox: one row for each change of a document, until its vectors are up to date."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from zibaldone.store import statements
from zibaldone.store.sqlite import rows
from zibaldone.store.upkeep import Failure, LeasedChange

_SQL = statements.load("zibaldone.store.sqlite", "outbox_upkeep.sql")


class OutboxUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def lease(self, *, limit: int, now_us: int, leased_until_us: int) -> list[LeasedChange]:
        values = {"limit": limit, "now_us": now_us, "leased_until_us": leased_until_us}
        leased = [
            LeasedChange(*rows.require(row, (int, int, int)))
            for row in self._raw.execute(_SQL["lease"], values)
        ]
        leased.sort(key=lambda change: change.outbox_key)
        # The newest leased change of a document stands for the older ones.
        return list({change.document_key: change for change in leased}.values())

    def has_due(self, now_us: int) -> bool:
        return bool(self._raw.execute(_SQL["has_due"], {"now_us": now_us}).get)

    def renew(self, changes: Iterable[LeasedChange], leased_until_us: int) -> None:
        values = {"changes": _listed(changes), "leased_until_us": leased_until_us}
        self._raw.execute(_SQL["renew"], values)

    def release(self, changes: Iterable[LeasedChange]) -> None:
        self._raw.execute(_SQL["release"], {"changes": _listed(changes)})

    def finish(self, changes: Iterable[LeasedChange]) -> None:
        self._raw.execute(_SQL["finish"], {"changes": _listed(changes)})

    def retry(self, failures: Iterable[Failure]) -> None:
        self._raw.execute(_SQL["retry"], {"failures": _listed_failures(failures)})

    def wait(self, failures: Iterable[Failure]) -> None:
        self._raw.execute(_SQL["wait"], {"failures": _listed_failures(failures)})

    def park(self, failures: Iterable[Failure]) -> None:
        self._raw.execute(_SQL["park"], {"failures": _listed_failures(failures)})

    def enqueue(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        values = {"document_keys": rows.dumps(list(document_keys)), "at_us": at_us}
        return self._enqueue("enqueue", {**values, "model_id": model_id})

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        values = {"document_keys": rows.dumps(list(document_keys)), "at_us": at_us}
        self._enqueue("enqueue_cut", values)

    def _enqueue(self, statement: str, values: dict[str, object]) -> int:
        queued = [row[0] for row in self._raw.execute(_SQL[statement], values)]
        if queued:
            keys = {"document_keys": rows.dumps(queued)}
            for later in ("forget_parked", "set_pending"):
                self._raw.execute(_SQL[later], keys)
        return len(queued)

    def pending(self, created_through_us: int) -> int:
        count: int = self._raw.execute(_SQL["pending"], {"at_us": created_through_us}).get
        return count


def _listed(changes: Iterable[LeasedChange]) -> str:
    return rows.dumps([(change.document_key, change.outbox_key) for change in changes])


def _listed_failures(failures: Iterable[Failure]) -> str:
    return rows.dumps(
        [
            (one.change.document_key, one.change.outbox_key, one.not_before_us, one.error)
            for one in failures
        ]
    )
