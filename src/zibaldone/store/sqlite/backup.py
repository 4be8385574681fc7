"""Backups: a copy of one state of the store in an SQLite file that can tell whether it is whole.

A backup is an ordinary database file with one more table, which records when it was made and a hash
over the rows of every other table. SQLite keeps no checksums, so this is how damage is noticed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw
import orjson

import zibaldone
from zibaldone.errors import ConfigurationError, Conflict, StorageCorrupt
from zibaldone.model.instant import now_us, to_iso
from zibaldone.store import migrate
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.faults import file_errors, translated
from zibaldone.store.sqlite.place import description_of
from zibaldone.store.sqlite.schema import APPLICATION_ID, refuse_other_file
from zibaldone.store.sqlite.transfer import is_being_filled
from zibaldone.store.tables import half_filled

_RECORD = "backup"
_PAGES_PER_STEP = 1_000
_WAIT_SECONDS_MAX = 5.0
_PROBLEMS_MAX = 3

_COUNTED = {
    "documents": "SELECT count(*) FROM documents WHERE deleted_at_us IS NULL",
    "deleted_documents": "SELECT count(*) FROM documents WHERE deleted_at_us IS NOT NULL",
    "earlier_revisions": "SELECT count(*) FROM revisions",
    "vectors": "SELECT count(*) FROM vectors",
    "audit_lines": "SELECT count(*) FROM audit",
    "api_keys": "SELECT count(*) FROM api_keys",
}
"""What is told about a backup."""

_OF_A_PROCESS = ("index_workers", "vector_mirrors", "vector_mirror_changes")
"""What holds for running processes and for an index outside of the store."""

Advance = Callable[[int], None]
"""Told of every so many pages or rows that are done."""

Occupancy = Literal["absent", "empty", "held", "damaged"]


@dataclass(frozen=True, slots=True)
class BackupFacts:
    made_at: str
    version: str
    """Of Zibaldone."""
    schema: int
    bytes: int
    counts: dict[str, int]


def page_count(path: Path) -> int:
    with _opened(path) as raw:
        return int(raw.execute("PRAGMA page_count").get)


def copy_pages(source: Path, destination: Path, advance: Advance) -> None:
    """Copy one state of the file into a new one. Other processes go on reading and writing."""
    refuse_other_file(source)
    _create(destination)
    with _opened(source) as reader, _opened(destination) as writer, translated(destination, writer):
        writer.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").fetchall()
        # As long as this snapshot is held, every step reads the same state.
        reader.execute("BEGIN")
        if is_being_filled(reader):
            raise half_filled(description_of(source))
        with writer.backup("main", reader, "main") as copying:
            copied = 0
            while not copying.done:
                copying.step(_PAGES_PER_STEP)
                before, copied = copied, copying.page_count - copying.remaining
                advance(copied - before)
        reader.execute("ROLLBACK")


def seal(path: Path) -> BackupFacts:
    """Check a copy and record what it holds; then it is one file, and on disk."""
    with _opened(path) as raw, translated(path, raw):
        raw.execute("PRAGMA journal_mode = DELETE").fetchall()
        present = {name for (name,) in raw.execute("SELECT name FROM sqlite_schema")}
        with raw:
            for name in present.intersection(_OF_A_PROCESS):
                raw.execute(f"DELETE FROM {name}")
            raw.execute(f"DROP TABLE IF EXISTS {_RECORD}")
        _require_sound(raw, path)
        record = {
            "made_at": to_iso(now_us()),
            "version": zibaldone.__version__,
            "tables": _digests(raw),
        }
        with raw:
            raw.execute(f"CREATE TABLE {_RECORD} (record TEXT NOT NULL) STRICT")
            raw.execute(f"INSERT INTO {_RECORD} VALUES (?)", (orjson.dumps(record).decode(),))
        facts = _facts(raw, path, record)
    sync(path)
    return facts


def open_sealed(path: Path) -> BackupFacts:
    """Compare a copy of a backup with its record, and make an ordinary database of it.

    StorageCorrupt: it is not what was written. ConfigurationError: it is no backup.
    """
    _require_backup(path)
    with _opened(path) as raw, translated(path, raw):
        version = int(raw.execute("PRAGMA user_version").get)
        newest = migrate.load("zibaldone.store.sqlite")[-1].number
        if version > newest:
            raise ConfigurationError(
                f"{path.name} has schema {version}, this version of Zibaldone knows up to "
                f"{newest}. Upgrade Zibaldone first."
            )
        _require_sound(raw, path)
        if not raw.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_RECORD,)).fetchall():
            raise ConfigurationError(
                f"{path.name} is a database of Zibaldone, but was not made by 'zibaldone backup', "
                "so nothing tells whether it is complete."
            )
        record = orjson.loads(str(raw.execute(f"SELECT record FROM {_RECORD}").get))
        digests = _digests(raw)
        changed = sorted(
            name
            for name in digests.keys() | record["tables"].keys()
            if digests.get(name) != tuple(record["tables"].get(name, ()))
        )
        if changed:
            raise StorageCorrupt(
                f"{path.name} is damaged or was changed after it was made; these tables are not "
                f"what was written: {', '.join(changed)}. Use another backup."
            )
        facts = _facts(raw, path, record)
        raw.execute(f"DROP TABLE {_RECORD}").fetchall()
    return facts


def occupancy(path: Path) -> Occupancy:
    """What is at the place where a store is to be. Conflict: a process has it open."""
    if not path.exists():
        return "absent"
    try:
        refuse_other_file(path)
        with _exclusively(path) as raw:
            is_held = _is_held(raw)
    except StorageCorrupt:
        return "damaged"
    return "held" if is_held else "empty"


def _is_held(raw: apsw.Connection) -> bool:
    held = (
        f"EXISTS (SELECT 1 FROM {name})"
        for name in ("documents", "audit", "api_keys")
        if raw.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
    )
    return bool(raw.execute(f"SELECT {' OR '.join(held) or '0'}").get)


def install(made: Path, path: Path, kept: Path, *, force: bool) -> Path | None:
    """Put a database file in the place of another, at once; where the other one is kept.

    None: it held nothing. A kill at any moment leaves one or the other in place. Conflict: a
    process has it open; or, without `force`, it holds something by now.
    """
    with file_errors(path):
        _own_like(made, path if path.exists() else path.parent)
        sync(made)
        try:
            if path.exists():
                found = _replace_whole(made, path, kept, force)
            else:
                found = _replace_with_logs(made, path, kept)
        except StorageCorrupt:
            found = _replace_with_logs(made, path, kept)
    _sync_folder(path.parent)
    return found


def _replace_whole(made: Path, path: Path, kept: Path, force: bool) -> Path | None:
    with _exclusively(path) as raw:
        is_held = _is_held(raw)
        if is_held and not force:
            raise Conflict(
                f"{path} was filled while the backup was read. Replace it with --force; it is kept "
                "then. Nothing was changed."
            )
        if is_held:
            _link(path, kept)
        made.replace(path)
    return kept if is_held else None


def _replace_with_logs(made: Path, path: Path, kept: Path) -> Path | None:
    """Where the other one is damaged or gone, so that its logs could not be moved into it.

    SQLite would take them for those of the file that comes in its place, and mix the two.
    """
    found = None
    for suffix in ("-wal", "-journal", ""):
        beside = path.with_name(path.name + suffix)
        if beside.exists() and (not suffix or beside.stat().st_size):
            found = kept.with_name(kept.name + suffix)
            _link(beside, found)
    for suffix in ("-wal", "-journal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    made.replace(path)
    return found


def sync(path: Path) -> None:
    with file_errors(path):
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def publish(made: Path, path: Path) -> None:
    """Give a finished file its name, at once and durably."""
    with file_errors(path):
        made.replace(path)
    _sync_folder(path.parent)


def copy_of(file: Path, destination: Path) -> None:
    """A copy that only its owner can read."""
    with file_errors(file):
        _create(destination)
        shutil.copyfile(file, destination)


def _own_like(made: Path, place: Path) -> None:
    """Whoever restores may be root; the server is not."""
    if os.name == "posix" and os.geteuid() == 0:
        stat = place.stat()
        os.chown(made, stat.st_uid, stat.st_gid)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    with file_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _link(path: Path, kept: Path) -> None:
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        shutil.copy2(path, kept)
        sync(kept)


def _create(path: Path) -> None:
    with file_errors(path):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    connection = Connection(path, wait_seconds_max=_WAIT_SECONDS_MAX)
    try:
        with connection.translated():
            yield connection.raw
    finally:
        connection.close()


@contextmanager
def _exclusively(path: Path) -> Iterator[apsw.Connection]:
    """No other process has the file open meanwhile, and all of it is in the file itself."""
    connection = Connection(path, wait_seconds_max=0.5)
    try:
        with connection.translated():
            try:
                # SQLite leaves the WAL mode only if nobody else is connected.
                connection.raw.execute("PRAGMA journal_mode = DELETE").fetchall()
                connection.raw.execute("BEGIN EXCLUSIVE")
            except (apsw.BusyError, apsw.LockedError):
                raise Conflict(
                    f"{path} is in use. Stop the server, and every other process that uses it; "
                    "nothing was changed."
                ) from None
            yield connection.raw
    finally:
        connection.close()


def _require_backup(path: Path) -> None:
    with file_errors(path), path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(b"SQLite format 3\0"):
        raise StorageCorrupt(f"{path.name} is not a backup, or it is damaged at its beginning.")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise ConfigurationError(f"{path.name} is an SQLite database of another program.")


def _require_sound(raw: apsw.Connection, path: Path) -> None:
    try:
        lines = [str(line) for (line,) in raw.execute(f"PRAGMA integrity_check({_PROBLEMS_MAX})")]
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as problem:
        lines = [str(problem)]
    if lines != ["ok"]:
        raise StorageCorrupt(f"{path.name} is damaged: {'; '.join(lines)}.")


def _digests(raw: apsw.Connection) -> dict[str, tuple[int, str]]:
    """By table, the number of rows and a hash over them. Those of virtual tables are included."""
    names = raw.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> ? "
        "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
        (_RECORD,),
    ).fetchall()
    return {str(name): _digest(raw, str(name)) for (name,) in names}


def _digest(raw: apsw.Connection, name: str) -> tuple[int, str]:
    digest, rows = hashlib.blake2b(digest_size=16), 0
    # In the order of the table itself, whatever index a planner would prefer.
    for row in raw.execute(f'SELECT * FROM "{name}" NOT INDEXED'):
        digest.update(b"".join(map(_encoded, row)))
        rows += 1
    return rows, digest.hexdigest()


def _encoded(value: Any) -> bytes:
    """With its type and length before it, so that no two rows have the same bytes."""
    if value is None:
        return b"-"
    if isinstance(value, bytes):
        return b"b%d:%b" % (len(value), value)
    data = value.encode() if isinstance(value, str) else repr(value).encode()
    return b"%b%d:%b" % (b"t" if isinstance(value, str) else b"n", len(data), data)


def _facts(raw: apsw.Connection, path: Path, record: dict[str, Any]) -> BackupFacts:
    return BackupFacts(
        made_at=record["made_at"],
        version=record["version"],
        schema=int(raw.execute("PRAGMA user_version").get),
        bytes=path.stat().st_size,
        counts={name: int(raw.execute(sql).get) for name, sql in _COUNTED.items()},
    )
