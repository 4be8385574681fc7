"""Which of some chunks match: read in their order, or looked up where too many others match."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.backends import Sqlite
from tests.store.kept import Kept
from zibaldone.limits import Limits
from zibaldone.model.query import Query
from zibaldone.store.port import Reader


@pytest.mark.parametrize("scanned_per_key", [1, 3, 50])
def test_however_far_the_index_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanned_per_key: int
) -> None:
    monkeypatch.setattr("zibaldone.store.sqlite.lexical._SCANNED_PER_KEY", scanned_per_key)
    store = Sqlite(tmp_path).open(Limits())
    kept = Kept(store, Limits())
    for number in range(60):
        kept.create(f"d/{number:02}", "zebra and lion" if number % 3 else "lion")

    def matching(reader: Reader) -> list[str]:
        lions = reader.lexical.search(Query(terms=("lion",)), limit=100)
        views = reader.chunks.views(key for key, _ in lions)
        asked = [key for key, view in views.items() if view.document_id[-1] in "07"]
        zebras = reader.lexical.matching(Query(wishes=(("zebra", "and"),)), asked)
        return sorted(views[key].document_id for key in zebras)

    expected = [f"d/{n:02}" for n in range(60) if n % 3 and n % 10 in (0, 7)]
    assert kept.read(matching) == expected
    store.close()
