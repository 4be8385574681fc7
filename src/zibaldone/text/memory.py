"""What is stored of an episode beside its document. Pure, and the same for every engine."""

from __future__ import annotations

from typing import Any

from zibaldone.limits import FRONT_MATTER_CHARS_MAX, MEMORY_READ_CHARS_MAX
from zibaldone.model.document import DocumentFields
from zibaldone.model.instant import from_iso
from zibaldone.model.memory import Episode, place_of
from zibaldone.text.entities import entities_in
from zibaldone.text.facts import facts_in
from zibaldone.text.frontmatter import FrontMatter, read_front_matter

REFERENCE_TIME = "reference_time"
"""Metadata: when what the episode says was so."""
SOURCE = "source"
"""Metadata: `text`, `json` or `message`."""
SOURCE_DESCRIPTION = "source_description"


def episode_of(document: DocumentFields, body: str) -> Episode | None:
    """None: the document is no episode, or is deleted."""
    place = place_of(document.document_id)
    if place is None or not document.is_live:
        return None
    valid_at_us = reference_time_us(document)
    is_message = document.metadata.get(SOURCE) == "message"
    front = front_matter(body)
    text = front.body[:MEMORY_READ_CHARS_MAX]
    entities = entities_in(text, tags=document.tags, values=front.values, speakers=is_message)
    facts = facts_in(text, entities, valid_at_us, is_message=is_message)
    return Episode(*place, valid_at_us, entities, facts)


def front_matter(body: str) -> FrontMatter:
    """The front matter of an episode, and the text behind it."""
    return read_front_matter(body, FRONT_MATTER_CHARS_MAX)


def reference_time_us(document: DocumentFields) -> int:
    """When what the document says was so; by default, when it was made."""
    given: Any = document.metadata.get(REFERENCE_TIME)
    if isinstance(given, str):
        try:
            return from_iso(given)
        except (ValueError, OverflowError):
            pass
    return document.created_at_us
