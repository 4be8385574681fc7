from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.engines import backend_of
from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.limits import Limits


@pytest.fixture
def tables(data: Path) -> Backend:
    """The store behind the port."""
    return backend_of(data)


@pytest.fixture
def kept(tables: Backend) -> Iterator[Kept]:
    limits = Limits()
    store = tables.open(limits)
    yield Kept(store, limits)
    store.close()
