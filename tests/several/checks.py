"""What must be true of the database when all is over."""

from __future__ import annotations

import asyncio
import time

import psycopg

from tests.several.load import Report
from zibaldone.limits import INDEX_LEASE_SECONDS, Limits
from zibaldone.store.postgres.store import PostgresStore

_PATIENCE_SECONDS = 60.0

_WITHOUT_VECTOR = """
SELECT count(*) FROM zibaldone.chunks c
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.vectors v WHERE v.chunk_key = c.chunk_key)
"""


def check_database(report: Report, url: str, admin_url: str) -> None:
    """Every chunk gets its vector once dead workers' leases have run out; all tables agree."""
    until_s = time.monotonic() + INDEX_LEASE_SECONDS + _PATIENCE_SECONDS
    while (lacking := _count(admin_url)) > 0:
        if time.monotonic() > until_s:
            report.note_problem("lost", f"{lacking} chunks have no vector")
            break
        time.sleep(0.2)
    store = PostgresStore(url, Limits())
    checked = asyncio.run(store.check(thorough=True))
    store.close()
    for problem in checked.problems:
        report.note_problem("partial", problem)


def _count(admin_url: str) -> int:
    with psycopg.connect(admin_url) as raw:
        row = raw.execute(_WITHOUT_VECTOR).fetchone()
    return 0 if row is None else int(row[0])
