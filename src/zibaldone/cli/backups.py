"""zibaldone backup, and the restoring of a backup: the store as one file, whatever its engine."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zibaldone.cli import context
from zibaldone.errors import ConfigurationError, Conflict, NotFound
from zibaldone.folders import make_private

if TYPE_CHECKING:
    from zibaldone.exchange.migrate import Migration
    from zibaldone.settings import Settings
    from zibaldone.store.port import Store
    from zibaldone.store.sqlite.backup import BackupFacts

_SQLITE_BEGINS = b"SQLite format 3\0"
_ROWS_PER_ROUND = 2
"""A table is read from the store, and again from the copy to compare."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@context.json_option
@click.pass_obj
def backup(options: context.Options, /, file: Path, force: bool, as_json: bool) -> None:
    """Write everything into FILE, while the server runs.

    FILE is an SQLite file of one moment, read again and checked before it gets its name. It holds
    all documents and revisions, vectors, the audit log and the hashes of API keys; only its owner
    can read it. `zibaldone restore FILE` brings it back, on SQLite and on PostgreSQL.
    """
    from zibaldone.store.open import inspect_store, store_url

    settings = options.settings()
    url = store_url(settings.data, settings.store)
    _require_writable(file, force)
    place = inspect_store(url)
    if not place.is_made:
        raise ConfigurationError(
            "There is nothing to back up: "
            f"{place.problem or f'{place.description} does not exist'}."
        )
    with _own_folder(file.absolute().parent / f".{file.name}.partial") as folder:
        facts = _write_backup(settings, url, file, folder)
    answer = {"file": str(file.absolute()), "from": place.description, **asdict(facts)}
    if as_json:
        context.echo_json(answer)
        return
    click.echo(f"Backed up {place.description} to {file}")
    _echo_counts(facts)
    click.echo("Read again and verified. Keep it as safe as the store itself.")


def _write_backup(settings: Settings, url: str, file: Path, folder: Path) -> BackupFacts:
    """Make it in the folder, which is on the same disk; then it gets its name."""
    from zibaldone.store.open import sqlite_path
    from zibaldone.store.sqlite.backup import copy_pages, page_count, publish, seal

    source = sqlite_path(url)
    if source is not None and _is_part_of(file, source):
        raise Conflict(f"{file} is the store itself. Give another FILE.")
    made = folder / file.name
    if source is None:
        _copy_tables(settings, url, made)
    else:
        with context.progress("Copying", page_count(source)) as advance:
            copy_pages(source, made, advance)
    facts = seal(made)
    publish(made, file)
    return facts


def _copy_tables(settings: Settings, url: str, made: Path) -> None:
    from zibaldone.exchange.backup import copy_tables, count_rows
    from zibaldone.store.open import open_store

    async def copy_all(store: Store, copy: Store) -> None:
        rows = await count_rows(store)
        with context.progress("Copying", _ROWS_PER_ROUND * rows) as advance:
            await copy_tables(store, copy, advance)

    store = open_store(url, settings.limits)
    try:
        copy = open_store(str(made.absolute()), settings.limits, for_transfer=True)
        try:
            made.chmod(0o600)
            asyncio.run(copy_all(store, copy))
        finally:
            copy.close()
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class Restored:
    facts: BackupFacts
    store: str
    kept: Path | None
    """Where what was there before is."""


