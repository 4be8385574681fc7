"""Ids of jobs as callers see them.

A sync is shown as `sync-<UTC time>`, the time at which it was added: the id that is stored begins
with the milliseconds of that time, and the rest of it makes the fraction longer. One form can be
computed from the other, so lists stay in order and both forms are accepted.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SYNC = "sync"
"""The kind of job that brings a source up to date."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS_HEX_DIGITS = 11
_REST_HEX_DIGITS = 15
_STORED = re.compile(f"[0-9a-f]{{{_MS_HEX_DIGITS + _REST_HEX_DIGITS}}}")
_REST_DIGITS = len(str(16**_REST_HEX_DIGITS - 1))
_SHOWN = re.compile(
    rf"sync-(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{{3}})(\d{{{_REST_DIGITS}}})Z", re.ASCII
)


def shown_id(job_id: str, kind: str) -> str:
    """The id of a job as it is shown."""
    if kind != SYNC or not _STORED.fullmatch(job_id):
        return job_id
    ms = int(job_id[:_MS_HEX_DIGITS], 16)
    rest = int(job_id[_MS_HEX_DIGITS:], 16)
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return job_id
    return f"sync-{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}{rest:0{_REST_DIGITS}}Z"


def stored_id(shown: str) -> str:
    """The id of a job as it is stored; one that was never shown so stays as it is."""
    match = _SHOWN.fullmatch(shown)
    if match is None:
        return shown
    try:
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        return shown
    ms = (moment - _EPOCH) // timedelta(milliseconds=1) + int(match[2])
    rest = int(match[3])
    if ms < 0 or rest >= 16**_REST_HEX_DIGITS:
        return shown
    return f"{ms:0{_MS_HEX_DIGITS}x}{rest:0{_REST_HEX_DIGITS}x}"
