"""Vector search."""

from __future__ import annotations

from collections.abc import Iterable

from zibaldone.access.principal import Tenant
from zibaldone.errors import Internal
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.model.vector import Vectors as VectorRows
from zibaldone.store.port import Scored, VectorCoverage
from zibaldone.store.postgres.connection import Transaction


class Vectors:
    """Bound to one tenant, on one snapshot."""

    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def search(
        self, identity: str, vector: VectorRows, k: int, wanted: Filter = NO_FILTER
    ) -> list[Scored]:
        raise _missing()

    def scores(
        self, identity: str, vector: VectorRows, chunk_keys: Iterable[int]
    ) -> dict[int, float]:
        raise _missing()

    def coverage(self, identity: str) -> VectorCoverage:
        raise _missing()


def _missing() -> Internal:
    return Internal("The PostgreSQL engine cannot search by vectors yet.")
