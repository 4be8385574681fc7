"""The file and its schema: made when there is none, upgraded when it is older, refused if not ours.

A new file comes into being in one transaction, our id in its header included, before it is put
into WAL mode: whatever moment the power fails at, what is found later is empty or whole.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path

import apsw

from zibaldone.errors import ConfigurationError, StorageReadOnly
from zibaldone.folders import make_private
from zibaldone.store import migrate
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.faults import damaged, file_errors
from zibaldone.store.sqlite.match import column_text
from zibaldone.store.sqlite.place import description_of
from zibaldone.store.sqlite.transfer import is_being_filled
from zibaldone.store.tables import half_filled
from zibaldone.text.facets import fold_tag
from zibaldone.text.terms import index_terms

APPLICATION_ID = 0x5A49424C
"""'ZIBL' in the file's header: tells our file from any other SQLite database."""

_PACKAGE = "zibaldone.store.sqlite"
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_WAL_RETRY_SECONDS = 0.01


def prepare(path: Path, wait_seconds_max: float, *, for_transfer: bool = False) -> None:
    """Create the file if it is not there and bring its schema up to date.

    `for_transfer`: it may be one that is still being filled.
    """
    with file_errors(path):
        make_private(path.parent)
        _refuse_unwritable(path)
        refuse_other_file(path)
    connection = Connection(path, wait_seconds_max=wait_seconds_max, create=True)
    try:
        with connection.translated():
            _migrate(connection.raw, path)
            _enter_wal(connection.raw, path, wait_seconds_max)
            if not for_transfer and is_being_filled(connection.raw):
                raise half_filled(description_of(path))
    finally:
        connection.close()


def _refuse_unwritable(path: Path) -> None:
    """SQLite would only say that it cannot open; and reading alone needs files beside it, too."""
    for place in (path.parent, path):
        if place.exists() and not os.access(place, os.R_OK | os.W_OK):
            raise StorageReadOnly(f"{place} cannot be read and written by this user.")


def refuse_other_file(path: Path) -> None:
    """Look at the header without SQLite: merely opening another program's file could change it."""
    if not path.exists() or path.with_name(path.name + "-journal").exists():
        return  # a journal: the making of the file was cut short, SQLite knows what to do
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if header and not header.startswith(_MAGIC):
        raise damaged(path, "it is not an SQLite database")
    if header and int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise _of_another_program(path)


def _of_another_program(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is an SQLite database of another program; it was left untouched."
    )


def _migrate(raw: apsw.Connection, path: Path) -> None:
    migrations = migrate.load(_PACKAGE)
    if _version(raw, path) == migrations[-1].number:
        return
    add_functions(raw)
    # Two processes may start at once: the second finds the work done when it gets the lock.
    raw.execute("BEGIN IMMEDIATE")
    try:
        for migration in migrations[_version(raw, path) :]:
            raw.execute(migration.sql).fetchall()
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute(f"PRAGMA user_version = {migrations[-1].number}")
        raw.execute("COMMIT")
    except BaseException:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise


def add_functions(raw: apsw.Connection) -> None:
    """What migrations need beside SQL."""
    raw.create_scalar_function("fold_tag", _fold_tag, 1, deterministic=True)
    raw.create_scalar_function("index_terms", _index_terms, 1, deterministic=True)


def _fold_tag(*values: apsw.SQLiteValue) -> str:
    return fold_tag(str(values[0]))


@lru_cache(maxsize=64)
def _index_terms(*values: apsw.SQLiteValue) -> str:
    """Cached: all chunks of a document have its title."""
    return column_text(index_terms(str(values[0])))


def _version(raw: apsw.Connection, path: Path) -> int:
    application_id, version, is_empty = raw.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), "
        "(SELECT user_version FROM pragma_user_version), NOT EXISTS (SELECT 1 FROM sqlite_schema)"
    ).get
    if application_id != APPLICATION_ID and not is_empty:
        raise _of_another_program(path)
    newest = migrate.load(_PACKAGE)[-1].number
    if version > newest:
        raise ConfigurationError(
            f"{path} has schema {version}, this version of Zibaldone knows up to {newest}. "
            "Upgrade Zibaldone."
        )
    return int(version)


def _enter_wal(raw: apsw.Connection, path: Path, wait_seconds_max: float) -> None:
    """SQLite does not wait for others here as it does elsewhere, so the waiting is ours."""
    deadline_s = time.monotonic() + wait_seconds_max
    while True:
        try:
            mode = raw.execute("PRAGMA journal_mode = WAL").get
        except apsw.BusyError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            break
    if mode != "wal":
        raise ConfigurationError(
            f"The file system of {path.parent} lacks what several processes need to share a "
            "database (SQLite's WAL mode); put the data folder on a local disk."
        )
