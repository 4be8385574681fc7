"""The best of a ranking: as many as asked for, in one order, whatever is equally good."""

from __future__ import annotations

import numpy as np
import pytest

from zibaldone.store.postgres.bm25 import Ranking


def test_equals_do_not_pass_the_bound() -> None:
    best = Ranking(np.arange(5, 1_005), np.ones(1_000)).best(10)
    assert best.keys.tolist() == list(range(5, 15))


@pytest.mark.parametrize("count", [1, 7, 50, 99, 100, 101])
def test_the_best_are_the_first_in_order(count: int) -> None:
    scores = np.random.default_rng(1).integers(0, 5, 100).astype(float)
    ranking = Ranking(np.arange(100), scores)
    keys, _ = ranking.best(count).in_order()
    assert keys.tolist() == ranking.in_order()[0][:count].tolist()
