"""A report on an AgentData source, made before anything is imported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from zibaldone.errors import InvalidArgument
from zibaldone.limits import IMPORT_EXAMPLES_MAX
from zibaldone.pull.agent_data.row import KbRow, key_of
from zibaldone.text import normalize


@dataclass(slots=True)
class Preflight:
    """Counts, and a few examples of each finding that means work."""

    rows: int = 0
    live: int = 0
    deleted: int = 0
    unreadable: int = 0
    without_id: int = 0
    non_numeric_revisions: int = 0
    key_mismatches: int = 0
    live_ids_with_underscore: int = 0
    live_ids_with_percent: int = 0
    live_ids_with_backslash: int = 0
    body_bytes: int = 0
    ids_changed: int = 0
    ids_refused: int = 0
    ids_colliding: int = 0
    bodies_too_large: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)
    losers: set[int] = field(default_factory=set)
    """Numbers of the rows that give way to another row with the same id."""

    def as_dict(self) -> dict[str, Any]:
        values = asdict(self)
        del values["losers"]
        return values

    def note(self, finding: str, what: str) -> None:
        setattr(self, finding, getattr(self, finding) + 1)
        examples = self.examples.setdefault(finding, [])
        if len(examples) < IMPORT_EXAMPLES_MAX:
            # Ids may hold what UTF-8 cannot; it is written escaped.
            examples.append(what.encode(errors="backslashreplace").decode())


def inspect(rows: Iterable[KbRow], body_bytes_max: int) -> Preflight:
    """Read every row once; keeps ids in memory, never bodies."""
    report = Preflight()
    claims: dict[str, tuple[tuple[bool, bool], KbRow]] = {}
    for row in rows:
        report.rows += 1
        if row.problem:
            report.note("unreadable", f"row {row.number}: {row.problem}")
            continue
        report.live += row.is_live
        report.deleted += not row.is_live
        _inspect_body(report, row, body_bytes_max)
        if not row.document_id:
            report.note("without_id", f"row {row.number}, key {row.key!r}")
            continue
        _inspect_id(report, row)
        _claim(report, row, claims)
    return report


def _inspect_body(report: Preflight, row: KbRow, body_bytes_max: int) -> None:
    size_bytes = len(row.body.encode(errors="surrogatepass"))
    report.body_bytes += size_bytes
    if size_bytes > body_bytes_max:
        report.note("bodies_too_large", f"{row.document_id} ({size_bytes} bytes)")


def _inspect_id(report: Preflight, row: KbRow) -> None:
    document_id = row.document_id
    if row.revision is None:
        report.note("non_numeric_revisions", f"{document_id}: {row.data.get('revision')!r}")
    if row.key != key_of(document_id):
        report.note("key_mismatches", f"{row.key} for {document_id}")
    if row.is_live:
        report.live_ids_with_underscore += "_" in document_id
        report.live_ids_with_percent += "%" in document_id
        report.live_ids_with_backslash += "\\" in document_id


def _claim(
    report: Preflight, row: KbRow, claims: dict[str, tuple[tuple[bool, bool], KbRow]]
) -> None:
    """Of rows with the same id, a live one wins, then one whose id is unchanged, then the first."""
    try:
        document_id = normalize.document_id(row.document_id, "document_id")
    except InvalidArgument as error:
        report.note("ids_refused", f"{row.document_id!r}: {error.message}")
        return
    if document_id != row.document_id:
        report.note("ids_changed", f"{row.document_id!r} becomes {document_id!r}")
    bare = KbRow(row.number, row.key, {"document_id": row.document_id})
    rank = (not row.is_live, document_id != row.document_id)
    holder = claims.get(document_id)
    if holder is None:
        claims[document_id] = (rank, bare)
        return
    winner, loser = (holder[1], bare) if holder[0] <= rank else (bare, holder[1])
    claims[document_id] = min(holder, (rank, bare), key=lambda claim: claim[0])
    report.losers.add(loser.number)
    report.note(
        "ids_colliding",
        f"row {loser.number} ({loser.document_id!r}) gives way to row {winner.number}",
    )
