"""Episodes, the entities that they mention, and the facts that they state.

An episode is a document under `memory/<group>/`. Its entities and facts are made from its text;
they are replaced with it and removed with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

MEMORY_PREFIX = "memory/"
GROUP_DEFAULT = "main"


@dataclass(frozen=True, slots=True)
class Entity:
    """Something with a name. Within a group, entities with the same key are the same node."""

    key: str
    """The name as it is compared: case folded, one blank between words."""
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that joins two entities."""

    subject: str
    """Key of an entity."""
    relation: str
    object: str
    """Key of an entity, or a value."""
    text: str
    valid_at_us: int
    slot: str = ""
    """What can be true of the subject only once at a time (`lives in`): a later fact with the same
    subject and slot, but another object, ends this one. Empty: nothing does."""


@dataclass(frozen=True, slots=True)
class Episode:
    """What is stored of an episode beside its document."""

    group_id: str
    episode_id: str
    valid_at_us: int
    entities: Sequence[Entity] = ()
    facts: Sequence[Fact] = ()


@dataclass(frozen=True, slots=True)
class EpisodeHead:
    document_id: str
    group_id: str
    episode_id: str
    valid_at_us: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands beside an episode in its group, in the order of time."""

    episode: EpisodeHead
    before: tuple[str, ...]
    """Documents, nearest first."""
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """An entity of a group, over all episodes that mention it."""

    group_id: str
    key: str
    name: str
    labels: tuple[str, ...]
    since_us: int
    """When the first episode that mentions it was."""
    episodes: int

    @property
    def node_id(self) -> str:
        return node_id(self.group_id, self.key)


@dataclass(frozen=True, slots=True)
class StoredFact:
    document_id: str
    episode_id: str
    group_id: str
    index: int
    """Of the fact in its episode."""
    fact: Fact
    created_at_us: int
    """When the episode's document was made."""
    invalid_at_us: int | None = None
    """When a later fact ended it."""
    replaced_by: str | None = None
    """The text of that fact."""
    replaced_in: str | None = None
    """The document of that fact."""

    @property
    def fact_id(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"zibaldone:fact:{self.document_id}#{self.index}"))


def node_id(group_id: str, key: str) -> str:
    """The same for the same name in the same group, whenever it is asked for."""
    return str(uuid5(NAMESPACE_URL, f"zibaldone:node:{group_id}/{key}"))


def place_of(document_id: str) -> tuple[str, str] | None:
    """The group and the episode of a document; None: it is not an episode."""
    if not document_id.startswith(MEMORY_PREFIX):
        return None
    group_id, slash, episode_id = document_id[len(MEMORY_PREFIX) :].partition("/")
    return (group_id, episode_id) if slash and group_id and episode_id else None
