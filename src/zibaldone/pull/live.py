"""Following sources: a sync soon after something changed.

A PostgreSQL source that is `live` tells us by NOTIFY, from a trigger that its owner installs
(`trigger_sql`). Any other live source is asked every `poll_seconds`. Either way a job is added that
syncs the source; one that is queued already is not added again.

A connection that breaks is made again after a pause that grows. What changed meanwhile is not lost:
the first thing after connecting is a sync.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from zibaldone import extras
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import (
    LIVE_LOOK_SECONDS,
    LIVE_QUIET_SECONDS,
    LIVE_RETRY_SECONDS_MAX,
    SOURCE_CONNECT_SECONDS_MAX,
)
from zibaldone.model.instant import now_us
from zibaldone.model.source import SourceDefinition
from zibaldone.pull import metrics
from zibaldone.pull.address import driver_url, is_postgres
from zibaldone.pull.job import sync_job
from zibaldone.store.port import Store
from zibaldone.store.upkeep import PulledSource, Upkeep

_log = logging.getLogger("zibaldone.pull")

_CHANNEL_BYTES_MAX = 63
_SECOND_US = 1_000_000


def channel_of(name: str) -> str:
    """What a source of that name listens to; PostgreSQL allows 63 bytes."""
    channel = f"zibaldone_{name}"
    if len(channel.encode()) <= _CHANNEL_BYTES_MAX:
        return channel
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"zibaldone_{name[:36]}_{digest}"


def trigger_sql(definition: SourceDefinition) -> str:
    """What the owner of a PostgreSQL table runs once, so that it tells us of changes."""
    channel = channel_of(definition.name)
    table = ".".join(map(_quoted, definition.table.split("."))) or "YOUR_TABLE"
    trigger = _quoted(channel)
    return f"""\
CREATE OR REPLACE FUNCTION zibaldone_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_ARGV[0], '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER {trigger}
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION zibaldone_notify('{channel}');
-- To remove it: DROP TRIGGER {trigger} ON {table};
"""


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
