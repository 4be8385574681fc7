"""What each namespace holds: each write adds its share in a row of its own, and the quotas for it.

The rows are summed up in the background (`fold.py`), so that writers do not wait for each other.
Only where quotas are set do those of one namespace commit one after the other.
"""

from __future__ import annotations

from zibaldone.model.usage import NamespaceUsage
from zibaldone.store import rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import lock_usage
from zibaldone.store.quotas import Quotas, require_room

_SQL = statements.load("zibaldone.store.postgres", "usage.sql")

_USAGE: rows.Kinds = (str, int, int, int)
_COUNTED = ("documents", "revisions", "bytes")
_TOTAL = "usage"
_QUOTAS = "quotas"
_NEEDED = "needed"
"""In `Transaction.totals`: the most that was added, by name, where there had to be room for it."""


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
    needed = transaction.totals.setdefault(_NEEDED, {})
    for name in (name for name, more in added.items() if more > 0):
        needed[name] = max(total[name], needed.get(name, total[name]))
    transaction.totals[_QUOTAS] = quotas
    _require_room(transaction, namespace, quotas, needed)  # those that write now are not seen yet


def write_usage(transaction: Transaction) -> None:
    """Store what the transaction added up, as the last thing before its commit.

    From here on others of the namespace wait, if there are quotas. To hold them up while documents
    of megabytes are stored would make everybody's writes as slow.
    """
    total = transaction.totals.pop(_TOTAL, None)
    if total is None:
        return
    quotas = transaction.totals.pop(_QUOTAS, None)
    if quotas:
        lock_usage(transaction, total["namespace"])
        needed = transaction.totals.pop(_NEEDED)
        _require_room(transaction, total["namespace"], quotas, needed)
    transaction.defer(_SQL["add"], total)


def _require_room(
    transaction: Transaction, namespace: str, quotas: Quotas, needed: dict[str, int]
) -> None:
    row = transaction.row(_SQL["held"], {"namespace": namespace}) or (0, 0, 0)
    held = dict(zip(_COUNTED, row, strict=True))
    totals = [held[name] + more for name, more in needed.items()]
    require_room(quotas, dict.fromkeys(needed, 1), totals)


class UsageUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def all(self) -> list[NamespaceUsage]:
        selected = self._transaction.execute(_SQL["all"])
        return [NamespaceUsage(*rows.require(row, _USAGE)) for row in selected]
