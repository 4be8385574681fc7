"""Where the data is → the backend that keeps it."""

from __future__ import annotations

from pathlib import Path

from commonplace.limits import Limits
from commonplace.store.port import Store
from commonplace.store.sqlite.store import SqliteStore

DATABASE_NAME = "commonplace.db"


def open_store(data_dir: Path, limits: Limits) -> Store:
    return SqliteStore(data_dir / DATABASE_NAME, limits)