def is_database(file: Path) -> bool:
    """Is it a file of SQLite, as backups are? Also one that cannot be read: that is told later."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(_SQLITE_BEGINS)) == _SQLITE_BEGINS
    except OSError:
        return file.is_file()


def restore_backup(options: context.Options, file: Path, *, force: bool, as_json: bool) -> None:
    from zibaldone.store.open import inspect_store, sqlite_path, store_url

    if not file.is_file():
        raise NotFound(
            f"There is no file {file}, and no document has that path. To list deleted documents: "
            "zibaldone ls --deleted"
        )
    settings = options.settings()
    url = store_url(settings.data, settings.store)
    target = sqlite_path(url)
    if target is not None:
        restored = _restore_file(settings, file, target, force)
    else:
        place = inspect_store(url)
        if place.problem:
            raise ConfigurationError(f"{place.problem}.")
        restored = _restore_tables(settings, file, url, force)
    answer: dict[str, Any] = {
        "file": str(file.absolute()),
        "to": restored.store,
        "kept": None if restored.kept is None else str(restored.kept),
        **asdict(restored.facts),
    }
    if as_json:
        context.echo_json(answer)
        return
    click.echo(f"Restored {file}, made at {restored.facts.made_at}, to {restored.store}")
    _echo_counts(restored.facts)
    if restored.kept is not None:
        click.echo(f"What was there before is kept in {restored.kept}")


def _restore_file(settings: Settings, file: Path, target: Path, force: bool) -> Restored:
    from zibaldone.store.open import open_store
    from zibaldone.store.sqlite.backup import install, occupancy
    from zibaldone.store.sqlite.place import description_of

    if _is_part_of(file, target):
        raise Conflict(f"{file} is the store itself.")
    found = occupancy(target)
    if found in ("held", "damaged") and not force:
        raise _occupied(description_of(target), is_damaged=found == "damaged")
    make_private(target.parent)
    with _own_folder(target.parent / f".{target.name}.restoring") as folder:
        made, facts = _opened_copy(file, folder)
        # To the schema of this version, and to see that it can be opened.
        open_store(str(made.absolute()), settings.limits).close()
        kept = install(made, target, _kept(target), force=force)
    return Restored(facts, description_of(target), kept)


def _restore_tables(settings: Settings, file: Path, url: str, force: bool) -> Restored:
    from zibaldone.exchange.migrate import Migration
    from zibaldone.store.open import open_store, other_connections

    if others := other_connections(url):
        raise Conflict(
            f"{others} connections of Zibaldone to the database are open. Stop the server, and "
            "every other process that uses it; nothing was changed."
        )
    make_private(settings.data)
    with _own_folder(settings.data / ".restoring") as folder:
        made, facts = _opened_copy(file, folder)
        source = open_store(str(made.absolute()), settings.limits)
        try:
            store = open_store(url, settings.limits, for_transfer=True)
            try:
                migration = Migration(source, store)
                kept = None
                if asyncio.run(migration.is_occupied()):
                    if not force:
                        raise _occupied(store.description)
                    kept = _kept(settings.data / "zibaldone.db")
                    _write_backup(settings, url, kept, folder)
                asyncio.run(_move(migration))
                return Restored(facts, store.description, kept)
            finally:
                store.close()
        finally:
            source.close()


async def _move(migration: Migration) -> None:
    rows = await migration.begin(restart=True, replace=True)
    with context.progress("Copying", rows) as advance:
        await migration.copy(advance)
    with context.progress("Verifying", 2 * rows) as advance:
        await migration.verify(advance)


def _opened_copy(file: Path, folder: Path) -> tuple[Path, BackupFacts]:
    """What is restored is what was checked: nobody else can change this copy."""
    from zibaldone.store.sqlite.backup import copy_of, open_sealed

    made = folder / file.name
    copy_of(file, made)
    return made, open_sealed(made)


def _occupied(description: str, *, is_damaged: bool = False) -> Conflict:
    what = "is there already and is damaged" if is_damaged else "holds data already"
    return Conflict(
        f"{description[:1].upper()}{description[1:]} {what}. Give another place with --data or "
        "--store, or replace it with --force; it is kept then. Nothing was changed."
    )


def _kept(path: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = f"{path.name}.before-restore-{stamp}"
    number = 1
    while (kept := path.with_name(name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return kept


def _require_writable(file: Path, force: bool) -> None:
    if file.is_dir():
        raise Conflict(f"{file} is a folder. Give the name of a file in it.")
    if not file.absolute().parent.is_dir():
        raise NotFound(f"There is no folder {file.absolute().parent}.")
    if file.exists() and not force:
        raise Conflict(f"{file} is there already. Give another name, or replace it with --force.")


def _is_part_of(file: Path, store: Path) -> bool:
    names = (store.with_name(store.name + suffix) for suffix in ("", "-wal", "-shm"))
    return any(file.absolute() == name.absolute() or _is_same(file, name) for name in names)


def _is_same(one: Path, two: Path) -> bool:
    return one.exists() and two.exists() and one.samefile(two)


@contextmanager
def _own_folder(folder: Path) -> Iterator[Path]:
    """A folder for files that are being made. What a killed process left there is removed."""
    from zibaldone.store.sqlite.faults import file_errors

    with file_errors(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = (folder / "lock").open("w")
    try:
        if not _is_locked(lock):
            raise Conflict(f"Another process is at work in {folder}. Wait until it has ended.")
        try:
            for left in folder.iterdir():
                if left.name != "lock":
                    left.unlink()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.close()


def _is_locked(lock: Any) -> bool:
    """Whether this process has the lock now; the system releases that of a killed one."""
    try:
        import fcntl
    except ImportError:  # Windows refuses to delete files that are open, which is enough
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _label(name: str) -> str:
    return name.replace("_", " ").replace("api", "API")


def _echo_counts(facts: BackupFacts) -> None:
    rows = [(f"  {_label(name)}", f"{count:,}") for name, count in facts.counts.items()]
    context.echo_table([*rows, ("  bytes", f"{facts.bytes:,}")], right=frozenset({1}))
