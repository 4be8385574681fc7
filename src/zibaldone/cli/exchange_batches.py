"""Writing many documents: in batches, with a count of what became of each."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import click

from zibaldone.access.principal import LOCAL
from zibaldone.cli import context
from zibaldone.keep.commit import Actor
from zibaldone.keep.imports import (
    Existing,
    Imported,
    Incoming,
    Outcome,
    import_documents,
    preview_import,
)
from zibaldone.limits import (
    IMPORT_BATCH_BYTES_MAX,
    IMPORT_BATCH_DOCUMENTS_MAX,
    IMPORT_HOLD_SECONDS_MAX,
    IMPORT_PAUSE_SECONDS,
    IMPORT_PROBLEMS_MAX,
)

_OUTCOMES: tuple[Outcome, ...] = ("created", "updated", "unchanged", "skipped", "failed")
_PROBLEMS_SHOWN_MAX = 20

update_option = click.option(
    "--update",
    "existing",
    flag_value="update",
    help="Also replace documents that were changed or deleted here; history keeps them.",
)
skip_existing_option = click.option(
    "--skip-existing", "existing", flag_value="skip", help="Never touch a path that is taken."
)


@dataclass(slots=True)
class Summary:
    counts: Counter[Outcome] = field(default_factory=Counter)
    problems: list[dict[str, str]] = field(default_factory=list)
    """What was skipped or failed, and why."""

    def add(self, name: str, outcome: Outcome, reason: str = "") -> None:
        self.counts[outcome] += 1
        if reason and len(self.problems) < IMPORT_PROBLEMS_MAX:
            # Names of any origin: those that UTF-8 cannot hold are shown escaped.
            shown = name.encode(errors="backslashreplace").decode()
            self.problems.append({"path": shown, "outcome": outcome, "reason": reason})

    def as_dict(self) -> dict[str, Any]:
        counts: dict[str, Any] = {outcome: self.counts[outcome] for outcome in _OUTCOMES}
        return {**counts, "problems": self.problems}

    def echo(self, *, dry_run: bool) -> None:
        shown = self.problems[:_PROBLEMS_SHOWN_MAX]
        for problem in shown:
            name, reason = (context.printable(problem[part]) for part in ("path", "reason"))
            click.echo(f"{problem['outcome']}: {name}: {reason}", err=True)
        more = self.counts["skipped"] + self.counts["failed"] - len(shown)
        if more > 0 and shown:
            click.echo(f"... and {more} more; --json names up to {IMPORT_PROBLEMS_MAX}.", err=True)
        counts = ", ".join(f"{self.counts[outcome]} {outcome}" for outcome in _OUTCOMES)
        click.echo(counts + (" (dry run: nothing was written)" if dry_run else ""))


class Importer:
    """Takes documents one by one; holds no more of them than one batch."""

    def __init__(self, session: context.Session, existing: Existing, *, dry_run: bool) -> None:
        self.summary = Summary()
        self._session = session
        self._existing: Existing = existing
        self._dry_run = dry_run
        self._batch: list[Incoming] = []
        self._names: list[str] = []
        self._batch_bytes = 0
        self._held_seconds = 0.0

    def add(self, name: str, incoming: Incoming) -> None:
        """`name` is what the caller knows the document by: a file, a row."""
        bodies = (incoming.document.body, *(revision.body for revision in incoming.earlier))
        size = sum(len(body.encode(errors="surrogatepass")) for body in bodies)
        if self._batch and self._batch_bytes + size > IMPORT_BATCH_BYTES_MAX:
            self.flush()
        self._batch.append(incoming)
        self._names.append(name)
        self._batch_bytes += size
        if len(self._batch) == IMPORT_BATCH_DOCUMENTS_MAX:
            self.flush()

    def flush(self) -> None:
        if not self._batch:
            return
        for name, result in zip(self._names, self._write(self._batch), strict=True):
            self.summary.add(name, result.outcome, result.reason)
        self._batch, self._names, self._batch_bytes = [], [], 0

    def _write(self, batch: list[Incoming]) -> list[Imported]:
        runtime, existing = self._session.runtime, self._existing
        actor = Actor(LOCAL.key_id)
        if self._dry_run:
            return self._session.run(
                runtime.store.read(
                    LOCAL.tenant,
                    lambda reader: preview_import(reader, batch, actor, runtime.limits, existing),
                )
            )
        started_s = time.monotonic()
        results = self._session.run(
            runtime.store.write(
                LOCAL.tenant,
                lambda writer: import_documents(writer, batch, actor, runtime.limits, existing),
            )
        )
        self._let_others_write(time.monotonic() - started_s)
        return results

    def _let_others_write(self, held_seconds: float) -> None:
        self._held_seconds += held_seconds
        if self._held_seconds > IMPORT_HOLD_SECONDS_MAX:
            time.sleep(IMPORT_PAUSE_SECONDS)
            self._held_seconds = 0.0
