"""Who else is connected to the database."""

from __future__ import annotations

from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import connect
from zibaldone.store.postgres.faults import translated

_COUNT = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND application_name = current_setting('application_name')
"""


def connections(address: Address) -> int:
    """Of processes that call themselves as this one does.

    A pooler keeps connections open that nobody uses any more, so nothing is said of one.
    """
    if address.direct_parameters:
        return 0
    with translated(address), connect(address) as raw:
        row = raw.execute(_COUNT).fetchone()
    return 0 if row is None else int(row[0])
