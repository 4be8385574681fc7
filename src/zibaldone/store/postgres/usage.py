"""What each namespace holds: each write adds its share in a row of its own, and the quotas for it.

The rows are summed up in the background (`fold.py`), so that writers do not wait for each other.
Only where quotas are set do those of one namespace run one after the other.
"""

from __future__ import annotations

from zibaldone.model.usage import NamespaceUsage
from zibaldone.store import rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import lock_usage
from zibaldone.store.quotas import Quotas, require_room

_SQL = statements.load("zibaldone.store.postgres", "usage.sql")

_USAGE: rows.Kinds = (str, int, int, int)
_TOTAL = "usage"


def add_usage(
    transaction: Transaction,
    namespace: str,
    quotas: Quotas,
    *,
    documents: int,
    size_bytes: int,
    frees: bool = False,
) -> None:
    """Count a new revision, or refuse it. `frees`: it deletes, which no quota may prevent."""
    added = {"documents": documents, "revisions": 1, "bytes": size_bytes}
    total = transaction.totals.setdefault(
        _TOTAL, {"namespace": namespace} | dict.fromkeys(added, 0)
    )
    for name, more in added.items():
        total[name] += more
    if frees or not quotas:
        return
    values = {"namespace": namespace}
    lock_usage(transaction, namespace)
    held = transaction.row(_SQL["held"], values) or (0, 0, 0)
    require_room(
        quotas, added, [count + total[name] for name, count in zip(added, held, strict=True)]
    )


def write_usage(transaction: Transaction) -> None:
    """Store what the transaction added up."""
    total = transaction.totals.pop(_TOTAL, None)
    if total is not None:
        transaction.defer(_SQL["add"], total)


class UsageUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def all(self) -> list[NamespaceUsage]:
        selected = self._transaction.execute(_SQL["all"])
        return [NamespaceUsage(*rows.require(row, _USAGE)) for row in selected]
