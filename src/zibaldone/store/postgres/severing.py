"""Cuts connections to PostgreSQL: those of this process only, known by a name of their own."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlencode

from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import connect
from zibaldone.store.postgres.faults import translated

_NAME = "application_name"
_TERMINATE = """
SELECT count(*) FROM (
    SELECT pg_terminate_backend(pid) AS is_ended FROM pg_stat_activity
    WHERE application_name = %(name)s AND pid <> pg_backend_pid()
) ended WHERE is_ended
"""


def severable(url: str) -> tuple[str, Callable[[], int]]:
    """The URL of the same store with a name for its connections, and what cuts them.

    That returns how many there were. It takes no more rights than the user of the URL has.
    """
    name = f"zibaldone-canary-{secrets.token_hex(4)}"
    place, _, query = url.partition("?")
    given = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != _NAME]
    named = f"{place}?{urlencode([*given, (_NAME, name)], quote_via=quote)}"

    def sever() -> int:
        address = Address.parse(url)
        with translated(address), connect(address) as raw:
            row = raw.execute(_TERMINATE, {"name": name}).fetchone()
        return 0 if row is None else int(row[0])

    return named, sever
