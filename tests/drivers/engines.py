"""Which storage engine the stores of a test are on.

The fixture `store_engine` chooses it, and the temporary folder that a test is given tells it: each
data folder in there is on that engine. Whatever starts a server, a command or the application asks
here for the settings of its data folder, so a test does not know its engine.
"""

from __future__ import annotations

from pathlib import Path

from tests.store.backends import BACKENDS, Backend, Postgres
from zibaldone.store.open import DATABASE_NAME

ENGINES = tuple(BACKENDS)
DEFAULT = "sqlite"

BOTH = (
    *("canary", "cli", "exchange", "find", "index", "jobs", "keep", "protocol", "tools"),
    *("hostile/test_batches.py", "hostile/test_bound_keys.py", "hostile/test_diff.py"),
    *("hostile/test_queries.py", "hostile/test_quotas.py"),
    *("pull/test_agent_data.py", "push/test_storm.py", "test_stdio.py"),
    *("web/test_access.py", "web/test_bad_input.py", "web/test_health.py", "web/test_http.py"),
)
"""What of tests/ runs on both engines, unless a marker says otherwise: wherever documents are kept
and found, and what callers see of it. The rest is on one: no store matters there."""

_SIGN = ".engine"
"""A file in the folder above those that tests are given."""


def engines_for(test_file: Path, tests_folder: Path, marked: tuple[str, ...] | None) -> list[str]:
    """The engines that a test runs on."""
    if marked is not None:
        return [name for name in ENGINES if name in marked]
    path = test_file.relative_to(tests_folder)
    is_on_both = path.as_posix() in BOTH or path.parts[0] in BOTH
    return list(ENGINES) if is_on_both else [DEFAULT]


def put_sign(folder: Path, engine: str) -> None:
    (folder / _SIGN).write_text(engine, encoding="utf-8")


def engine_of(data: Path) -> str:
    """The engine of the store that belongs to a data folder."""
    for parent in data.absolute().parents:
        sign = parent / _SIGN
        if sign.exists():
            return sign.read_text(encoding="utf-8")
    return DEFAULT


def backend_of(data: Path) -> Backend:
    """The store of a data folder, to look at behind the port."""
    return BACKENDS[engine_of(data)](data)


def store_flags(data: Path) -> dict[str, str]:
    """Settings beside the data folder, by which the product finds its store."""
    return {} if engine_of(data) == DEFAULT else {"store": backend_of(data).url}


def store_environment(data: Path) -> dict[str, str]:
    """The same as variables of the environment."""
    return {f"ZIBALDONE_{name.upper()}": value for name, value in store_flags(data).items()}


def drop_stores(folder: Path) -> None:
    """Remove the databases of the data folders in this folder, and see that nothing went past them:
    a test that opens a store in another way would be on the default engine without notice."""
    for database in Postgres.all_below(folder):
        database.close()
    assert list(folder.rglob(DATABASE_NAME)) == [], "a store was opened without its engine"
