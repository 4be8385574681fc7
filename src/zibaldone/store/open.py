"""Where the data is → the engine that keeps it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from zibaldone import extras
from zibaldone.errors import ConfigurationError, NotConfigured
from zibaldone.limits import Limits
from zibaldone.store.port import Store, StorePlace
from zibaldone.store.sqlite.place import place_of
from zibaldone.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from zibaldone.store.qdrant.feed import VectorFeed

DATABASE_NAME = "zibaldone.db"

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)  # two letters: C:\ is a drive


def store_url(data: Path, url: str = "") -> str:
    """The setting `store`, or where it is empty the database file in the data folder."""
    if url:
        return url
    path = str(data / DATABASE_NAME)
    return f"sqlite://{path}" if path.startswith("/") else f"sqlite:{path}"


def open_store(
    url: str, limits: Limits, *, read_url: str = "", for_transfer: bool = False
) -> Store:
    """Open the store at a path, `sqlite:PATH` or `postgresql://…`, and make it if it is new.

    `read_url`: a replica of a PostgreSQL database, which reads go to.
    `for_transfer`: also one that is still being filled by a migration from another store.
    """
    if _is_postgres(url):
        from zibaldone.store.postgres.store import PostgresStore

        if read_url and not _is_postgres(read_url):
            raise _no_replica()
        return PostgresStore(url, limits, read_url=read_url, for_transfer=for_transfer)
    if read_url:
        raise _no_replica()
    return SqliteStore(_sqlite_path(url), limits, for_transfer=for_transfer)


def mirrored(store: Store, url: str, identity: str, dimensions: int) -> tuple[Store, VectorFeed]:
    """The store with the index at `qdrant://…` for a model's vectors, and what feeds that."""
    from zibaldone.store.qdrant.address import Address
    from zibaldone.store.qdrant.feed import VectorFeed
    from zibaldone.store.qdrant.index import QdrantIndex
    from zibaldone.store.qdrant.store import MirroredStore

    index = QdrantIndex(Address.parse(url), identity, dimensions)
    return MirroredStore(store, index), VectorFeed(store, index)


def inspect_store(url: str) -> StorePlace:
    """Look at a store without opening it; nothing is made or changed."""
    if _is_postgres(url):
        from zibaldone.store.postgres.address import Address
        from zibaldone.store.postgres.place import place_of as postgres_place

        return postgres_place(Address.parse(url))
    return place_of(_sqlite_path(url))


def store_mark(url: str) -> str:
    """A digest by which two processes on a machine see whether they use the same store.

    It can be shown to anybody: it says neither a path nor a host.
    """
    if _is_postgres(url):
        from zibaldone.store.postgres.address import Address

        address = Address.parse(url)
        place = f"{address.description}, port {address.parameters.get('port') or ''}"
    else:
        place = str(_sqlite_path(url).absolute().resolve())
    return hashlib.sha256(f"zibaldone store: {place}".encode()).hexdigest()[:16]


def severable(url: str) -> tuple[str, Callable[[], int]]:
    """The URL to open the same store by so that its connections can be cut, and what cuts them.

    That returns how many it cut: none, if the store is not on a server.
    """
    if _is_postgres(url):
        from zibaldone.store.postgres.severing import severable as severable_postgres

        return severable_postgres(url)
    return url, lambda: 0


def sqlite_path(url: str) -> Path | None:
    """The file of a store of the embedded engine; None: it is of another."""
    return None if _is_postgres(url) else _sqlite_path(url)


def other_connections(url: str) -> int:
    """How many connections other processes of Zibaldone have to a PostgreSQL database.

    Behind a pooler that cannot be known: 0.
    """
    from zibaldone.store.postgres.address import Address
    from zibaldone.store.postgres.others import connections

    return connections(Address.parse(url))


def _no_replica() -> ConfigurationError:
    return ConfigurationError(
        "read_store: only a PostgreSQL database has replicas. Give postgresql:// URLs for store "
        "and read_store, or leave read_store empty."
    )


def _scheme(url: str) -> str:
    match = _SCHEME.match(url)
    return match[1].lower() if match else ""


def _is_postgres(url: str) -> bool:
    """Whether the URL asks for PostgreSQL; ConfigurationError if that is not to be had."""
    if _scheme(url) not in ("postgresql", "postgres"):
        return False
    try:
        extras.require("postgres", "psycopg")
    except NotConfigured as problem:
        raise ConfigurationError(f"store: {problem.message}") from problem
    return True


def _sqlite_path(url: str) -> Path:
    match = _SCHEME.match(url)
    scheme = _scheme(url)
    # What follows the scheme may hold a password, so that no message repeats it.
    if scheme not in ("", "sqlite"):
        raise ConfigurationError(
            f"store: there is no engine for {scheme}: URLs. Give a path, sqlite:PATH or "
            "postgresql://…"
        )
    path = url.removeprefix(match[0]) if match else url
    if path.startswith("//"):
        if not path.startswith("///"):
            raise ConfigurationError("store: sqlite: takes a path, not a host.")
        path = path[2:]
    if not path or path.endswith(("/", "\\")):
        raise ConfigurationError("store: the path must name a file.")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigurationError("store: the path begins with the home of no user.") from None
