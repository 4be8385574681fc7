from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import Sqlite
from tests.store.kept import Kept
from zibaldone.limits import Limits


@pytest.fixture
def tables(data: Path) -> Sqlite:
    """The store behind the port."""
    return Sqlite(data)


@pytest.fixture
def kept(tables: Sqlite) -> Iterator[Kept]:
    limits = Limits()
    store = tables.open(limits)
    yield Kept(store, limits)
    store.close()
