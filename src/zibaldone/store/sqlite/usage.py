"""What each namespace holds, counted in the transaction of each write, and the quotas for it."""

from __future__ import annotations

import apsw

from zibaldone.model.usage import NamespaceUsage
from zibaldone.store import rows, statements
from zibaldone.store.quotas import Quotas, require_room

_SQL = statements.load("zibaldone.store.sqlite", "usage.sql")

_USAGE: rows.Kinds = (str, int, int, int)


def add_usage(
    raw: apsw.Connection,
    namespace: str,
    quotas: Quotas,
    *,
    documents: int,
    size_bytes: int,
    frees: bool = False,
) -> None:
    """Count a new revision, or refuse it. `frees`: it deletes, which no quota may prevent."""
    added = {"documents": documents, "revisions": 1, "bytes": size_bytes}
    held = raw.execute(_SQL["add"], {"namespace": namespace, **added}).fetchone()
    if frees or not quotas or held is None:
        return
    require_room(quotas, added, held)


class UsageUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def all(self) -> list[NamespaceUsage]:
        selected = self._raw.execute(_SQL["all"])
        return [NamespaceUsage(*rows.require(row, _USAGE)) for row in selected]
