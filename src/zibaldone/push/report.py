"""What a push did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zibaldone.errors import ZibaldoneError
from zibaldone.push.plan import Action


@dataclass(slots=True)
class Report:
    target: str = ""
    server: str = ""
    """What the server calls itself; empty if it was not asked."""
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    """Sent again, unchanged, because every note was to be checked."""
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Path and reason."""
    failed: list[tuple[str, ZibaldoneError]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """Not in the folder any more, and left on the server."""
    waiting: list[str] = field(default_factory=list)
    """Acknowledged by the server, and not stored there yet."""
    left: list[str] = field(default_factory=list)
    """Not tried, because the push had to stop."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Path, and what is wrong with a note that was sent nevertheless."""
    stopped: ZibaldoneError | None = None
    """Why the push did not come to its end."""
    is_dry_run: bool = False

    @property
    def is_complete(self) -> bool:
        return not (self.failed or self.left or self.stopped)

    @property
    def did_something(self) -> bool:
        done = self.added or self.updated or self.checked or self.deleted
        return bool(done or self.failed or self.stopped)

    def of(self, action: Action) -> list[str]:
        """The notes to which that was done."""
        return {
            Action.ADD: self.added,
            Action.UPDATE: self.updated,
            Action.CHECK: self.checked,
            Action.DELETE: self.deleted,
        }[action]

    def counts(self) -> dict[str, int]:
        return {
            "added": len(self.added),
            "updated": len(self.updated),
            "checked": len(self.checked),
            "deleted": len(self.deleted),
            "unchanged": self.unchanged,
            "skipped": len(self.skipped),
            "failed": len(self.failed),
            "gone": len(self.gone),
            "waiting": len(self.waiting),
            "left": len(self.left),
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "server": self.server,
            "dry_run": self.is_dry_run,
            "counts": self.counts(),
            "added": self.added,
            "updated": self.updated,
            "checked": self.checked,
            "deleted": self.deleted,
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
            "failed": [{"path": path, "error": error.as_dict()} for path, error in self.failed],
            "gone": self.gone,
            "waiting": self.waiting,
            "left": self.left,
            "problems": [{"path": path, "problem": problem} for path, problem in self.problems],
            "stopped": self.stopped.as_dict() if self.stopped else None,
        }
