from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import BACKENDS, Backend
from tests.store.kept import Kept, Two
from tests.store.qdrant.mirrored import MODES, Mirrored
from zibaldone.limits import Limits


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    opened = BACKENDS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=MODES)
def mirrored(request: pytest.FixtureRequest, backend: Backend) -> Iterator[Mirrored]:
    made = Mirrored(backend, mode=request.param)
    asyncio.run(made.feed.drain())
    yield made
    made.close()


@pytest.fixture
def kept(mirrored: Mirrored) -> Kept:
    return Kept(mirrored.store, Limits())


@pytest.fixture
def two(mirrored: Mirrored) -> Two:
    return Two(Kept(mirrored.store, Limits()), Kept(mirrored.another(), Limits()))
