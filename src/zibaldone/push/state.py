"""What was sent to one server: a small SQLite file, written after each note.

A transaction is on its way to the disk when it returns, and complete there or absent. A crash of
the process loses nothing. A power cut may lose the newest entries; those notes are sent again, and
the server recognises them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from zibaldone.errors import Conflict, StorageUnavailable
from zibaldone.model.instant import now_us
from zibaldone.push.scan import LocalFile

_SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    read_ns INTEGER NOT NULL,
    digest TEXT NOT NULL,
    parts INTEGER NOT NULL,
    is_visible INTEGER NOT NULL,
    sent_at_us INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sending (path TEXT PRIMARY KEY, parts INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class SavedNote(NamedTuple):
    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    read_ns: int
    digest: str
    parts: int
    is_visible: int
    """Whether the server was seen to have it; one that stores before it answers always has."""
    sent_at_us: int


class State:
    """Open in one process at a time."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.was_damaged = False
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StorageUnavailable(f"Cannot create {file.parent}: {problem.strerror}.") from None
        try:
            self._database = _open(file)
        except sqlite3.DatabaseError as problem:
            if isinstance(problem, sqlite3.OperationalError):
                raise _told(file, problem) from None
            # Nothing in it is needed: what it knew is asked of the server again.
            file.replace(file.with_name(file.name + ".damaged"))
            for ending in ("-wal", "-shm"):
                file.with_name(file.name + ending).unlink(missing_ok=True)
            self.was_damaged = True
            self._database = _open(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def notes(self) -> dict[str, SavedNote]:
        rows = self._database.execute("SELECT * FROM notes")
        return {row[0]: SavedNote._make(row) for row in rows}

    def sending(self) -> dict[str, int]:
        """Notes that were being sent when a push ended, and of how many parts they were."""
        return dict(self._database.execute("SELECT path, parts FROM sending"))

    def fact(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def set_fact(self, name: str, value: str) -> None:
        with _telling(self.file):
            self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def begin(self, path: str, parts: int) -> None:
        """Before a note is sent: whatever happens next, its parts may be on the server."""
        with _telling(self.file):
            self._database.execute(
                "INSERT INTO sending VALUES (?, ?) "
                "ON CONFLICT (path) DO UPDATE SET parts = max(parts, excluded.parts)",
                (path, parts),
            )

    def finish(
        self, file: LocalFile, *, read_ns: int, digest: str, parts: int, is_visible: bool
    ) -> None:
        """After all of it was acknowledged."""
        row = SavedNote(*file, read_ns, digest, parts, int(is_visible), now_us())
        with _telling(self.file), self._transaction():
            self._database.execute(
                "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row
            )
            self._database.execute("DELETE FROM sending WHERE path = ?", (file.path,))

    def forget(self, path: str) -> None:
        """After it was deleted on the server."""
        with _telling(self.file), self._transaction():
            self._database.execute("DELETE FROM notes WHERE path = ?", (path,))
            self._database.execute("DELETE FROM sending WHERE path = ?", (path,))

    def touch(self, files: Mapping[LocalFile, int]) -> None:
        """Files whose time changed but not their text, and when they were read."""
        with _telling(self.file), self._transaction():
            self._database.executemany(
                "UPDATE notes SET size = ?, mtime_ns = ?, ctime_ns = ?, read_ns = ? WHERE path = ?",
                [
                    (file.size, file.mtime_ns, file.ctime_ns, read_ns, file.path)
                    for file, read_ns in files.items()
                ],
            )

    def set_visible(self, paths: Iterable[str], *, is_visible: bool = True) -> None:
        with _telling(self.file), self._transaction():
            self._database.executemany(
                "UPDATE notes SET is_visible = ? WHERE path = ?",
                [(int(is_visible), path) for path in paths],
            )

    def clear(self) -> None:
        """Forget all notes: the server is another one than before."""
        with _telling(self.file), self._transaction():
            self._database.execute("DELETE FROM notes")
            self._database.execute("DELETE FROM sending")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def _open(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=0.2, isolation_level=None)
    try:
        # The lock is held until the file is closed, by the end of the process at the latest.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("BEGIN EXCLUSIVE")
        for statement in _SCHEMA.split(";"):
            database.execute(statement)
        database.execute("COMMIT")
        database.execute("SELECT count(*) FROM notes").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _told(file: Path, problem: sqlite3.Error) -> Conflict | StorageUnavailable:
    if "locked" in str(problem):
        return Conflict(
            "Another push of this folder to this server is running. Wait until it has ended."
        )
    return StorageUnavailable(f"Cannot use the state file {file}: {problem}.")


@contextlib.contextmanager
def _telling(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as problem:
        raise _told(file, problem) from None
