"""Write and delete episodes of memory: documents under `memory/<group>/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from zibaldone.errors import Conflict, InvalidArgument
from zibaldone.keep.commit import Actor, Change
from zibaldone.keep.create import NewDocument, creation
from zibaldone.keep.delete import delete_live
from zibaldone.keep.update import Changes, changed
from zibaldone.keep.writing import Edit, Seen
from zibaldone.limits import (
    MEMORY_CLEAR_BATCH,
    MEMORY_CLEAR_CHARS,
    TAG_CHARS_MAX,
    TAGS_MAX,
    Limits,
)
from zibaldone.model.document import Document
from zibaldone.model.instant import from_iso, to_iso
from zibaldone.model.memory import MEMORY_PREFIX, Episode, EpisodeHead, place_of
from zibaldone.store.port import Reader, Writer
from zibaldone.text import normalize
from zibaldone.text.chunk_changes import Checkpoint
from zibaldone.text.frontmatter import tags_of
from zibaldone.text.memory import REFERENCE_TIME, SOURCE, SOURCE_DESCRIPTION, front_matter

_MIMES = {"text": "text/markdown", "message": "text/plain", "json": "application/json"}


@dataclass(frozen=True, slots=True)
class NewEpisode:
    name: str
    body: str
    group_id: str
    source: str = "text"
    source_description: str = ""
    episode_id: str | None = None
    """None: made from the rest, so that the same episode is stored once."""
    reference_time: str | None = None


class Unchanged(Exception):
    """The episode is stored already, exactly so."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.document_id)
        self.document = document


def group_prefix(group_id: str) -> str:
    """Where the episodes of a group are. InvalidArgument: it cannot be the name of a group."""
    name = normalize.document_id(group_id, "group_id")
    if "/" in name or name != normalize.normal_form("NFC", group_id):
        raise InvalidArgument(
            "A group_id is one part of a path: no slash, no blanks around it, not '.' or '..'.",
            field="group_id",
        )
    return f"{MEMORY_PREFIX}{name}/"


def document_id_of(new: NewEpisode) -> str:
    prefix = group_prefix(new.group_id)
    episode_id = new.episode_id
    if episode_id is None:
        parts = (new.name, new.source, new.source_description, new.reference_time, new.body)
        made_of = orjson.dumps((prefix, *parts))
        episode_id = str(uuid5(NAMESPACE_URL, "zibaldone:episode:" + made_of.decode()))
    path = normalize.document_id(episode_id, "uuid")
    return normalize.document_id(prefix + path, "uuid")


def adding(new: NewEpisode, document_id: str, actor: Actor, limits: Limits) -> Edit[Change]:
    """Store an episode, or a new revision of the one with its id. Unchanged: it is stored so.

    `document_id`: by `document_id_of`. Conflict: another group has an episode with this id.
    """
    metadata: dict[str, Any] = {SOURCE: new.source}
    if new.source_description:
        metadata[SOURCE_DESCRIPTION] = new.source_description
    if new.reference_time is not None:
        metadata[REFERENCE_TIME] = _instant(new.reference_time)
    document = NewDocument(
        document_id,
        new.body,
        title=new.name,
        tags=_tags(new.body),
        mime=_MIMES[new.source],
        metadata=metadata,
    )
    made = creation(document, actor, limits, upsert=True)

    def look(reader: Reader | Writer) -> Seen:
        if new.episode_id is not None:
            _require_same_group(reader, document_id)
        return made.look(reader)

    def decide(seen: Seen, checkpoint: Checkpoint) -> Change:
        before = seen.document
        if before is None or not before.is_live:
            return made.decide(seen, checkpoint)
        changes = Changes(
            body=document.body,
            title=document.title,
            tags=document.tags,
            mime=document.mime,
            metadata=metadata,
        )
        after = changed(before, changes, actor, limits, "update")
        if _same(before, after):
            raise Unchanged(before)
        return Change(before, after)

    return Edit(document_id, look=look, decide=decide, text_chars=len(new.body))


def put_extracted(writer: Writer, document_id: str, revision: int, episode: Episode) -> bool:
    """Store what was extracted from this revision, in place of what is stored of the episode.

    False: the document is at another revision, or deleted; nothing was changed.
    """
    document = writer.documents.get(document_id)  # locked until the commit: no edit comes between
    if document is None or not document.is_live or document.revision != revision:
        return False
    writer.memory.put(document, episode)
    return True


def delete_with_id(writer: Writer, episode_id: str, actor: Actor) -> int:
    """Softly, some of the episodes with this id, in as many groups; how many were deleted."""
    return _delete_some(writer, writer.memory.find(episode_id, limit=MEMORY_CLEAR_BATCH), actor)


def delete_in_groups(writer: Writer, group_ids: Sequence[str], actor: Actor) -> int:
    """Softly, some of the episodes of these groups; how many were deleted."""
    return _delete_some(writer, writer.memory.latest(group_ids, limit=MEMORY_CLEAR_BATCH), actor)


def _delete_some(writer: Writer, heads: Iterable[EpisodeHead], actor: Actor) -> int:
    """Until they were long enough: others write between two transactions."""
    count = chars = 0
    for head in heads:
        document = writer.documents.get(head.document_id)
        if document is not None and document.is_live:
            delete_live(writer, document, actor)
            count += 1
            chars += len(document.body)
        if chars >= MEMORY_CLEAR_CHARS or count >= MEMORY_CLEAR_BATCH:
            break
    return count


def _require_same_group(reader: Reader | Writer, document_id: str) -> None:
    place = place_of(document_id)
    group_id, episode_id = place if place is not None else ("", "")
    found = reader.memory.find(episode_id, limit=2)  # one of its own group at most
    others = [head for head in found if head.group_id != group_id]
    if others:
        raise Conflict(
            f"The episode {episode_id!r} is in the group {others[0].group_id!r}. Delete it there "
            "first, or use another uuid.",
            document_id=others[0].document_id,
        )


def _same(before: Document, after: Document) -> bool:
    return (
        before.body == after.body
        and before.title == after.title
        and before.tags == after.tags
        and before.mime == after.mime
        and before.metadata == after.metadata
    )


def _instant(text: str) -> str:
    """In one form, so that the same time is the same text."""
    try:
        return to_iso(from_iso(text))
    except (ValueError, OverflowError):
        raise InvalidArgument(
            "reference_time is no ISO 8601 time, such as 2026-11-16T09:30:00Z.",
            field="reference_time",
        ) from None


def _tags(body: str) -> tuple[str, ...]:
    """Those of the front matter that can be tags."""
    tags = tags_of(front_matter(body).values)
    return tuple(tag for tag in tags if len(tag) <= TAG_CHARS_MAX and "\x00" not in tag)[:TAGS_MAX]
