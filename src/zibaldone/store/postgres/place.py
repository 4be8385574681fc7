"""A look at the database from outside, for diagnosis."""

from __future__ import annotations

import psycopg

from zibaldone.errors import ZibaldoneError
from zibaldone.store.port import StorePlace
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import connect


def place_of(address: Address) -> StorePlace:
    problem, is_made, server = "", False, "server not reached"
    try:
        with connect(address) as raw:
            row = raw.execute(
                "SELECT to_regclass('zibaldone.migrations') IS NOT NULL, "
                "current_setting('server_version')"
            ).fetchone()
            if row is not None:
                is_made, server = bool(row[0]), f"server {row[1]}"
    except ZibaldoneError as error:
        problem = error.message
    return StorePlace(
        engine="postgresql",
        version=f"{server} (psycopg {psycopg.__version__})",
        description=address.description,
        is_made=is_made,
        problem=problem,
        advice="Look at the URL of the store, and whether the server runs." if problem else "",
        recovery="Restore a backup of the database, or promote a standby.",
    )
