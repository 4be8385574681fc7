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


class _Preparation:
    def __init__(self, raw: Raw, address: Address) -> None:
        self._raw = raw
        self._address = address
        self._migrations = migrate.load(PACKAGE)

    def run(self) -> None:
        has_tables, is_ours = self._look()
        if has_tables and not is_ours:
            raise ConfigurationError(
                f"The schema zibaldone of {self._address.description} belongs to another program; "
                "it was left untouched."
            )
        try:
            if is_ours and self._version() == self._migrations[-1].number:
                return
            for group in self._groups():
                self._apply(group)
        except psycopg.errors.InsufficientPrivilege as problem:
            raise ConfigurationError(
                f"The user of {self._address.description} may not use, make or change the schema "
                f"zibaldone: {problem.diag.message_primary}. Make it the owner of the database, or "
                "of an empty schema: CREATE SCHEMA zibaldone AUTHORIZATION …"
            ) from problem

    def _look(self) -> tuple[bool, bool]:
        ((has_tables, is_ours, server, encoding, vector),) = self._raw.execute(_STATE).fetchall()
        if server < SERVER_VERSION_MIN:
            raise ConfigurationError(
                f"{self._address.description} runs PostgreSQL {server}; {SERVER_VERSION_MIN} or "
                "newer is needed."
            )
        if encoding != "UTF8":
            raise ConfigurationError(
                f"{self._address.description} stores text as {encoding}. Make a database with "
                "ENCODING 'UTF8' TEMPLATE template0."
            )
        self._require_vector(vector)
        return bool(has_tables), bool(is_ours)

    def _require_vector(self, version: str | None) -> None:
        wanted = ".".join(map(str, VECTOR_VERSION_MIN))
        if version is not None:
            if tuple(map(int, version.split(".")[:2])) >= VECTOR_VERSION_MIN:
                return
            raise ConfigurationError(
                f"{self._address.description} has pgvector {version}; {wanted} or newer is needed. "
                "Update it: ALTER EXTENSION vector UPDATE."
            )
        try:
            self._raw.execute(_ADD_VECTOR)
        except psycopg.errors.InsufficientPrivilege as problem:
            raise ConfigurationError(
                f"{self._address.description} lacks the extension pgvector, and its user may not "
                "add it. Let a superuser run, in that database: CREATE EXTENSION vector"
            ) from problem
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as problem:
            raise ConfigurationError(
                f"The server of {self._address.description} lacks pgvector. Install {wanted} or "
                "newer there (Debian: postgresql-16-pgvector), then: CREATE EXTENSION vector"
            ) from problem
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
