"""What SQLite's errors, and the operating system's, mean to a caller."""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import orjson

from zibaldone.errors import (
    ConfigurationError,
    DeadlineExceeded,
    Internal,
    StorageCorrupt,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    ZibaldoneError,
)
from zibaldone.store.rows import UnreadableRowError

_UNDECODABLE = (UnicodeDecodeError, orjson.JSONDecodeError, zlib.error, UnreadableRowError)
"""What reading a damaged value ends in: SQLite keeps no checksum of what is in a page."""

_DAMAGED_SCHEMA = re.compile("^no such |tokenize")
"""Complaints about statements that suited the schema as long as it was whole."""

STORE_PROBLEMS = (apsw.Error, *_UNDECODABLE)
"""What a statement, or the reading of its rows, may fail with."""

_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READ_ONLY_ERRNOS = (errno.EROFS, errno.EACCES, errno.EPERM)
_WRONG_KIND_ERRNOS = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST)


@contextmanager
def translated(path: Path, raw: apsw.Connection | None = None) -> Iterator[None]:
    """Turn SQLite's complaints into ours; errors of our own pass unchanged."""
    try:
        yield
    except STORE_PROBLEMS as problem:
        code = 0 if raw is None else errno_of(raw)
        raise as_storage_error(problem, path, code) from problem


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """The same for what we do with files ourselves."""
    try:
        yield
    except OSError as problem:
        raise _of_file_system(problem, path) from problem


def errno_of(raw: apsw.Connection) -> int:
    """The system's last complaint on a connection; ask before the next statement."""
    try:
        return raw.system_errno
    except apsw.ConnectionClosedError:
        return 0


def extended_code(problem: apsw.Error) -> int:
    """SQLite's finer result code."""
    code: int = getattr(problem, "extendedresult", 0)
    return code


def as_storage_error(problem: BaseException, path: Path, system_errno: int = 0) -> ZibaldoneError:
    """`system_errno`: why the operating system refused a read or a write (see `errno_of`)."""
    damage = _damage(problem)
    if damage:
        return damaged(path, damage)
    match problem:
        case ZibaldoneError():
            return problem
        case apsw.InterruptError():
            return DeadlineExceeded("The query took longer than allowed and was stopped.")
        case apsw.FullError():
            return _full(path)
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StorageReadOnly(f"{path.name} cannot be written: {problem}.")
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StorageUnavailable("Another process kept the database locked; try again.")
        case apsw.ConnectionClosedError():
            return StorageUnavailable("The store is closed.")
        case apsw.IOError() | apsw.CantOpenError():
            return _of_input_output(problem, path, system_errno)
        case _:
            return Internal(f"The database refused a statement: {problem}")


def _damage(problem: BaseException) -> str:
    """What is wrong with the file, if this came of something wrong with it."""
    match problem:
        case apsw.CorruptError() | apsw.NotADBError():
            return str(problem)
        case apsw.SQLError() if _DAMAGED_SCHEMA.search(str(problem)):
            return f"its schema is not what it was: {problem}"
        case _ if isinstance(problem, _UNDECODABLE):
            return f"a stored value is unreadable: {problem}"
        case _:
            return ""


def damaged(path: Path, why: str) -> StorageCorrupt:
    return StorageCorrupt(
        f"{path.name} is damaged ({why}). Run 'zibaldone doctor' and restore a copy."
    )


def _full(path: Path) -> StorageFull:
    return StorageFull(f"No space left for {path.name}; nothing was written.")


def _of_input_output(problem: apsw.Error, path: Path, code: int) -> ZibaldoneError:
    # The shared-memory file beside the database is the first to find no room.
    if code in _FULL_ERRNOS or extended_code(problem) == apsw.SQLITE_IOERR_SHMSIZE:
        return _full(path)
    reason = f"{problem} ({os.strerror(code)})" if code else str(problem)
    if code in _READ_ONLY_ERRNOS:
        return StorageReadOnly(f"{path.name} cannot be written: {reason}.")
    return StorageUnavailable(f"{path.name} cannot be read or written: {reason}.")


def _of_file_system(problem: OSError, path: Path) -> ZibaldoneError:
    place, reason = problem.filename or path, problem.strerror or str(problem)
    if problem.errno in _FULL_ERRNOS:
        return StorageFull(f"No space left to make {place}.")
    if problem.errno in _READ_ONLY_ERRNOS:
        return StorageReadOnly(f"{place} cannot be used: {reason}.")
    if problem.errno in _WRONG_KIND_ERRNOS:
        return ConfigurationError(f"{place} cannot hold the data: {reason}.")
    return StorageUnavailable(f"{place} cannot be used: {reason}.")
