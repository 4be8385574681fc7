"""Making the terms of chunks anew, while the index is in use."""

from __future__ import annotations

from collections.abc import Mapping

from zibaldone.model.chunk import ChunkTerms
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.terms import NOTE, term_values
from zibaldone.store.upkeep import TermProgress, TermSource

_SQL = statements.load("zibaldone.store.postgres", "term_scheme.sql")


class TermUpkeep:
    """New terms wait beside the others until the postings of their segment are made of them."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def progress(self) -> TermProgress:
        (row,) = self._transaction.execute(_SQL["progress"])
        return TermProgress(*row)

    def begin(self, version: int) -> None:
        self._transaction.execute(_SQL["begin"], {"version": version})

    def page(self, after: int, last: int, limit: int) -> list[TermSource]:
        values = {"after": after, "last": last, "limit": limit}
        return [TermSource(*row) for row in self._transaction.execute(_SQL["page"], values)]

    def put(
        self,
        terms: Mapping[int, ChunkTerms],
        *,
        version: int,
        before: int,
        through: int | None,
    ) -> bool:
        values = {"version": version, "before": before, "through": through}
        if self._transaction.row(_SQL["advance"], values) is None:
            return False
        self._transaction.totals[NOTE] = True
        if terms:
            self._transaction.execute(_SQL["put"], term_values(terms))
        return True

    def last_unsettled(self) -> None:
        return None

    def unsettled(self, last: int, limit: int) -> list[tuple[int, TermSource | None]]:
        del last, limit
        return []

    def settle(self, terms: Mapping[int, ChunkTerms | None]) -> None:
        del terms
