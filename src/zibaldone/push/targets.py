"""The two kinds of servers, and how each comes to have a note exactly once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, Protocol

from zibaldone.limits import (
    PUSH_CONFIRM_SECONDS_MAX,
    PUSH_PART_CHARS_GRAPHITI,
    PUSH_PART_CHARS_ZIBALDONE,
    PUSH_SETTLE_SECONDS,
)
from zibaldone.model.instant import now_us
from zibaldone.push.memory import Memory
from zibaldone.push.note import Episode, Note, Source
from zibaldone.push.reconcile import Findings, Listing, marked_description, reconcile
from zibaldone.push.state import State

Kind = Literal["zibaldone", "graphiti"]

_UNSETTLED = "unsettled_until_us"


def kind_of_server(name: str) -> Kind:
    """By what it calls itself. One that is neither may store what arrives twice twice."""
    return "zibaldone" if name.lower().startswith("zibaldone") else "graphiti"


class Target(Protocol):
    kind: Kind

    def episodes(self, note: Note) -> list[Episode]: ...

    async def prepare(self, *, has_steps: bool, check_all: bool) -> Collection[str]:
        """Paths of notes that are lost on the server and have to be sent again."""
        ...

    async def put(self, path: str, episodes: Sequence[Episode], parts_before: int) -> bool:
        """Send a note; whether it is known to be stored."""
        ...

    async def remove(self, path: str, parts: int) -> None:
        """Delete a note of so many parts."""
        ...

    async def finish(self, *, delete: bool, kept: Collection[str] = ()) -> Sequence[str]:
        """Clean up; paths of notes that were acknowledged and are not stored yet.

        `delete`: also what belongs to no note, but not to those of `kept`, which could not be read.
        """
        ...


class ZibaldoneTarget:
    """An episode is stored when it is acknowledged, and its uuid identifies it: what is sent again
    is the same episode, or its next revision."""

    kind: Kind = "zibaldone"

    def __init__(self, memory: Memory, source: Source) -> None:
        self._memory = memory
        self._source = source

    def episodes(self, note: Note) -> list[Episode]:
        return note.episodes(
            self._source, part_chars_max=PUSH_PART_CHARS_ZIBALDONE, with_front_matter=True
        )

    async def prepare(self, *, has_steps: bool, check_all: bool) -> Collection[str]:
        del has_steps, check_all
        return ()

    async def put(self, path: str, episodes: Sequence[Episode], parts_before: int) -> bool:
        for episode in episodes:
            await self._memory.add(
                name=episode.name,
                body=episode.body,
                group=episode.group,
                description=episode.description,
                reference_time=episode.reference_time,
                uuid=episode.uuid,
            )
        for part in range(len(episodes) + 1, parts_before + 1):
            await self._memory.delete(self._source.part_id(path, part))
        return True

    async def remove(self, path: str, parts: int) -> None:
        for part in range(1, parts + 1):
            await self._memory.delete(self._source.part_id(path, part))

    async def finish(self, *, delete: bool, kept: Collection[str] = ()) -> Sequence[str]:
        del delete, kept
        return ()


class GraphitiTarget:
    """An episode is queued when it is acknowledged, and stored twice if it arrives twice. A list
    of the episodes of the group tells what is there (`reconcile`).

    It gets no uuid: Graphiti takes one for that of an episode to work on again, and silently drops
    an episode whose uuid it does not know.
    """

    kind: Kind = "graphiti"

    def __init__(self, memory: Memory, source: Source, state: State) -> None:
        self._memory = memory
        self._source = source
        self._state = state
        self._listing = Listing()
        self._is_listed = False
        self._removed: set[str] = set()

    def episodes(self, note: Note) -> list[Episode]:
        return note.episodes(
            self._source, part_chars_max=PUSH_PART_CHARS_GRAPHITI, with_front_matter=False
        )

    async def prepare(self, *, has_steps: bool, check_all: bool) -> Collection[str]:
        until_us = int(self._state.fact(_UNSETTLED) or 0)
        saved = self._state.notes()
        is_waiting = any(not note.is_visible for note in saved.values())
        if not (has_steps or check_all or is_waiting or until_us > now_us()):
            return ()
        await self._list()
        if has_steps:
            self._state.set_fact(_UNSETTLED, str(now_us() + int(PUSH_SETTLE_SECONDS * 1_000_000)))
        findings = self._reconcile(check_all=check_all)
        self._state.set_visible(findings.visible)
        return findings.lost

    async def put(self, path: str, episodes: Sequence[Episode], parts_before: int) -> bool:
        del path, parts_before
        is_stored = True
        for episode in episodes:
            if not self._has(episode):
                await self._add(episode)
                is_stored = False
        return is_stored

    async def remove(self, path: str, parts: int) -> None:
        """Nothing yet: `finish` deletes it."""
        del parts
        self._removed.add(path)

    async def finish(self, *, delete: bool, kept: Collection[str] = ()) -> Sequence[str]:
        if not self._is_listed:
            return ()
        sleep, deadline = self._memory.client.retry.sleep, self._memory.client.retry.deadline
        waited_seconds, wait_seconds = 0.0, 0.1
        while True:
            await self._list()
            findings = self._reconcile(delete=delete, kept=kept)
            self._state.set_visible(findings.visible)
            for uuid in findings.surplus:
                await self._memory.delete(uuid)
            waiting = findings.waiting + findings.lost
            if not waiting or waited_seconds + wait_seconds > min(
                PUSH_CONFIRM_SECONDS_MAX, deadline.left_seconds()
            ):
                return sorted(waiting)
            await sleep(wait_seconds)
            waited_seconds += wait_seconds
            wait_seconds *= 2

    def _reconcile(
        self, *, delete: bool = False, kept: Collection[str] = (), check_all: bool = False
    ) -> Findings:
        return reconcile(
            self._listing,
            self._state.notes(),
            self._source,
            now_us=now_us(),
            unfinished=self._state.sending(),
            removed=self._removed,
            kept=kept,
            delete=delete,
            check_all=check_all,
        )

    async def _list(self) -> None:
        self._listing = Listing.of(await self._memory.episodes(self._source.group), self._source)
        self._is_listed = True

    def _has(self, episode: Episode) -> bool:
        return self._listing.has(episode.note_id, episode.part, episode.digest)

    async def _add(self, episode: Episode) -> None:
        async def look() -> dict[str, Any] | None:
            await self._list()
            return {} if self._has(episode) else None

        await self._memory.add(
            name=episode.name,
            body=episode.body,
            group=episode.group,
            description=marked_description(episode, self._source),
            reference_time=episode.reference_time,
            before_replay=look,
        )
