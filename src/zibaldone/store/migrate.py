"""Numbered migrations: `0001_name.sql`, `0002_…`, each applied once, in order, all or none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_FILE_NAME = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str


@cache
def load(package: str) -> tuple[Migration, ...]:
    """The package's migrations in order; a gap or an odd file name is a mistake in the package."""
    migrations = []
    for entry in resources.files(package).joinpath("migrations").iterdir():
        match = _FILE_NAME.match(entry.name)
        if match is None:
            raise ValueError(f"{package}/migrations/{entry.name}: not named NNNN_words.sql")
        migrations.append(
            Migration(int(match.group(1)), match.group(2), entry.read_text(encoding="utf-8"))
        )
    migrations.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in migrations]
    if numbers != list(range(1, len(migrations) + 1)):
        raise ValueError(f"{package}/migrations: numbers {numbers} have a gap or a repeat")
    return tuple(migrations)
