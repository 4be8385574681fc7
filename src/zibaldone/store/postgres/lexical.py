"""The keyword index over the chunks."""

from __future__ import annotations

from collections.abc import Iterable

from zibaldone.access.principal import Tenant
from zibaldone.errors import Internal
from zibaldone.model.query import NO_FILTER, Filter, Query
from zibaldone.store.port import Scored
from zibaldone.store.postgres.connection import Transaction


class Lexical:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def search(
        self,
        query: Query,
        *,
        limit: int,
        offset: int = 0,
        wanted: Filter = NO_FILTER,
        enough: int | None = None,
    ) -> list[Scored]:
        raise _missing()

    def matching(self, query: Query, chunk_keys: Iterable[int]) -> set[int]:
        raise _missing()


def _missing() -> Internal:
    return Internal("The PostgreSQL engine cannot search by words yet.")
