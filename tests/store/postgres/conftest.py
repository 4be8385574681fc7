from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import Postgres
from tests.store.kept import Kept
from zibaldone.limits import Limits


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Postgres]:
    """A database of its own, with the schema and nothing in it."""
    made = Postgres(tmp_path)
    yield made
    made.close()


@pytest.fixture
def kept(tables: Postgres) -> Iterator[Kept]:
    store = tables.open(Limits())
    yield Kept(store, Limits())
    store.close()
