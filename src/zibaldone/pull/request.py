"""How a sync is asked for: the job that does it, whoever adds it.

All jobs of a source have one unique key, so that there is one of them at a time: asking again while
one is queued or running gives that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zibaldone.jobs.schedule import RUN_SUBJECT, RUN_UNIQUE_KEY
from zibaldone.model.job import NewJob

SYNC = "sync"
"""The kind of the job."""


def sync_payload(
    source_id: int, *, full: bool = False, allow_deletes: bool = False
) -> Mapping[str, Any]:
    """`full`: compare every row whole. `allow_deletes`: however many documents that deletes."""
    return {
        "source_id": source_id,
        **({"full": True} if full else {}),
        **({"allow_deletes": True} if allow_deletes else {}),
    }


def sync_job(
    source_id: int, name: str, *, full: bool = False, allow_deletes: bool = False
) -> NewJob:
    return NewJob(
        SYNC,
        subject=name,
        payload=sync_payload(source_id, full=full, allow_deletes=allow_deletes),
        unique_key=unique_key(source_id),
    )


def unique_key(source_id: int) -> str:
    return f"sync:{source_id}"


def schedule_name(source_id: int) -> str:
    """The name of the schedule of a source that has one."""
    return f"sync:{source_id}"


def scheduled_payload(source_id: int, name: str) -> Mapping[str, Any]:
    """The payload of that schedule; its runs are jobs like any other of the source."""
    return {
        **sync_payload(source_id),
        RUN_SUBJECT: name,
        RUN_UNIQUE_KEY: unique_key(source_id),
    }
