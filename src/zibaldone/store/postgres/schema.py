"""The schema: made when there is none, upgraded when it is older, else refused.

A migration file is applied in one transaction with the others that wait. One that begins with the
line `-- not in a transaction` builds indexes while readers and writers go on; it is cut at its
semicolons, and each statement can be run again: what a build that was killed left behind is dropped
first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from zibaldone.errors import ConfigurationError, StorageUnavailable
from zibaldone.store import migrate
from zibaldone.store.migrate import Migration
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Raw, connect
from zibaldone.store.postgres.faults import translated
from zibaldone.store.postgres.transfer import is_being_filled
from zibaldone.store.tables import half_filled

SERVER_VERSION_MIN = 16
VECTOR_VERSION_MIN = (0, 8)

PACKAGE = "zibaldone.store.postgres"

_APART = "-- not in a transaction\n"
_BUILDS_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+)")
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('zibaldone/schema', 0))"
_LOCK_PAUSE_SECONDS = 0.05
_LOCK_SECONDS_MAX = 3_600.0
"""Building an index on a large table takes long, and whoever starts meanwhile needs it too."""

_STATE = """
SELECT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('zibaldone')),
       EXISTS (SELECT 1 FROM pg_class
               WHERE relnamespace = to_regnamespace('zibaldone') AND relname = 'migrations'),
       current_setting('server_version_num')::int / 10000,
       current_setting('server_encoding'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector')
"""

_MIGRATIONS_TABLE = """
CREATE TABLE zibaldone.migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""

_ADD_VECTOR = "CREATE EXTENSION IF NOT EXISTS vector"

_MAY_ADD_VECTOR = """
SELECT bool_or(NOT superuser OR current_setting('is_superuser') = 'on'
               OR trusted AND has_database_privilege(current_database(), 'CREATE'))
FROM pg_available_extension_versions WHERE name = 'vector' HAVING count(*) > 0
"""

_MAY_MAKE_SCHEMA = """
SELECT CASE WHEN to_regnamespace('zibaldone') IS NULL
       THEN has_database_privilege(current_database(), 'CREATE')
       ELSE has_schema_privilege('zibaldone', 'CREATE') END
"""

_INVALID = """
SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'zibaldone' AND c.relname = %(name)s AND NOT i.indisvalid
"""


def prepare(address: Address, *, for_transfer: bool = False) -> None:
    """Make the schema if it is not there, and bring it up to date.

    `for_transfer`: it may be one that is still being filled.
    """
    with translated(address):
        raw = connect(address)
        try:
            _Preparation(raw, address).run()
            if not for_transfer and is_being_filled(raw):
                raise half_filled(address.description)
        finally:
            raw.close()


@dataclass(frozen=True, slots=True)
class _State:
    has_tables: bool
    """The schema `zibaldone` has something in it; the next: it is ours."""
    is_ours: bool
    has_vector: bool


def _state(raw: Raw, address: Address) -> _State:
    """ConfigurationError where the server or pgvector is too old, or the encoding is another."""
    ((has_tables, is_ours, server, encoding, vector),) = raw.execute(_STATE).fetchall()
    if server < SERVER_VERSION_MIN:
        raise ConfigurationError(
            f"{address.description} runs PostgreSQL {server}; {SERVER_VERSION_MIN} or newer is "
            "needed."
        )
    if encoding != "UTF8":
        raise ConfigurationError(
            f"{address.description} stores text as {encoding}. Make a database with ENCODING "
            "'UTF8' TEMPLATE template0."
        )
    if vector is not None and tuple(map(int, vector.split(".")[:2])) < VECTOR_VERSION_MIN:
        raise ConfigurationError(
            f"{address.description} has pgvector {vector}; {_vector_wanted()} or newer is needed. "
            "Update it: ALTER EXTENSION vector UPDATE."
        )
    return _State(bool(has_tables), bool(is_ours), vector is not None)


def look(raw: Raw, address: Address) -> bool:
    """Whether the schema is there. It changes nothing.

    ConfigurationError: a store could not be opened or made here; the same that `prepare` raises.
    """
    state = _state(raw, address)
    if state.is_ours:
        return True
    if state.has_tables:
        raise _of_another(address)
    if not state.has_vector:
        row = raw.execute(_MAY_ADD_VECTOR).fetchone()
        if row is None:
            raise _vector_not_installed(address)
        if not row[0]:
            raise _vector_not_added(address)
    if raw.execute(_MAY_MAKE_SCHEMA).fetchone() != (True,):
        raise _may_not_make(address, "permission denied")
    return False


def _of_another(address: Address) -> ConfigurationError:
    return ConfigurationError(
        f"The schema zibaldone of {address.description} belongs to another program; it was left "
        "untouched."
    )


def _may_not_make(address: Address, reason: str | None) -> ConfigurationError:
    return ConfigurationError(
        f"The user of {address.description} may not use, make or change the schema zibaldone: "
        f"{reason}. Make it the owner of the database, or of an empty schema: CREATE SCHEMA "
        "zibaldone AUTHORIZATION …"
    )


def _vector_not_added(address: Address) -> ConfigurationError:
    return ConfigurationError(
        f"{address.description} lacks the extension pgvector, and its user may not add it. Let a "
        "superuser run, in that database: CREATE EXTENSION vector"
    )


def _vector_not_installed(address: Address) -> ConfigurationError:
    return ConfigurationError(
        f"The server of {address.description} lacks pgvector. Install {_vector_wanted()} or newer "
        "there (Debian: postgresql-16-pgvector), then: CREATE EXTENSION vector"
    )


def _vector_wanted() -> str:
    return ".".join(map(str, VECTOR_VERSION_MIN))


class _Preparation:
    def __init__(self, raw: Raw, address: Address) -> None:
        self._raw = raw
        self._address = address
        self._migrations = migrate.load(PACKAGE)

    def run(self) -> None:
        has_tables, is_ours = self._look()
        if has_tables and not is_ours:
            raise _of_another(self._address)
        try:
            if is_ours and self._version() == self._migrations[-1].number:
                return
            for group in self._groups():
                self._apply(group)
        except psycopg.errors.InsufficientPrivilege as problem:
            raise _may_not_make(self._address, problem.diag.message_primary) from problem

    def _look(self) -> tuple[bool, bool]:
        state = _state(self._raw, self._address)
        if not state.has_vector:
            self._add_vector()
        return state.has_tables, state.is_ours

    def _add_vector(self) -> None:
        try:
            self._raw.execute(_ADD_VECTOR)
        except psycopg.errors.InsufficientPrivilege as problem:
            raise _vector_not_added(self._address) from problem
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as problem:
            raise _vector_not_installed(self._address) from problem
        except psycopg.errors.UniqueViolation:
            pass  # another server that starts was first

    def _version(self) -> int:
        row = self._raw.execute(
            "SELECT coalesce(max(number), 0) FROM zibaldone.migrations"
        ).fetchone()
        version = int(row[0]) if row is not None else 0
        newest = self._migrations[-1].number
        if version > newest:
            raise ConfigurationError(
                f"{self._address.description} has schema {version}, this version of Zibaldone "
                f"knows up to {newest}. Upgrade Zibaldone."
            )
        return version

    def _groups(self) -> Iterator[list[Migration]]:
        """Those that go into one transaction together, or one that goes into none."""
        group: list[Migration] = []
        for migration in self._migrations:
            if migration.sql.startswith(_APART):
                if group:
                    yield group
                yield [migration]
                group = []
            else:
                group.append(migration)
        if group:
            yield group

    def _apply(self, group: list[Migration]) -> None:
        """Two servers may start at once: the second finds the work done when it gets the lock."""
        raw = self._raw
        self._begin_locked()
        try:
            if raw.execute("SELECT to_regnamespace('zibaldone') IS NULL").fetchone() == (True,):
                raw.execute("CREATE SCHEMA zibaldone")
            if raw.execute("SELECT to_regclass('zibaldone.migrations') IS NULL").fetchone() == (
                True,
            ):
                raw.execute(_MIGRATIONS_TABLE)
            version = self._version()
            for migration in group:
                if migration.number > version:
                    self._apply_one(migration)
            raw.execute("COMMIT")
        except BaseException:
            if not raw.closed:
                raw.execute("ROLLBACK")
            raise

    def _begin_locked(self) -> None:
        """Ask again and again: somebody who waited in a statement would hold up an index build."""
        until_s = time.monotonic() + _LOCK_SECONDS_MAX
        while time.monotonic() < until_s:
            self._raw.execute("BEGIN")
            if self._raw.execute(_LOCK).fetchone() == (True,):
                return
            self._raw.execute("ROLLBACK")
            time.sleep(_LOCK_PAUSE_SECONDS)
        raise StorageUnavailable(
            f"Another server has been upgrading {self._address.description} for "
            f"{_LOCK_SECONDS_MAX / 60:.0f} minutes; start again when it is done."
        )

    def _apply_one(self, migration: Migration) -> None:
        if migration.sql.startswith(_APART):
            with connect(self._address) as beside:
                for statement in _statements(migration.sql):
                    _build(beside, statement)
        else:
            self._raw.execute(migration.sql.encode())
        self._raw.execute(
            "INSERT INTO zibaldone.migrations (number, name) VALUES (%s, %s)",
            (migration.number, migration.name),
        )


def _statements(sql: str) -> Iterator[str]:
    for part in sql.split(";"):
        lines = [line for line in part.splitlines() if not line.startswith("--")]
        if statement := "\n".join(lines).strip():
            yield statement


def _build(raw: Raw, statement: str) -> None:
    """Run a statement outside of a transaction, for the first time or again."""
    match = _BUILDS_INDEX.search(statement)
    if match is not None and raw.execute(_INVALID, {"name": match[1]}).fetchone() is not None:
        raw.execute(f"DROP INDEX CONCURRENTLY zibaldone.{match[1]}".encode())
    raw.execute(statement.encode())
