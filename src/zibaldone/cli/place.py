"""Where the store is: a command that reads never makes one, and one that makes one says so."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from zibaldone.cli.context import IfMissing
from zibaldone.errors import StoreNotFound
from zibaldone.settings import Settings
from zibaldone.store.open import inspect_store, store_url

_log = logging.getLogger("zibaldone.store")


@contextmanager
def usable_store(settings: Settings, if_missing: IfMissing) -> Iterator[Settings]:
    """The settings to open the store with."""
    description = missing_store(settings)
    if description is None:
        yield settings
    elif if_missing == "create":
        _announce(description)
        yield settings
    elif if_missing == "empty":
        with TemporaryDirectory(prefix="zibaldone-") as folder:
            yield replace(settings, data=Path(folder), store="", read_store="")
    else:
        raise _not_found(settings, description)


def missing_store(settings: Settings) -> str | None:
    """What opening the store would make; None: it is there, or it cannot be opened."""
    place = inspect_store(store_url(settings.data, settings.store))
    return None if place.is_made or place.problem else place.description


def announce_creation(settings: Settings) -> None:
    """Say it if opening the store will make it."""
    if description := missing_store(settings):
        _announce(description)


def _announce(description: str) -> None:
    click.echo(f"Creating {description}.", err=True)


def log_creation(settings: Settings) -> None:
    """For servers: say in the log that the store is about to be made."""
    if description := missing_store(settings):
        _log.info("creating %s", description)


def _not_found(settings: Settings, description: str) -> StoreNotFound:
    option, variable = ("--store", "STORE") if settings.store else ("--data", "DATA")
    return StoreNotFound(
        f"{description[0].upper()}{description[1:]} does not exist. Check {option} and "
        f"ZIBALDONE_{variable}. To create it, store something with 'zibaldone put' or "
        "'zibaldone import', or start 'zibaldone serve'.",
        **({} if settings.store else {"folder": str(settings.data)}),
    )
