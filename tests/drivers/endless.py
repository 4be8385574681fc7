"""Parts of a search that never end by themselves, as on an index that is far larger."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.engines import engine_of
from zibaldone.store.postgres.lexical import Lexical as PostgresLexical
from zibaldone.store.postgres.vectors import Vectors as PostgresVectors
from zibaldone.store.sqlite.lexical import Lexical as SqliteLexical
from zibaldone.store.sqlite.vectors import Vectors as SqliteVectors

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

_PARTS: dict[str, dict[str, type]] = {
    "sqlite": {"lexical": SqliteLexical, "vectors": SqliteVectors},
    "postgres": {"lexical": PostgresLexical, "vectors": PostgresVectors},
}


def make_endless(
    monkeypatch: pytest.MonkeyPatch, data: Path, part: str, method: str, *, from_call: int = 1
) -> None:
    """The engine of this data folder works on it until it is interrupted."""
    engine = engine_of(data)
    real = getattr(_PARTS[engine][part], method)
    calls = count(1)

    def endless(self: Any, *given: Any, **named: Any) -> Any:
        if next(calls) < from_call:
            return real(self, *given, **named)
        if engine == "postgres":
            return self._transaction.execute(_ENDLESS)
        return self._raw.execute(_ENDLESS).fetchall()

    monkeypatch.setattr(_PARTS[engine][part], method, endless)
