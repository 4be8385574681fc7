"""A look at the database file from outside, for diagnosis."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from zibaldone.store.port import StorePlace


def description_of(path: Path) -> str:
    return f"the SQLite file {path}"


def place_of(path: Path) -> StorePlace:
    problem = advice = ""
    if path.is_file() and not os.access(path, os.W_OK):
        problem = f"{path} cannot be written by this user"
        advice = f"Give it to the user that runs Zibaldone: chown USER {path}*"
    return StorePlace(
        engine="sqlite",
        version=f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})",
        description=description_of(path),
        is_made=path.exists(),
        problem=problem,
        advice=advice,
        recovery=f"Stop the server, keep {path.name} and its -wal file, and restore a copy.",
    )
