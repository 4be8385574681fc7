"""What PostgreSQL's errors mean to a caller."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import orjson
import psycopg
from psycopg import errors

from zibaldone.errors import (
    ConfigurationError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    StorageCorrupt,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    ZibaldoneError,
)
from zibaldone.store.postgres.address import Address
from zibaldone.store.rows import UnreadableRowError

_UNDECODABLE = (UnicodeDecodeError, orjson.JSONDecodeError, zlib.error, UnreadableRowError)
"""What reading a damaged value ends in."""

STORE_PROBLEMS = (psycopg.Error, *_UNDECODABLE)
"""What a statement, or the reading of its rows, may fail with."""

_TRY_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)

_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.IdleInTransactionSessionTimeout,
)
"""The server ended the connection."""


def _damaged(place: str, why: str) -> StorageCorrupt:
    return StorageCorrupt(
        f"Something in {place} is damaged ({why}). Run 'zibaldone doctor' and restore a backup."
    )


_Made = Callable[[str, str], ZibaldoneError]
"""Given the name of the database and the server's words."""

_FULL = "too many (clients|connections)|remaining connection slots|no more connections"

_AT_CONNECTING: tuple[tuple[re.Pattern[str], _Made], ...] = tuple(
    (re.compile(pattern), made)
    for pattern, made in (
        (
            _FULL,
            lambda place, _: StorageUnavailable(
                f"There is no connection left to {place}. Raise max_connections there, or lower "
                "connections_max in the URL of the store."
            ),
        ),
        (
            "the database system is|server closed the connection",
            lambda place, reason: StorageUnavailable(
                f"The server of {place} is not ready: {reason}. Try again."
            ),
        ),
        (
            "server is not in hot standby mode",
            lambda place, _: StorageUnavailable(
                f"None of the servers of {place} is a standby at present."
            ),
        ),
        (
            "session is read-only|server is in hot standby mode",
            lambda place, _: StorageUnavailable(
                f"None of the servers of {place} takes writes at present: a standby has not taken "
                "over yet, or the primary cannot be reached. Try again."
            ),
        ),
        (
            "authentication failed|no password supplied",
            lambda place, _: ConfigurationError(
                f"The server of {place} refuses the password. Correct the user and the password in "
                "the URL of the store, or the server's pg_hba.conf."
            ),
        ),
        (
            "pg_hba.conf|SSL|certificate|GSSAPI",
            lambda place, reason: ConfigurationError(
                f"The server of {place} refuses the connection: {reason}. See its pg_hba.conf, or "
                "set sslmode in the URL of the store."
            ),
        ),
        (
            'role ".*" (does not exist|is not permitted)',
            lambda place, reason: ConfigurationError(
                f"The server of {place} refuses the user: {reason}. Make one with CREATE ROLE … "
                "LOGIN, or correct the URL of the store."
            ),
        ),
        (
            'database ".*" does not exist',
            lambda place, _: ConfigurationError(
                f"There is no such database: {place}. Make it with CREATE DATABASE … OWNER …, or "
                "correct the URL of the store."
            ),
        ),
    )
)
"""What a refusal to connect says. libpq passes on the words only, not the code of the error."""

_MEANINGS: tuple[tuple[tuple[type[Exception], ...], _Made], ...] = (
    (
        (errors.QueryCanceled,),
        lambda _, __: DeadlineExceeded("The query took longer than allowed and was stopped."),
    ),
    (
        (errors.LockNotAvailable,),
        lambda _, __: StorageUnavailable("Another writer kept what is needed locked; try again."),
    ),
    (
        (errors.DiskFull,),
        lambda place, _: StorageFull(f"No space left for {place}; nothing was written."),
    ),
    (
        (errors.OutOfMemory, errors.ProgramLimitExceeded, errors.InsufficientResources),
        lambda place, reason: StorageUnavailable(
            f"The server of {place} is short of something: {reason}. Try again."
        ),
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        lambda place, _: StorageReadOnly(
            f"The server of {place} only takes reads: it is a standby, or set to read-only. Name "
            "the primary in the URL of the store, or all hosts with "
            "target_session_attrs=read-write."
        ),
    ),
    (
        (errors.InsufficientPrivilege,),
        lambda place, reason: StorageReadOnly(
            f"The user of {place} may not do that: {reason}. Make it the owner of the schema "
            "zibaldone, or grant it what it needs."
        ),
    ),
    (
        (errors.DataCorrupted, errors.IndexCorrupted),
        _damaged,
    ),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName),
        lambda place, reason: _damaged(place, f"its schema is not what it was: {reason}"),
    ),
    (
        (errors.CharacterNotInRepertoire, errors.UntranslatableCharacter),
        lambda _, __: InvalidArgument("A text has a character that cannot be stored."),
    ),
    (
        (errors.InternalError_, errors.IoError),
        lambda place, reason: StorageUnavailable(f"The server of {place} failed: {reason}."),
    ),
    (
        (psycopg.OperationalError,),
        lambda place, reason: StorageUnavailable(
            f"The connection to {place} was lost: {reason}. Try again."
        ),
    ),
    (
        _UNDECODABLE,
        lambda place, reason: _damaged(place, f"a stored value is unreadable: {reason}"),
    ),
)
"""What the server's errors mean. The first that fits counts: later ones are broader."""


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn PostgreSQL's complaints into ours; errors of our own pass unchanged."""
    try:
        yield
    except STORE_PROBLEMS as problem:
        raise as_storage_error(problem, address) from problem


def is_conflict_of_writers(problem: BaseException) -> bool:
    """Whether the same work would succeed if it ran again."""
    if isinstance(problem, errors.UniqueViolation):
        return problem.diag.constraint_name == "jobs_unique"
    return isinstance(problem, _TRY_AGAIN)


def is_lost_connection(problem: BaseException, raw: psycopg.Connection) -> bool:
    """Whether it says more about the connection than about the statement."""
    return isinstance(problem, psycopg.OperationalError) and (
        raw.closed or isinstance(problem, _GONE)
    )


def is_full(problem: ZibaldoneError) -> bool:
    """Whether the server is there, but has no connection left."""
    return re.search(_FULL, str(problem.__cause__)) is not None


def of_connecting(problem: psycopg.Error, address: Address) -> ZibaldoneError:
    """Why there is no connection."""
    reason = _reason(problem, address)
    for pattern, made in _AT_CONNECTING:
        if pattern.search(str(problem)):
            return made(address.description, reason)
    return StorageUnavailable(
        f"The server of {address.description} cannot be reached: {reason}. Is it running?"
    )


def as_storage_error(problem: BaseException, address: Address) -> ZibaldoneError:
    if isinstance(problem, ZibaldoneError):
        return problem
    reason = _reason(problem, address)
    for kinds, made in _MEANINGS:
        if isinstance(problem, kinds):
            return made(address.description, reason)
    if isinstance(problem, psycopg.DataError) and "NUL" in str(problem):
        return InvalidArgument("A text must not have NUL characters.")
    return Internal(f"The database refused a statement: {reason}")


def _reason(problem: BaseException, address: Address) -> str:
    """The server's first line, or the driver's, without secrets and without its full stop."""
    text = ""
    if isinstance(problem, psycopg.Error):
        text = problem.diag.message_primary or ""
    lines = [line.strip() for line in (text or str(problem)).splitlines() if line.strip()]
    line = lines[0] if lines else type(problem).__name__
    return address.without_secrets(line.removeprefix("connection failed: ").rstrip("."))
