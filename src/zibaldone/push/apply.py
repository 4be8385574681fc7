"""Carry out a plan: one note after the other, each saved when it is acknowledged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from zibaldone.errors import DeadlineExceeded, RemoteDenied, RemoteFailed, RemoteUnavailable
from zibaldone.limits import PUSH_FAILURES_MAX
from zibaldone.push.note import Note, read_note
from zibaldone.push.plan import Action, Step
from zibaldone.push.report import Report
from zibaldone.push.state import State
from zibaldone.push.targets import Target

_STOPPING = (RemoteDenied, DeadlineExceeded)
"""What concerns every note: going on would only take time."""

_STATUSES_OF_THE_URL = frozenset({404, 405, 406, 501})
"""Statuses that say nothing about a note: something else is served there."""


class Apply:
    def __init__(
        self,
        root: Path,
        target: Target,
        state: State,
        report: Report,
        advance: Callable[[int], None],
        is_up: Callable[[], Awaitable[bool]],
    ) -> None:
        """`is_up` is asked after a note to which the server gave no answer."""
        self._root = root
        self._target = target
        self._state = state
        self._report = report
        self._advance = advance
        self._is_up = is_up
        self._failures = 0
        self._saved = state.notes()
        self._sending = state.sending()

    async def run(self, steps: list[Step]) -> None:
        """Do the steps; an error that concerns all of them ends it, and is in the report."""
        for number, step in enumerate(steps):
            try:
                await self._step(step)
                self._failures = 0
            except _STOPPING as error:
                self._report.stopped = error
            except (RemoteUnavailable, RemoteFailed) as error:
                if await self._concerns_all(error):
                    self._report.stopped = error
                else:
                    self._report.failed.append((step.path, error))
            if self._report.stopped is not None:
                self._report.left = [step.path for step in steps[number:]]
                return
            self._advance(1)

    async def _concerns_all(self, error: RemoteUnavailable | RemoteFailed) -> bool:
        """Whether the next note would fail too. One that no server can digest is put aside, or the
        notes after it would never be sent."""
        self._failures += 1
        if self._failures == PUSH_FAILURES_MAX:
            return True
        if isinstance(error, RemoteUnavailable):
            return not await self._is_up()
        return error.details.get("http_status") in _STATUSES_OF_THE_URL

    async def _step(self, step: Step) -> None:
        if step.action is Action.DELETE:
            await self._target.remove(step.path, self._parts_before(step.path))
            self._state.forget(step.path)
            self._report.deleted.append(step.path)
            return
        note = read_note(self._root, step.path)  # again: it may have changed since the plan
        if not isinstance(note, Note):
            self._report.skipped.append((step.path, note.reason))
            return
        await self._send(note)
        self._report.of(step.action).append(step.path)

    async def _send(self, note: Note) -> None:
        path = note.file.path
        episodes = self._target.episodes(note)
        if note.problem:
            self._report.problems.append((path, note.problem))
        self._state.begin(path, len(episodes))
        is_stored = await self._target.put(path, episodes, self._parts_before(path))
        self._state.finish(
            note.file,
            read_ns=note.read_ns,
            digest=note.digest,
            parts=len(episodes),
            is_visible=is_stored,
        )

    def _parts_before(self, path: str) -> int:
        """How many parts of the note the server may have from earlier pushes."""
        saved = self._saved.get(path)
        return max(saved.parts if saved else 0, self._sending.get(path, 0))
