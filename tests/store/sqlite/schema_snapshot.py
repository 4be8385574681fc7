"""The schema as one file to read, made from the migrations.

python -m tests.store.sqlite.schema_snapshot      write src/zibaldone/store/sqlite/schema.sql anew
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw

from zibaldone.store import statements
from zibaldone.store.open import DATABASE_NAME
from zibaldone.store.sqlite.schema import prepare

FILE = Path(statements.__file__).parent / "sqlite" / "schema.sql"

_HEAD = """\
-- The whole schema, for reading. It is made from migrations/, which are what a database is made of;
-- after a new migration: python -m tests.store.sqlite.schema_snapshot
"""


def schema_of(path: Path) -> list[tuple[str, str]]:
    """Every object somebody declared, as declared. FTS5 makes its own tables; they are left out."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        virtual = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'"
            )
        ]
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        )
        return [
            (name, sql)
            for name, sql in rows
            if not any(name.startswith(f"{table}_") for table in virtual)
        ]
    finally:
        connection.close()


def snapshot() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE_NAME
        prepare(path, 5)
        return _HEAD + "".join(f"\n{sql};\n" for _, sql in schema_of(path))


if __name__ == "__main__":
    FILE.write_text(snapshot(), encoding="utf-8")
