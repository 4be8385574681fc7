"""Making the terms of chunks anew, while the index is in use."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from zibaldone.model.chunk import ChunkTerms
from zibaldone.store import rows, statements
from zibaldone.store.sqlite import term_steps
from zibaldone.store.sqlite.terms import replace_terms
from zibaldone.store.upkeep import TermProgress, TermSource

_SQL = statements.load("zibaldone.store.sqlite", "term_scheme.sql")


class TermUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def progress(self) -> TermProgress:
        return TermProgress(*self._raw.execute(_SQL["progress"]).get)

    def begin(self, version: int) -> None:
        self._raw.execute(_SQL["begin"], {"version": version})

    def page(self, after: int, last: int, limit: int) -> list[TermSource]:
        values = {"after": after, "last": last, "limit": limit}
        return [TermSource(*row) for row in self._raw.execute(_SQL["page"], values)]

    def put(
        self,
        terms: Mapping[int, ChunkTerms],
        *,
        version: int,
        before: int,
        through: int | None,
    ) -> bool:
        values = {"version": version, "before": before, "through": through}
        self._raw.execute(_SQL["advance"], values)
        if not self._raw.changes():
            return False
        listed = rows.dumps(list(terms))
        present = [key for (key,) in self._raw.execute(_SQL["present"], {"chunk_keys": listed})]
        replace_terms(self._raw, {key: terms[key] for key in present})
        return True

    def last_unsettled(self) -> int | None:
        return term_steps.last_unsettled(self._raw)

    def unsettled(self, last: int, limit: int) -> list[tuple[int, TermSource | None]]:
        return term_steps.unsettled(self._raw, last, limit)

    def settle(self, terms: Mapping[int, ChunkTerms | None]) -> None:
        term_steps.settle(self._raw, terms)
