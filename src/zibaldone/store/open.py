"""Where the data is → the backend that keeps it."""

from __future__ import annotations

from pathlib import Path

from zibaldone.limits import Limits
from zibaldone.store.port import Store
from zibaldone.store.sqlite.store import SqliteStore

DATABASE_NAME = "zibaldone.db"


def open_store(data_dir: Path, limits: Limits) -> Store:
    return SqliteStore(data_dir / DATABASE_NAME, limits)
