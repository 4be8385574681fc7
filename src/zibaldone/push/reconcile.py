"""What Graphiti holds against what it should hold. Pure.

Graphiti acknowledges an episode before it stores it, forgets what waits when it stops, and stores
an episode twice that arrives twice. So each of ours carries a mark in its description, and a list
of all episodes tells which came through, which are lost, and which are there too often.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from zibaldone.limits import PUSH_SETTLE_SECONDS
from zibaldone.push.memory import RemoteEpisode
from zibaldone.push.note import Episode, Source
from zibaldone.push.state import SavedNote

_MARK = re.compile(r"\[zibaldone:([0-9a-f]{12}):([0-9a-f-]{36}):([0-9]{1,6}):([0-9a-f]{16})\]\Z")
_DIGEST_CHARS = 16
_SETTLE_US = int(PUSH_SETTLE_SECONDS * 1_000_000)


def marked_description(episode: Episode, source: Source) -> str:
    """The description with the mark of the episode at its end."""
    digest = episode.digest[:_DIGEST_CHARS]
    return (
        f"{episode.description} [zibaldone:{source.mark}:{episode.note_id}:{episode.part}:{digest}]"
    )


_Copies = dict[tuple[int, str], list[str]]


@dataclass(frozen=True, slots=True)
class Listing:
    """Our episodes on the server."""

    notes: Mapping[str, _Copies] = field(default_factory=dict)
    """Note id → part and digest → the server's ids of the copies."""

    @classmethod
    def of(cls, episodes: Iterable[RemoteEpisode], source: Source) -> Listing:
        notes: dict[str, _Copies] = {}
        for episode in episodes:
            mark = _MARK.search(episode.description)
            if mark and mark[1] == source.mark:
                copies = notes.setdefault(mark[2], {})
                copies.setdefault((int(mark[3]), mark[4]), []).append(episode.uuid)
        return cls(notes)

    def has(self, note_id: str, part: int, digest: str) -> bool:
        return (part, digest[:_DIGEST_CHARS]) in self.notes.get(note_id, ())


@dataclass(frozen=True, slots=True)
class Findings:
    visible: list[str] = field(default_factory=list)
    """Paths of notes that the server has whole."""
    waiting: list[str] = field(default_factory=list)
    """Acknowledged, not stored yet."""
    lost: list[str] = field(default_factory=list)
    """Acknowledged, and not there although it should be by now."""
    surplus: list[str] = field(default_factory=list)
    """The server's ids of copies, earlier revisions and parts that are not needed any more."""


def reconcile(
    listing: Listing,
    saved: Mapping[str, SavedNote],
    source: Source,
    *,
    now_us: int,
    unfinished: Collection[str] = (),
    removed: Collection[str] = (),
    kept: Collection[str] = (),
    delete: bool = False,
    check_all: bool = False,
) -> Findings:
    """Paths of notes: `unfinished` are being sent, `removed` are to go, `kept` could not be read.

    `delete`: episodes of ours that belong to no note are surplus. `check_all`: look for notes too
    that were seen before.
    """
    findings = Findings()
    ids = {source.note_id(path): path for path in (*saved, *unfinished)}
    for note in saved.values():
        note_id = source.note_id(note.path)
        if all(listing.has(note_id, part, note.digest) for part in range(1, note.parts + 1)):
            findings.visible.append(note.path)
    visible = set(findings.visible)
    last_visible_us = max((saved[path].sent_at_us for path in visible), default=0)
    for note in saved.values():
        if note.path in visible or (note.is_visible and not check_all):
            continue
        # Episodes of a group are stored in the order in which they came.
        was_overtaken = note.sent_at_us < last_visible_us
        is_lost = note.is_visible or was_overtaken or now_us - note.sent_at_us > _SETTLE_US
        (findings.lost if is_lost else findings.waiting).append(note.path)
    removed_ids, kept_ids = ({*map(source.note_id, paths)} for paths in (removed, kept))
    for note_id, copies in listing.notes.items():
        path = ids.get(note_id)
        if path is None:
            if note_id in removed_ids or (delete and note_id not in kept_ids):
                findings.surplus.extend(uuid for uuids in copies.values() for uuid in uuids)
        elif path not in unfinished:
            findings.surplus.extend(_surplus(copies, saved[path], is_whole=path in visible))
    return findings


def _surplus(copies: _Copies, note: SavedNote, *, is_whole: bool) -> list[str]:
    """An earlier revision goes when the new one is there as a whole."""
    digest = note.digest[:_DIGEST_CHARS]
    surplus: list[str] = []
    for (part, of_digest), uuids in copies.items():
        if of_digest == digest and part <= note.parts:
            surplus += sorted(uuids)[1:]
        elif is_whole:
            surplus += uuids
    return surplus
