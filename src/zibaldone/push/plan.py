"""What a push has to do. Pure: files, what was saved and options in, steps out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from zibaldone.limits import PUSH_RACY_NS
from zibaldone.push.scan import LeftOut, LocalFile
from zibaldone.push.state import SavedNote


class Action(StrEnum):
    ADD = "add"
    UPDATE = "update"
    CHECK = "check"
    """Send what was sent before, in case the server lost it."""
    DELETE = "delete"


class Step(NamedTuple):
    action: Action
    path: str


@dataclass(frozen=True, slots=True)
class Plan:
    steps: Sequence[Step]
    """In the order of their paths, deletions last."""
    unchanged: int
    skipped: Sequence[LeftOut]
    gone: Sequence[str]
    """Sent before and not in the folder any more; left on the server, as deleting was not asked."""
    touched: Sequence[LocalFile]
    """Unchanged, but with another time than was saved."""

    @property
    def has_notes(self) -> bool:
        """A folder without any note is more likely one that is not mounted."""
        return self.unchanged > 0 or any(step.action is not Action.DELETE for step in self.steps)

    def count(self, action: Action) -> int:
        return sum(1 for step in self.steps if step.action is action)


def files_to_read(
    files: Sequence[LocalFile], saved: Mapping[str, SavedNote], *, resend_all: bool = False
) -> list[LocalFile]:
    """Files whose size and times do not prove that they are what was sent."""
    if resend_all:
        return list(files)
    suspects = []
    get = saved.get
    for file in files:
        note = get(file[0])
        # By position: this runs for each note of a folder in which nothing changed.
        if (
            note is None
            or file != note[:4]
            or file[2] > note[4] - PUSH_RACY_NS
            or file[3] > note[4] - PUSH_RACY_NS
        ):
            suspects.append(file)
    return suspects


def make_plan(
    files: Sequence[LocalFile],
    left_out: Sequence[LeftOut],
    read: Mapping[str, str | LeftOut],
    saved: Mapping[str, SavedNote],
    *,
    interrupted: Collection[str] = (),
    resend_all: bool = False,
    delete: bool = False,
) -> Plan:
    """`read` has the digest of each file of `files_to_read`, or why it cannot be sent.

    `interrupted` are notes whose sending was not acknowledged when a push ended.
    """
    steps: list[Step] = []
    skipped = list(left_out)
    touched: list[LocalFile] = []
    for file in files:
        path = file.path
        if path not in read:
            continue
        digest, note = read[path], saved.get(path)
        if isinstance(digest, LeftOut):
            skipped.append(digest)
        elif note is None:
            steps.append(Step(Action.ADD, path))
        elif digest != note.digest or path in interrupted:
            steps.append(Step(Action.UPDATE, path))
        elif resend_all:
            steps.append(Step(Action.CHECK, path))
        else:
            touched.append(file)
    planned = {step.path for step in steps}
    here = {file.path for file in files} - {one.path for one in skipped}
    # An edit that was being sent may have been taken back since.
    steps += [
        Step(Action.UPDATE, path) for path in interrupted if path in here and path not in planned
    ]
    steps.sort(key=lambda step: step.path)
    gone = _gone(saved.keys() | set(interrupted), here, skipped)
    if delete and here:  # as `Plan.has_notes`
        steps += [Step(Action.DELETE, path) for path in gone]
        gone = []
    sends = sum(1 for step in steps if step.action is not Action.DELETE)
    return Plan(
        steps=steps,
        unchanged=len(here) - sends,
        skipped=sorted(skipped),
        gone=gone,
        touched=touched,
    )


def _gone(known: Collection[str], here: Collection[str], skipped: Sequence[LeftOut]) -> list[str]:
    """Notes that are not in the folder; not those that are there and cannot be sent now."""
    kept = {one.path for one in skipped if not one.is_empty}
    folders = tuple(path for path in kept if path.endswith("/"))
    if "./" in kept:
        return []
    return sorted(
        path
        for path in known
        if path not in here and path not in kept and not path.startswith(folders)
    )
