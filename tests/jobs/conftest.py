from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.engines import backend_of
from tests.store.kept import Kept
from zibaldone.limits import Limits


@pytest.fixture
def kept(data: Path) -> Iterator[Kept]:
    limits = Limits()
    store = backend_of(data).open(limits)
    yield Kept(store, limits)
    store.close()
