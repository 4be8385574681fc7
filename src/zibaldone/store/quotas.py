"""Quotas of a namespace, and what a revision counts for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zibaldone.errors import QuotaExceeded
from zibaldone.limits import Limits

_DESCRIBING = ("title", "tags", "metadata")

Quotas = Mapping[str, int]
"""The quotas that are set, by what they bound."""

NO_QUOTAS: Quotas = {}


def quotas_of(limits: Limits) -> Quotas:
    quotas = {
        "documents": limits.namespace_documents_max,
        "revisions": limits.namespace_revisions_max,
        "bytes": limits.namespace_bytes_max,
    }
    return {name: quota for name, quota in quotas.items() if quota is not None}


def require_room(quotas: Quotas, added: Mapping[str, int], held: Sequence[int]) -> None:
    """QuotaExceeded: what is held with what was added, by the same names, is more than allowed."""
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
