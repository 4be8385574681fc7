"""What must hold in the file whatever happened to the process that wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from tests.store.invariants import IN_SQLITE
from zibaldone.store.sqlite.check import check_file


def broken_invariants(file: Path) -> dict[str, Any]:
    connection = apsw.Connection(str(file))
    try:
        found: dict[str, Any] = {
            what: rows
            for what, sql in IN_SQLITE.items()
            if (rows := list(connection.execute(sql))[:3])
        }
    finally:
        connection.close()
    check = check_file(file, 5, thorough=True)
    return found if check.ok else {**found, "check": check.problems}
