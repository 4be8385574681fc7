"""A look at the database from outside, for diagnosis."""

from __future__ import annotations

import psycopg

from zibaldone.errors import ZibaldoneError
from zibaldone.store.port import StorePlace
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import connect
from zibaldone.store.postgres.faults import translated
from zibaldone.store.postgres.schema import look


def place_of(address: Address) -> StorePlace:
    problem, is_made, server = "", False, "server not reached"
    try:
        with connect(address) as raw:
            server = f"server {raw.info.parameter_status('server_version')}"
            with translated(address):
                is_made = look(raw, address)
    except ZibaldoneError as error:
        problem = error.message
    return StorePlace(
        engine="postgresql",
        version=f"{server} (psycopg {psycopg.__version__})",
        description=address.description
        if is_made or problem
        else f"the schema zibaldone in {address.description}",
        is_made=is_made,
        problem=problem,
        advice="Do what it says, or look at the URL of the store." if problem else "",
        recovery="Restore a backup of the database, or promote a standby.",
    )
