"""What each namespace holds, counted in the transaction of each write, and the quotas for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

from zibaldone.errors import QuotaExceeded
from zibaldone.limits import Limits
from zibaldone.model.usage import NamespaceUsage
from zibaldone.store import statements
from zibaldone.store.sqlite import rows

_SQL = statements.load("zibaldone.store.sqlite", "usage.sql")

_USAGE: rows.Kinds = (str, int, int, int)
_DESCRIBING = ("title", "tags", "metadata")

Quotas = Mapping[str, int]
"""The quotas that are set, by what they bound."""


def quotas_of(limits: Limits) -> Quotas:
    quotas = {
        "documents": limits.namespace_documents_max,
        "revisions": limits.namespace_revisions_max,
        "bytes": limits.namespace_bytes_max,
    }
    return {name: quota for name, quota in quotas.items() if quota is not None}


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
    for (name, more), total in zip(added.items(), held, strict=True):
        quota = quotas.get(name)
        if quota is not None and more > 0 and total > quota:
            raise _exceeded(name, quota)


def revision_bytes(values: Mapping[str, Any], body: str | bytes) -> int:
    """The bytes of a revision's texts as they are stored."""
    return text_bytes(body) + sum(text_bytes(values[name]) for name in _DESCRIBING)


def text_bytes(text: str | bytes) -> int:
    return len(text.encode()) if isinstance(text, str) and not text.isascii() else len(text)


def _exceeded(name: str, quota: int) -> QuotaExceeded:
    advice = "Ask the operator for a higher quota."
    if name == "documents":
        advice = "Delete documents, or ask the operator for a higher quota."
    return QuotaExceeded(
        f"The namespace may hold {quota:,} {name} and would have more. {advice}",
        quota=name,
        maximum=quota,
    )


class UsageUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def all(self) -> list[NamespaceUsage]:
        selected = self._raw.execute(_SQL["all"])
        return [NamespaceUsage(*rows.require(row, _USAGE)) for row in selected]
