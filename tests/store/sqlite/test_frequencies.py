"""How common terms are, where counting them all would take too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.backends import Sqlite
from tests.store.large_index import CHUNKS, COUNTS, large_index
from zibaldone.store.sqlite import lexical


def test_common_terms_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "TERM_CHUNKS_COUNTED_MAX", 50)
    with large_index(Sqlite(tmp_path)) as index:
        known = index.large.read(lambda reader: reader.lexical.frequencies(COUNTS))
    assert known.chunks == CHUNKS + 1, "one is of another namespace"
    assert known.chunks_with["fig"] == COUNTS["fig"]
    assert known.chunks_with["oak"] == known.chunks, "never more than there are"
    for term in ("elm", "ash", "fir", "yew"):
        assert known.chunks_with[term] == pytest.approx(COUNTS[term], rel=0.5)
