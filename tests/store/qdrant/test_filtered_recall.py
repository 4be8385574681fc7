"""Of the nearest vectors that pass a filter, Qdrant and the store find nearly all together.

In the client's local mode: it compares every vector, so this is about our filters and not about
Qdrant's graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.backends import BACKENDS
from tests.store.contract.test_filtered_recall import Corpus, fill
from tests.store.kept import Kept
from tests.store.qdrant.mirrored import Mirrored
from zibaldone.limits import Limits
from zibaldone.store.postgres.vectors import Vectors as PostgresVectors
from zibaldone.store.sqlite.vectors import Vectors as SqliteVectors

pytestmark = pytest.mark.filterwarnings("ignore:Local mode is not recommended")


@pytest.fixture(scope="module", params=BACKENDS)
def corpus(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Corpus]:
    backend = BACKENDS[request.param](tmp_path_factory.mktemp("recall"))
    mirrored = Mirrored(backend)
    filled = fill(Kept(mirrored.store, Limits()), backend)
    asyncio.run(mirrored.feed.drain())
    yield filled
    mirrored.close()
    backend.close()


@pytest.mark.parametrize("tag", ["5%", "1%", "0.1%", None])
def test_the_nearest_that_pass_are_found_by_qdrant(
    corpus: Corpus, tag: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("the store was searched")

    monkeypatch.setattr(PostgresVectors, "search", refuse)
    monkeypatch.setattr(SqliteVectors, "search", refuse)
    assert corpus.recall(tag, asked=4) >= 0.95  # a second each
