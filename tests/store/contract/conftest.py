from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import BACKENDS, Backend
from tests.store.kept import Kept
from zibaldone.limits import Limits


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return BACKENDS[request.param](tmp_path)


@pytest.fixture
def kept(backend: Backend) -> Iterator[Kept]:
    limits = Limits()
    store = backend.open(limits)
    yield Kept(store, limits)
    store.close()
