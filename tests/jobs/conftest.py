from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import BACKENDS
from tests.store.kept import Kept
from zibaldone.limits import Limits


@pytest.fixture(params=BACKENDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    limits = Limits()
    store = BACKENDS[request.param](tmp_path).open(limits)
    yield Kept(store, limits)
    store.close()
