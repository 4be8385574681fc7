"""Named SQL statements, read once from the `.sql` files beside the backend that owns them.

    -- name: get_document
    -- One document by id, also a deleted one.
    SELECT …

A statement starts at its name and ends before the next; the line under the name says what for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def load(package: str, file_name: str) -> dict[str, str]:
    text = resources.files(package).joinpath("sql", file_name).read_text(encoding="utf-8")
    names = list(_NAME.finditer(text))
    statements: dict[str, str] = {}
    for named, following in zip(names, [*names[1:], None], strict=True):
        name = named.group(1)
        if name in statements:
            raise ValueError(f"{package}/sql/{file_name}: statement {name} is there twice")
        end = following.start() if following else len(text)
        lines = text[named.end() : end].strip().splitlines()
        sql = "\n".join(line for line in lines if not line.startswith("--")).strip()
        statements[name] = sql.rstrip(";")
    return statements
