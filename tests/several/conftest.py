from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import Postgres


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Postgres]:
    """A database of its own, with the schema and nothing in it."""
    made = Postgres(tmp_path)
    yield made
    made.close()
