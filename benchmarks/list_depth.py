"""A page of 50 documents at the start, in the middle and at the end of a very long list.

    python -m benchmarks.list_depth [--quick]

The same pages of 1 000 000 documents and of 5 000, each served by a process of its own. The rows
are put in by SQL, in an order that has nothing to do with their ids, as years of writing would: the
product's own writes would take many minutes and leave the same rows in what a list reads.
"""

from __future__ import annotations

import http.client
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import orjson

from benchmarks.load import Stretch, Target, interleaved, request
from benchmarks.report import Finding, microseconds, paired_ratio, table
from benchmarks.servers.process import ServerProcess, zibaldone
from zibaldone.limits import LIST_LIMIT_MAX, LIST_OFFSET_MAX, Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url

SMALL, LARGE, LARGE_QUICK = 5_000, 1_000_000, 100_000
PAGE = 50
_RATIO_MAX = 1.5
_PAGES_PER_PLACE = 400

_FILL = """
WITH RECURSIVE counted (number) AS (
    SELECT 0 UNION ALL SELECT number + 1 FROM counted LIMIT :count
), numbered (number) AS (
    SELECT number * :step % :count FROM counted
)
INSERT INTO documents (namespace, document_id, source_id, parent_id, title, tags, mime, metadata,
    revision, content_hash, content_chars, created_at_us, updated_at_us, updated_by, operation,
    vector_status)
SELECT 'default', format('area-%03d/note-%07d', number % 1000, number), 1,
    format('area-%03d', number % 1000), format('Note %d about something', number), '["a","b"]',
    'text/markdown', '{}', 1, zeroblob(16), 4, 1, 1, 'benchmark', 'import', 'skipped'
FROM numbered;
INSERT INTO bodies (document_key, body) SELECT document_key, 'text' FROM documents;
"""


def measure(*, quick: bool) -> list[Finding]:
    rounds, seconds = (8, 0.15) if quick else (25, 0.15)
    count = LARGE_QUICK if quick else LARGE
    with tempfile.TemporaryDirectory() as folder:
        small_data, large_data = Path(folder) / "small", Path(folder) / "large"
        _build(small_data, SMALL)
        _build(large_data, count)
        with zibaldone(small_data) as small, zibaldone(large_data) as large:
            findings = []
            asked = {"small": _pages(small, SMALL), "large": _pages(large, count)}
            for place in asked["small"]:
                targets = [
                    Target("large", large, asked["large"][place]),
                    Target("small", small, asked["small"][place]),
                ]
                found = interleaved(targets, rounds=rounds, seconds=seconds)
                findings += _compared(f"{place} of {count:,}", **found)
    return findings


def _build(data: Path, count: int) -> None:
    open_store(store_url(data), Limits()).close()
    raw = apsw.Connection(str(data / DATABASE_NAME))
    raw.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN")
    # Making the indexes at the end, from sorted rows, takes a tenth of the time.
    indexes = raw.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'documents'"
    ).fetchall()
    for name, _ in indexes:
        raw.execute(f"DROP INDEX {name}")
    step = next(step for step in range(count * 5 // 8 + 1, count) if math.gcd(step, count) == 1)
    raw.execute(_FILL, {"count": count, "step": step}).fetchall()
    for _, sql in indexes:
        raw.execute(str(sql))
    raw.execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    raw.close()


def _pages(server: ServerProcess, count: int) -> dict[str, list[bytes]]:
    """Requests for pages at several depths, by cursors that the server gave on the way."""
    cursors = list(_walk(server, count))
    places = {"start": 0.0, "middle": 0.5, "end": 1.0}
    asked = {}
    for place, share in places.items():
        first = int(share * max(0, len(cursors) - _PAGES_PER_PLACE))
        near = cursors[first : first + _PAGES_PER_PLACE]
        asked[f"cursor, {place}"] = [
            request("GET", f"/documents?limit={PAGE}&cursor={cursor}") for cursor in near
        ]
    offset = min(LIST_OFFSET_MAX, count) - PAGE
    asked["offset, deepest"] = [request("GET", f"/documents?limit={PAGE}&offset={offset}")]
    return asked


def _walk(server: ServerProcess, count: int) -> Iterator[str]:
    """Every cursor of the whole list; the list is found to be complete and in order."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    seen, last, after = 0, "", ""
    while True:
        connection.request("GET", f"/documents?limit={LIST_LIMIT_MAX}{after}")
        page: dict[str, Any] = orjson.loads(connection.getresponse().read())
        ids = [last, *(item["document_id"] for item in page["items"])]
        assert ids == sorted(set(ids))
        seen, last = seen + page["count"], ids[-1]
        if "next_cursor" not in page:
            break
        after = "&cursor=" + page["next_cursor"]
        yield page["next_cursor"]
    connection.close()
    assert seen == count, f"the walk met {seen} documents"


def _compared(what: str, large: list[Stretch], small: list[Stretch]) -> list[Finding]:
    findings = []
    for name, field in (("p95", "p95_us"), ("server CPU", "cpu_us")):
        values = [getattr(stretch, field) for stretch in large]
        others = [getattr(stretch, field) for stretch in small]
        findings.append(
            Finding(
                f"list of {PAGE}, {what}: {name}",
                microseconds(statistics.median(values)),
                f"{microseconds(statistics.median(others))} (of {SMALL:,})",
                paired_ratio(values, others),
                at_most=_RATIO_MAX if "cursor" in what and name == "p95" else None,
            )
        )
    return findings


if __name__ == "__main__":
    print(table(measure(quick="--quick" in sys.argv)))
