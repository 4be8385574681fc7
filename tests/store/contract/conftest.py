from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import BACKENDS, Backend
from tests.store.kept import Kept
from zibaldone.errors import Internal
from zibaldone.limits import Limits


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    if request.param == "postgres":
        # Until its searches are there. Nothing of this may reach the main branch.
        missing = pytest.mark.xfail(raises=(Internal, NotImplementedError), strict=False)
        request.applymarker(missing)
    opened = BACKENDS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def kept(backend: Backend) -> Iterator[Kept]:
    limits = Limits()
    store = backend.open(limits)
    yield Kept(store, limits)
    store.close()
